"""What all reports share: whom they are about, and how the page is made.

A page needs nothing from anywhere: plots are SVG in the page, picture and film are data in it, and it has no script.
"""

from __future__ import annotations

import base64
import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from deploy.bundle import Bundle
from robo_rl.console import Progress, finite, say
from robo_rl.contract import Contract, Numbers, Provenance
from robo_rl.evaluation import BATCH, Conditions, Episodes, quantity, rollout
from robo_rl.loading import Loaded, load
from robo_rl.runs import Run
from robo_rl.zoo import located
from sim.drawing import Motion
from sim.pictures.camera import as_many_as_seen
from sim.pictures.canvas import RenderingError
from sim.pictures.film import film
from sim.pictures.strip import strip

FILM_SECONDS, FILM_FPS, FILM_SIZE = 5.0, 20, (480, 360)
STRIP_SCALE = 0.8


@dataclass(frozen=True)
class Subject:
    """One thing that the report is about, and its flights."""

    target: str
    loaded: Loaded
    flights: Episodes
    contract: Contract | None = None
    """None for the classical controller."""
    digest: str | None = None
    """Of the file, if it is one."""
    metrics: list[dict[str, float]] = field(default_factory=list)
    """Of its training, if it is a run."""

    @property
    def provenance(self) -> Provenance | None:
        """Where a policy comes from."""
        return self.contract.provenance if self.contract else None

    @property
    def figures(self) -> dict[str, float | int]:
        return self.flights.summary()


def load_all(targets: Sequence[str], episodes: int, robot: str | None, task: str | None = None) -> list[Loaded]:
    """What flies or walks ``targets`` (runs or bundles), all of one task and robot."""
    if not 20 <= episodes <= BATCH:
        raise ValueError(f"episodes is {episodes}; expected 20 to {BATCH}")
    subjects = [load(target, task, robot) for target in targets]
    expected = subjects[0].task.spec.name, subjects[0].task.spec.robot.name
    for target, loaded in zip(targets, subjects, strict=True):
        names = loaded.task.spec.name, loaded.task.spec.robot.name
        if names != expected:
            raise ValueError(f"{target} is of task and robot {names}; expected {expected}, those of {targets[0]}")
    return subjects


def subject_of(target: str, loaded: Loaded, conditions: Conditions) -> Subject:
    """Fly it, and read where it comes from."""
    flights = rollout(loaded.task, loaded.policy, conditions, loaded.name)
    path = located(target)
    if path.suffix == ".onnx":
        bundle = Bundle.read(path)
        return Subject(target, loaded, flights, bundle.contract, bundle.digest)
    run = Run.open(path)
    lines = (run.folder / "metrics.jsonl").read_text().splitlines()
    policy, provenance = run.policy()
    return Subject(target, loaded, flights, policy.contract(provenance), metrics=[json.loads(line) for line in lines])


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
    return {**encoded, "shown": shown, "filmed": some.robots, "legend": {k: v for k, v in legend.items() if v}}


def write_page(template: str, out: Path, first: Subject, figures: dict[str, Any], **parts: Any) -> int:
    """Fill in a template of this folder and write the page; returns its size in bytes."""
    assert first.contract is not None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"percent": _percent, "cm": _centimetres, "quantity": quantity}
    environment.globals["span"] = span
    page = environment.get_template(template).render(
        first=first,
        figures=figures,
        figures_json=jinja2.utils.htmlsafe_json_dumps(finite(figures)),
        contract=first.contract,
        **parts,
    )
    out.write_text(page)
    return out.stat().st_size


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _centimetres(value: float) -> str:
    return "none survived" if math.isnan(value) else f"{100 * value:.2f} cm"


def span(low: Numbers | float, high: Numbers | float) -> str:
    """Limits of a signal's or command's elements, as one range where they agree."""
    lows, highs = np.broadcast_arrays(np.atleast_1d(low), np.atleast_1d(high))
    low, high = tuple(lows.tolist()), tuple(highs.tolist())
    if len(set(low)) == 1 and len(set(high)) == 1:
        return f"{low[0]:g} to {high[0]:g}"
    return "; ".join(f"{a:.3g} to {b:.3g}" for a, b in zip(low, high, strict=True))
