"""Trainings in the live page's panel: curves of one or several runs, and the newest policy of the first.

All of it is read from the runs' folders, so a training that goes on, one that has ended and one that was killed look
alike, and none of them knows of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.files import is_held
from robo_rl.learn.runs.folder import Run
from robo_rl.metrics_table import TITLES, number, title
from robo_rl.viewer.tables import STYLE, color

HEIGHT = 150  # pixels
MOST = 9
"""Reward terms that have an area of their own, the largest ones; the others share one."""
LENGTHS = ("05", "25", "50", "75", "95")
"""Quantiles of the lengths of episodes, in percent."""
FIRST = "gradient_norm"
"""The metric that is chosen at first."""

Metrics = Sequence[Mapping[str, float]]


class Trainings:
    """Curves of runs."""

    def __init__(self, gui: Any, tab: Any, runs: Sequence[Run]) -> None:
        self.gui, self.tab, self.runs = gui, tab, list(runs)
        self._seen: tuple[Any, ...] = ()
        self._plots: dict[str, tuple[Any, tuple[str, ...]]] = {}
        with tab:
            self._state = gui.add_html("", order=0.0)
        self._chosen: Any = None
        self.update()

    def update(self) -> None:
        """Draw again what has grown since the last call."""
        files = [run.folder / name for run in self.runs for name in ("metrics.jsonl", "done.json")]
        now = (*[(f.stat().st_mtime_ns, f.stat().st_size) if f.exists() else None for f in files], self._choice())
        if now == self._seen:
            return
        self._seen = now
        rows = [run.metrics() for run in self.runs]
        self._state.content = _states(self.runs, rows)
        self._draw(rows)

    def _choice(self) -> str:
        return self._chosen.value if self._chosen is not None else ""

    def _draw(self, rows: Sequence[Metrics]) -> None:
        names = [run.folder.name for run in self.runs]
        if not any(len(one) > 1 for one in rows):
            return
        self._lines("reward per step", 1.0, {n: curve(one, "reward") for n, one in zip(names, rows, strict=True)})
        place = 2.0
        for measure in self.runs[0].task().measures:
            title = f"{measure.error.replace('_', ' ')}, {measure.unit}".removesuffix(", 1")
            found = {n: curve(one, f"error/{measure.error}") for n, one in zip(names, rows, strict=True)}
            self._lines(title, place, found)
            place += 0.01
        ends: dict[str, Any] = {}
        for run, one in zip(self.runs, rows, strict=True):
            told = f"{run.folder.name}: " if len(self.runs) > 1 else ""
            ends |= {f"{told}{name}": curve(one, f"episode/{name}") for name in ("failure", "success", "timeout")}
        self._lines("how episodes end, parts", 3.0, ends)
        for k, (run, one) in enumerate(zip(self.runs, rows, strict=True)):
            of = f", {run.folder.name}" if len(self.runs) > 1 else ""
            self._areas(f"reward terms, stacked{of}", 4.0 + 0.1 * k, one)
            lengths = {f"{int(q)} %": curve(one, f"episode/length_p{q}_s") for q in LENGTHS}
            self._lines(f"length of episodes, s: quantiles{of}", 5.0 + 0.1 * k, lengths, fill=True)
            causes = sorted({name for row in one for name in row if name.startswith("failure/")})
            parts = {name[8:]: curve(one, name) for name in causes}
            parts = {name: line for name, line in parts.items() if line[1].any()}
            self._lines(f"causes of failure, parts{of}", 6.0 + 0.1 * k, parts)
            levels = sorted({name for row in one for name in row if name.startswith("level/")})
            self._lines(f"levels of ranges{of}", 7.0 + 0.1 * k, {name[6:]: curve(one, name) for name in levels})
        self._any(names, rows)

    def _any(self, names: Sequence[str], rows: Sequence[Metrics]) -> None:
        """A metric of the user's choice."""
        known = tuple(sorted({name for one in rows for row in one for name in row} - {"update", "environment_steps"}))
        if self._chosen is None and known:
            with self.tab:
                first = FIRST if FIRST in known else known[0]
                self._chosen = self.gui.add_dropdown("any metric", known, initial_value=first, order=8.0)
        if self._chosen is not None:
            chosen = self._chosen.value
            found = {n: curve(one, chosen) for n, one in zip(names, rows, strict=True)}
            self._show("any metric", chosen, 9.0, found, fill=False)

    def _lines(self, title: str, order: float, lines: Mapping[str, tuple], fill: bool = False) -> None:
        self._show(title, title, order, lines, fill)

    def _areas(self, title: str, order: float, rows: Metrics) -> None:
        """Terms that add to the reward above zero, those that take from it below; each as wide as it is large."""
        terms = {
            name[7:]: curve(rows, name)
            for name in dict.fromkeys(n for r in rows for n in r)
            if name.startswith("reward/")
        }
        size = {name: float(np.abs(values).mean()) for name, (_, values) in terms.items() if len(values)}
        named = sorted(size, key=lambda name: -size[name])
        shown = {name: terms[name] for name in named[:MOST]}
        if len(named) > MOST:
            steps = terms[named[0]][0]
            rest = sum(np.interp(steps, *terms[name]) for name in named[MOST:])
            shown["others"] = (steps, np.asarray(rest))
        if not shown:
            return
        steps = next(iter(shown.values()))[0]
        values = {name: np.interp(steps, *line) for name, line in shown.items()}
        above, below = np.zeros(len(steps)), np.zeros(len(steps))
        stacked = {}
        for name, value in values.items():
            if value.mean() >= 0:
                above = above + value
            else:
                below = below + value
            stacked[name] = (steps, above if value.mean() >= 0 else below)
        self._show(title, title, order, dict(reversed(stacked.items())), fill=True, solid=True)

    def _show(
        self, key: str, title: str, order: float, lines: Mapping[str, tuple[np.ndarray, np.ndarray]], fill: bool,
        solid: bool = False,
    ) -> None:  # fmt: skip
        """Make the plot, or give it new data; lines that have other steps are interpolated to all of them."""
        present = {name: line for name, line in lines.items() if len(line[0]) > 1}
        if not present:
            return
        steps = np.unique(np.concatenate([x for x, _ in present.values()]))
        data = (steps / 1e6, *(np.interp(steps, x, y, left=np.nan, right=np.nan) for x, y in present.values()))
        names = (title, *present)
        plot, shown = self._plots.get(key, (None, ()))
        if shown != names:
            if plot is not None:
                plot.remove()
            with self.tab:
                plot = self._plot(title, tuple(present), data, order, fill, solid)
            self._plots[key] = plot, names
        else:
            plot.data = data

    def _plot(
        self, title: str, names: Sequence[str], data: tuple[np.ndarray, ...], order: float, fill: bool, solid: bool
    ) -> Any:
        series: list[dict[str, Any]] = [{"label": "million control steps"}]
        for i, name in enumerate(names):
            line: dict[str, Any] = {"label": name, "stroke": color(i), "width": 1.0 if solid else 1.5}
            if fill:
                line["fill"] = color(i) + ("ff" if solid else "22")
            series.append(line)
        return self.gui.add_uplot(
            data,
            tuple(series),
            title=title,
            scales={"x": {"time": False}, "y": {"auto": True}},
            legend={"show": len(names) > 1 or names[0] not in title},
            height=HEIGHT,
            order=order,
        )


