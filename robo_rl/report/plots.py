"""The plots of a report: small SVG drawings that take their ink from the page, so they are legible on light and dark.

Colours are those of Okabe and Ito 2008, which colour-blind people can tell apart; line styles differ as well.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from robo_rl.files.escaping import plot_label
from robo_rl.policies.loading import CLASSICAL
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks import Measure

if TYPE_CHECKING:
    from robo_rl.evaluate.evaluation import Episodes
    from robo_rl.evaluate.transfer import Transfer

matplotlib.use("agg")

POLICY, CONTROLLER, TARGET, THIRD = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A8F98", "#B8A800")
INK = "#010203"  # becomes the page's colour
SMALL, WIDE = (4.0, 2.7), (8.2, 2.9)  # inches at 72 points each
SHORT = 0.5
"""s: shorter times are given in ms."""
POINTS = 300
"""In a line over time, about."""
SPREAD = 10.0
"""Errors that differ more than so many times are drawn on a logarithmic axis."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.15,
    "grid.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    **{f"{what}.color": INK for what in ("xtick", "ytick", "text")},
    **{f"axes.{what}color": INK for what in ("edge", "label", "title")},
}
_count = itertools.count()
styled = matplotlib.rc_context(STYLE)
"""Decorates what draws a figure."""


def line_of(name: str) -> dict[str, Any]:
    """Colour and style of a policy's lines: "policy", "policy 2", and so on, or the classical controller."""
    if name == CLASSICAL:
        return {"color": CONTROLLER, "linestyle": "--"}
    number = int(name.removeprefix("policy") or 1) - 1
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": ("-", "-.", ":")[number % 3]}


