"""How the page of a report is made.

A page needs nothing from anywhere: plots are SVG in the page, picture and film are data in it, and so is the script
that shows an interactive plot in place of a drawing. A plain page is without it, and smaller by 1.3 MB.
"""

from __future__ import annotations

import base64
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib.figure import Figure

from robo_rl.console import Progress, finite, say
from robo_rl.contract import Numbers
from robo_rl.evaluate.evaluation import quantity
from robo_rl.files import write
from robo_rl.report import interactive
from robo_rl.report.findings import Subject
from robo_rl.report.plots import spoken, svg
from robo_rl.sim.drawing import Motion
from robo_rl.sim.pictures.camera import as_many_as_seen
from robo_rl.sim.pictures.canvas import RenderingError
from robo_rl.sim.pictures.film import film, pace_of
from robo_rl.sim.pictures.strip import strip

FILM_SECONDS, FILM_FPS, FILM_SIZE = 5.0, 20, (480, 360)
STRIP_SCALE = 0.8
PLOTS = 3
"""Of a row, at most."""
SHOWN = 8
"""Elements that are named one by one."""


def pictures(motion: Motion | None) -> dict[str, Any]:
    """Strip and film of the first episodes, in base 64, with what is to be said of them; or why there are none."""
    if motion is None:
        return {"no_pictures": "the plant has no drawing() and poses()"}
    some = as_many_as_seen(motion.part(slice(0, round(FILM_SECONDS / motion.period))), FILM_SIZE)
    with tempfile.TemporaryDirectory() as folder, Progress("drawing", int(FILM_SECONDS * FILM_FPS)) as progress:
        still, moving = Path(folder) / "still.png", Path(folder) / "moving.mp4"
        try:
            shown = strip(still, motion, STRIP_SCALE)
            film(moving, some, "", FILM_SIZE, FILM_FPS, progress.update)
        except RenderingError as error:
            say(f"no pictures: {error}", as_json=True)
            return {"no_pictures": str(error)}
        found = {"picture": still, "video": moving}
        encoded = {name: base64.b64encode(path.read_bytes()).decode() for name, path in found.items()}
    legend = {marker.name: getattr(marker, "color", None) for marker in motion.markers}
    seen = {"shown": shown, "several": shown.robots > motion.team, "filmed": some.robots // some.team}
    seen["pace"] = "in real time" if (pace := pace_of(some)) == 1.0 else f"{1 / pace:.0f} times slower than real time"
    return {**encoded, **seen, "legend": {k: v for k, v in legend.items() if v}}


def write_page(out: Path, first: Subject, figures: dict[str, Any], plain: bool = False, **parts: Any) -> int:
    """Fill in the template and write the page; returns its size in bytes."""
    assert first.contract is not None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "percent": _percent,
        "quantity": quantity,
        "spoken": spoken,
        "svg": svg,
        "duration": duration,
    }
    numbers = itertools.count()

    def look_into(figure: Figure) -> dict[str, Any] | None:
        item = None if plain else interactive.told(figure)
        return item and {"number": next(numbers), "item": jinja2.utils.htmlsafe_json_dumps(item)}

    environment.filters["look_into"] = look_into
    environment.filters["rows"] = rows
    environment.globals |= {"span": span, "listed": listed}
    page = environment.get_template("general.html").render(
        first=first,
        figures=figures,
        figures_json=jinja2.utils.htmlsafe_json_dumps(finite(figures)),
        contract=first.contract,
        scripts=[] if plain else interactive.scripts(),
        **parts,
    )
    write(out, page)
    return out.stat().st_size


def rows(items: Sequence[Any], most: int = PLOTS) -> list[Sequence[Any]]:
    """As few rows as hold ``most`` each, whose lengths differ by one at most: none has a hole in it."""
    count = -(-len(items) // most)
    return [items[k * len(items) // count : (k + 1) * len(items) // count] for k in range(count)]


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def duration(seconds: float) -> str:
    """In the greatest unit of which there is at least one."""
    unit, size = next((u for u in (("hours", 3600.0), ("minutes", 60.0)) if seconds >= u[1]), ("seconds", 1.0))
    return f"{seconds / size:.1f} {unit}"


def span(low: Numbers | float, high: Numbers | float) -> str:
    """Limits of a signal's or command's elements: those that differ, or the widest where these are many."""
    lows, highs = np.broadcast_arrays(np.atleast_1d(low), np.atleast_1d(high))
    pairs = list(zip(lows.tolist(), highs.tolist(), strict=True))
    different = list(dict.fromkeys(pairs))
    if len(different) == 1:
        return f"{pairs[0][0]:g} to {pairs[0][1]:g}"
    if len(different) > SHOWN:
        return f"within {lows.min():.3g} to {highs.max():.3g}"
    return "; ".join(f"{a:.3g} to {b:.3g}" for a, b in (pairs if len(pairs) <= SHOWN else different))


def listed(values: Sequence[str | float]) -> str:
    """Names or numbers of a signal's or command's elements: one where they agree, or how many, where there are many."""
    words = [value if isinstance(value, str) else f"{value:g}" for value in values]
    if len(words) > 1 and len(set(words)) == 1:
        return words[0]
    return ", ".join(words) if len(words) <= SHOWN else f"{', '.join(words[:2])}, … ({len(words)})"