def curve(rows: Metrics, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Control steps, and the values of a metric then."""
    found = [(row["environment_steps"], row[name]) for row in rows if name in row]
    steps, values = np.array(found, float).reshape(-1, 2).T
    return steps, values


def _states(runs: Sequence[Run], rows: Sequence[Metrics]) -> str:
    """What becomes of each run, and its newest figures."""
    parts = []
    for k, (run, metrics) in enumerate(zip(runs, rows, strict=True)):
        last = metrics[-1] if metrics else {}
        steps = last.get("environment_steps", 0) / 1e6
        told = f"{last.get('update', 0):,.0f} updates, {steps:.3g} million control steps"
        figures = "".join(
            f"<tr><td>{escape(title(name))}</td><td>{number(key, last[key])}</td></tr>"
            for name in ("failure", "success", "timeout", "length_s", "diverged")
            if (key := f"episode/{name}") in last
        )
        dot = f'<span class=dot style="background: {color(k)}"></span>'
        parts.append(
            f"<h1>{dot}{escape(run.folder.name)}</h1>{state_of(run)}; {told}"
            f"<table><tr><th>{TITLES['episode']}, newest line</th></tr>{figures}</table>"
        )
    return f"{STYLE}<div class='r training'>{''.join(parts)}</div>"


def state_of(run: Run) -> str:
    """Whether a run is trained now, done, or was ended before."""
    if run.done_file.is_file():
        return "done"
    if is_held(run.folder):
        return "in training"
    return f"ended before its last update: robo-rl resume {escape(str(run.folder))}"


class Newest:
    """The newest policy of a run, put into a graph that is in use."""

    def __init__(self, run: Run, graph: Any) -> None:
        self.run, self.graph = run, graph
        self._seen = self._stamp()

    def _stamp(self) -> int:
        file: Path = self.run.checkpoint_file
        return file.stat().st_mtime_ns if file.is_file() else 0

    def changed(self) -> dict[str, Any] | None:
        """The weights of a checkpoint that was written since the last call; None where there is none."""
        stamp = self._stamp()
        if stamp == self._seen:
            return None
        self._seen = stamp
        return self.run.policy()[0].state_dict()