@styled
def training(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> list[tuple[Figure, str]]:
    """Reward, part of episodes alive, a student's error and levels of curricula over the control steps; what to see.

    ``runs`` has the metrics of each policy that is a run; the levels are those of the first one.
    """
    (first, metrics), *_ = runs.items()
    levels = [name for name in metrics[-1] if name.startswith("level/")]
    rises = "If it still {} at the end, more updates would help."
    panels = [
        ("reward per step", "reward", rises.format("rises")),
        ("episodes without failure", "alive", "Fraction of the episodes of an update."),
        ("difference in commands, of their range", "error", rises.format("falls")),
    ]
    drawn = []
    for label, key, caption in panels:
        present = {name: of for name, of in runs.items() if any(key in row for row in of)}
        if not present:
            continue
        figure, axes = small_axes(SMALL, "control steps, millions", label)
        for name, of in present.items():
            axes.plot(_steps(of), [row.get(key, math.nan) for row in of], **line_of(name), label=name)
        if len(present) > 1:
            axes.legend()
        if key == "alive":
            axes.set_ylim(-0.03, 1.03)
        drawn.append((figure, caption))
    if levels:
        figure, axes = small_axes(SMALL, "control steps, millions", "level of the curriculum")
        for colour, key in zip(itertools.cycle(COLOURS), levels):
            values = [row.get(key, math.nan) for row in metrics]
            axes.plot(_steps(metrics), values, color=colour, label=plot_label(key.removeprefix("level/")))
        axes.legend()
        axes.set_ylim(-0.03, 1.03)
        of_which = f" Of {first}." if len(runs) > 1 else ""
        drawn.append((figure, f"Level 1 is the full difficulty.{of_which}"))
    return drawn


def _steps(metrics: Sequence[Mapping[str, float]]) -> np.ndarray:
    """Control steps, in millions."""
    return np.array([row["environment_steps"] for row in metrics]) / 1e6


@styled
def errors(
    series: Mapping[str, Sequence[np.ndarray]], ended: Mapping[str, Sequence[bool]], measure: Measure, period: float
) -> Figure:
    """The error of a measure over time, of several episodes (steps,) of each; a cross where one failed (``ended``)."""
    factor, unit = scaled(measure.unit)
    figure, axes = small_axes(SMALL, "time, s", f"{spoken(measure.error)}, {unit}")
    for name, episodes in reversed(list(series.items())):
        for i, (error, failed) in enumerate(zip(episodes, ended[name], strict=True)):
            time, every = np.arange(len(error)) * period, -(-len(error) // POINTS)
            label = name if not i and len(series) > 1 else None
            axes.plot(time[::every], factor * error[::every], **line_of(name), lw=1, alpha=0.8, label=label)
            if failed:
                axes.plot(time[-1], factor * error[-1], "x", color=line_of(name)["color"])
    axes.set_ylim(bottom=0)
    if len(series) > 1:
        axes.legend()
    return figure


@styled
def distribution(errors: Mapping[str, np.ndarray], measure: Measure) -> Figure:
    """Part of all episodes (n,) of each that stay within an error; failed episodes (NaN) never do."""
    factor, unit = scaled(measure.unit)
    figure, axes = small_axes(SMALL, f"{spoken(measure.error)}, {unit} (at most)", "fraction of all episodes, %")
    for name, of in reversed(list(errors.items())):
        error = np.sort(of[~np.isnan(of)])
        part = 100 * np.arange(1, len(error) + 1) / len(of)
        axes.step(factor * error, part, where="post", **line_of(name), label=name)
    known = np.concatenate(list(errors.values()))
    low, high = np.quantile(known[~np.isnan(known)], [0.02, 0.98]) if not np.isnan(known).all() else (0.0, 1.0)
    if low > 0 and high > SPREAD * low:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, position: f"{value:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=0)
    axes.set_ylim(-2, 102)
    if len(errors) > 1:
        axes.legend(loc="lower right")
    return figure


@styled
def survival(episodes: Mapping[str, Episodes], length: float) -> Figure:
    """Part of all episodes that have not failed yet, over time."""
    figure, axes = small_axes(SMALL, "time, s", "not failed yet, %")
    least = 95.0
    for name, of in reversed(list(episodes.items())):
        ends = np.sort(of.duration[~of.survived])
        part = 100 * (1 - np.arange(len(ends) + 1) / len(of))
        least = min(least, part[-1] - 1)
        axes.step([0.0, *ends, length], [*part, part[-1]], where="post", **line_of(name), label=name)
    axes.set(ylim=(least, 100.2), xlim=(0, length))
    if len(episodes) > 1:
        axes.legend(loc="lower left")
    return figure


@styled
def success(episodes: Mapping[str, Episodes], length: float) -> Figure:
    """Part of all episodes that have succeeded, over time."""
    figure, axes = small_axes(SMALL, "time, s", "succeeded, %")
    for name, of in reversed(list(episodes.items())):
        ends = np.sort(of.duration[of.success])
        part = 100 * np.arange(len(ends) + 1) / len(of)
        axes.step([0.0, *ends, length], [*part, part[-1]], where="post", **line_of(name), label=name)
    axes.set(ylim=(-2, 102), xlim=(0, length))
    if len(episodes) > 1:
        axes.legend(loc="upper left")
    return figure


@styled
def perturbation(
    name: str,
    policies: Mapping[str, Sequence[Mapping[str, float]]],
    measure: Measure,
    trained: Range,
    rate: str = "success",
) -> Figure:
    """The ``rate`` of success with its 95 % interval above, an error below, over the values of one range."""
    factor, label = range_label(name, trained)
    scale, unit = scaled(measure.unit)
    figure = Figure(figsize=(4.0, 3.5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for policy, rows in reversed(list(policies.items())):
        line = {**line_of(policy), "marker": "s" if policy == CLASSICAL else "o", "ms": 3.5}
        x = [factor * row["value"] for row in rows]
        low, middle, high = ([100 * row[key] for row in rows] for key in ("success_low", "success", "success_high"))
        upper.fill_between(x, low, high, color=line["color"], alpha=0.15, lw=0)
        upper.plot(x, middle, **line, label=policy)
        lower.plot(x, [scale * row[measure.key] for row in rows], **line)
    for axes in (upper, lower):
        axes.set_xlim(*axes.get_xlim())  # as wide as what was run, not as what was trained
        axes.axvspan(*(factor * end for end in trained.end), color=TARGET, alpha=0.08, lw=0)
        axes.patch.set_alpha(0)
    upper.set(ylim=(-3, 103), ylabel=f"{rate}, %")
    if len(policies) > 1:
        upper.legend()
    lower.set(ylabel=f"{spoken(measure.error)}, {unit}", xlabel=label, ylim=(0, None))
    return figure


@styled
def transfer(found: Transfer, ranges: Mapping[str, Range]) -> Figure:
    """Success in other simulators above, beyond the ranges of training below, each with its 95 % interval."""
    names = list(found.perturbations)
    rows, columns = -(-len(names) // 4), 4
    height = 0.7 + 0.28 * len(found.engines)
    figure = Figure(figsize=(8.2, height + 1.9 * rows), layout="constrained")
    ratios = [height, 1.9 * rows] if rows else [height]
    parts = figure.subfigures(len(ratios), 1, height_ratios=ratios, squeeze=False)[:, 0]
    _engines(parts[0].subplots(), found)
    if rows:
        grid = parts[1].subplots(rows, columns, sharey=True, squeeze=False)
        for axes in grid.flat[len(names) :]:
            axes.remove()
        for axes, name in zip(grid.flat, names, strict=False):
            _beyond(axes, name, found, ranges[name])
        for row in grid:
            row[0].set_ylabel("success, %")
    return figure


def _engines(axes: Axes, found: Transfer) -> None:
    table = [("training", found.home, TARGET), *((row["engine"], row, POLICY) for row in found.engines)]
    for i, (_, row, colour) in enumerate(table):
        low, middle, high = (100 * row[key] for key in ("success_low", "success", "success_high"))
        axes.plot([low, high], [-i, -i], color=colour, lw=2.5, alpha=0.4, solid_capstyle="butt")
        axes.plot(middle, -i, "o", color=colour, ms=5)
    axes.axvline(100 * found.home["success"], color=TARGET, lw=0.8, ls=":")
    least = min(row["success_low"] for _, row, _ in table)
    axes.set(
        xlabel="success, % (95 % interval)", xlim=(min(90.0, 100 * least - 2), 100.5), ylim=(-len(table) + 0.4, 0.6)
    )
    axes.set_yticks([-i for i in range(len(table))], [name for name, _, _ in table])
    axes.patch.set_alpha(0)


def _beyond(axes: Axes, name: str, found: Transfer, trained: Range) -> None:
    factor, label = range_label(name, trained)
    rows = found.perturbations[name]
    x = [factor * row["value"] for row in rows]
    axes.axvspan(*(factor * end for end in trained.end), color=TARGET, alpha=0.1, lw=0)
    axes.axhline(100 * found.home["success"], color=TARGET, lw=0.8, ls=":")
    for side in (1, -1):  # below and above what was trained; nothing is known in between
        own = [i for i, row in enumerate(rows) if side * (row["value"] - sum(trained.end) / 2) > 0]
        at = [x[i] for i in own]
        low, middle, high = ([100 * rows[i][key] for i in own] for key in ("success_low", "success", "success_high"))
        axes.fill_between(at, low, high, color=POLICY, alpha=0.15, lw=0)
        axes.plot(at, middle, "o-", color=POLICY, ms=3.5)
    axes.set(ylim=(-3, 103), xlabel=label)
    axes.patch.set_alpha(0)


def courses(episodes: Episodes, period: float) -> list[dict[str, np.ndarray]]:
    """Per recorded robot: its quantities (steps, k) by name, until its episode ended."""
    steps = [round(duration / period) for duration in episodes.duration for _ in range(episodes.team)]
    count = next(iter(episodes.recording.values())).shape[1]
    return [{name: value[: steps[i], i] for name, value in episodes.recording.items()} for i in range(count)]


def spoken(name: str) -> str:
    """The name of a quantity for people."""
    return name.replace("_", " ").replace("/", " ")


def scaled(unit: str) -> tuple[float, str]:
    """A factor, and the unit of what it makes of a quantity: lengths are shown in cm."""
    return (100.0, "cm") if unit == "m" else (1.0, unit)


def range_label(name: str, bounds: Range) -> tuple[float, str]:
    """A factor, and what the values of a range that it multiplies are called: short times are shown in ms."""
    short = bounds.unit == "s" and max(map(abs, bounds.end)) < SHORT
    unit = {"": "", "×": ", × nominal"}.get(bounds.unit, f", {'ms' if short else bounds.unit}")
    each = f" (each of {bounds.count})" if bounds.count else ""
    return 1000.0 if short else 1.0, spoken(name) + each + unit


def small_axes(size: tuple[float, float], x: str, y: str) -> tuple[Figure, Axes]:
    """One plot of a size (inches) with labels, transparent as the page wants it."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.patch.set_alpha(0)
    return figure, axes


def svg(figure: Figure) -> str:
    """The figure as an <svg> element that scales, and whose ids no other one has."""
    figure.patch.set_alpha(0)
    stream = io.StringIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"plot {next(_count)}"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href", "href")
    return text.replace("<svg", '<svg role="img"', 1)
