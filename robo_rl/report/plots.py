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
from scipy.spatial.transform import Rotation

if TYPE_CHECKING:
    from robo_rl.transfer import Transfer
    from sim.tasks import Measure

matplotlib.use("agg")

POLICY, CONTROLLER, TARGET, THIRD = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ROTORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A8F98", "#B8A800")
INK = "#010203"  # becomes the page's colour
SMALL, WIDE = (4.0, 2.7), (8.2, 2.9)  # inches at 72 points each
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
PERTURBATIONS = {
    "mass": "mass, × nominal",
    "thrust": "thrust, × nominal",
    "inertia": "moments of inertia, × nominal",
    "rise_time": "motors' rise time, × nominal",
    "delay": "latency of the sensors, ms",
    "wind": "wind along x, y and z, m/s",
    "noise": "sensor noise, × nominal",
    "payload": "payload, kg",
    "ground_friction": "friction of the ground",
    "strength": "motor strength, × nominal",
    "stiffness": "gain of the motors, × nominal",
    "command_delay": "latency of the motors, ms",
}
MILLISECONDS = ("delay", "command_delay")
_count = itertools.count()


def training(metrics: Sequence[Mapping[str, float]]) -> list[str]:
    """Reward, part of episodes alive, a student's error and levels of curricula over the control steps."""
    steps = np.array([row["environment_steps"] for row in metrics]) / 1e6
    levels = [name for name in metrics[-1] if name.startswith("level/")]
    panels = [
        ("reward per step", {"": "reward"}),
        ("part alive after an update", {"": "alive"}),
        ("difference in commands, of their range", {"": "error"}),
        ("level of the curriculum", {name.removeprefix("level/"): name for name in levels}),
    ]
    drawn = []
    for label, lines in panels:
        present = {key: name for key, name in lines.items() if any(name in row for row in metrics)}
        if not present:
            continue
        with matplotlib.rc_context(STYLE):
            figure, axes = small_axes(SMALL, "control steps, millions", label)
            for colour, (key, name) in zip(itertools.cycle(ROTORS), present.items()):
                axes.plot(steps, [row.get(name, math.nan) for row in metrics], color=colour, label=key)
            if any(present):
                axes.legend()
            if name not in ("reward", "error"):
                axes.set_ylim(-0.03, 1.03)
            drawn.append(svg(figure))
    return drawn


def errors(flights: Mapping[str, Any], period: float) -> str:
    """Distance from the set-point over time, several flights of policy and controller."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, "time, s", "distance from the set-point, cm")
        for name, colour, style in (("controller", CONTROLLER, "--"), ("policy", POLICY, "-")):
            for i, (course, steps) in enumerate(_courses(flights[name], period)):
                away = np.linalg.norm(course["position"] - course["position_setpoint"], axis=-1)
                time = np.arange(steps) * period
                axes.plot(
                    time[::3], 100 * away[::3], style, color=colour, lw=1, alpha=0.8, label=name if not i else None
                )
                if steps < len(flights[name].recording["position"]):
                    axes.plot(time[-1], 100 * away[-1], "x", color=colour)
        axes.set_ylim(bottom=0)
        axes.legend()
        return svg(figure)


def tilts(flights: Any, period: float) -> str:
    """Angle between body z and world z in the first 1.5 s."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, "time, s", "tilt, degrees")
        for course, steps in _courses(flights, period):
            tilt = np.degrees(np.arccos(Rotation.from_quat(course["orientation"]).as_matrix()[:, 2, 2].clip(-1, 1)))
            count = min(steps, round(1.5 / period))
            axes.plot(np.arange(count) * period, tilt[:count], color=POLICY, lw=1, alpha=0.8)
        axes.set_ylim(bottom=0)
        axes.set_yticks(range(0, 181, 30) if axes.get_ylim()[1] > 100 else range(0, 91, 15))
        return svg(figure)


def heights(flights: Any, period: float) -> str:
    """Height above the set-point in the first 2.5 s."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, "time, s", "height above the set-point, m")
        for course, steps in _courses(flights, period):
            count = min(steps, round(2.5 / period))
            height = (course["position"] - course["position_setpoint"])[:count, 2]
            axes.plot(np.arange(count) * period, height, color=POLICY, lw=1, alpha=0.8)
        axes.axhline(0, color=TARGET, lw=1)
        return svg(figure)


def distribution(errors: Mapping[str, np.ndarray]) -> str:
    """Part of all flights that stay within a distance; failed flights (NaN) never do."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, "position error, cm (at most)", "part of all flights, %")
        for name, colour, style in (("controller", CONTROLLER, "--"), ("policy", POLICY, "-")):
            error = np.sort(errors[name][~np.isnan(errors[name])])
            part = 100 * np.arange(1, len(error) + 1) / len(errors[name])
            axes.step(100 * error, part, style, where="post", color=colour, label=name)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, position: f"{value:g}")
        axes.set_ylim(-2, 102)
        axes.legend(loc="lower right")
        return svg(figure)


def top_view(flights: Any, period: float) -> str:
    """Ways over ground, from above."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, "x, m", "y, m")
        for i, (course, _) in enumerate(_courses(flights, period)):
            x, y, _ = course["position"].T
            u, v, _ = course["position_setpoint"].T
            axes.plot(x[::2], y[::2], color=POLICY, lw=1, alpha=0.8, label="way" if not i else None)
            axes.plot(x[0], y[0], "o", color=POLICY, ms=3, label="start" if not i else None)
            if np.ptp(u) + np.ptp(v) > 1e-3:
                axes.plot(u[::3], v[::3], "--", color=TARGET, lw=1, label="set-point" if not i else None)
            else:
                axes.plot(u[0], v[0], "+", color=TARGET, ms=11, mew=2, label="set-point" if not i else None)
        axes.set_aspect("equal", "datalim")
        axes.legend(loc="upper right")
        return svg(figure)


def rotor_speeds(flights: Any, period: float, names: Sequence[str], top: float) -> str:
    """Speed (lines) and command (dots) of every rotor, first 1.5 s of the first flight."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, "time, s", "rotor speed, rad/s")
        course, steps = next(iter(_courses(flights, period)))
        count = min(steps, round(1.5 / period))
        time = np.arange(count) * period
        for i, name in enumerate(names):
            colour = ROTORS[i % len(ROTORS)]
            axes.plot(time, course["rotor_speed"][:count, i], color=colour, label=name)
            axes.plot(time[::2], course["rotor_speed_command"][:count:2, i], ".", color=colour, ms=2, alpha=0.6)
        axes.axhline(top, color=INK, lw=0.8, ls=":")
        axes.set_ylim(0, 1.08 * top)
        axes.legend(ncols=4, loc="lower right")
        return svg(figure)


def figure_eight(flights: Mapping[str, Any], period: float, skipped: float) -> str:
    """Ways of policy and controller around the figure-eight, from ``skipped`` s on, seen from above."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes((8.2, 4.0), "x, m", "y, m")
        start = round(skipped / period)
        for name, colour, style in (("controller", CONTROLLER, "--"), ("policy", POLICY, "-")):
            for i, (course, _) in enumerate(_courses(flights[name], period)):
                x, y, _ = course["position"][start:].T
                axes.plot(x[::2], y[::2], style, color=colour, lw=1, alpha=0.75, label=name if not i else None)
        u, v, _ = flights["policy"].recording["position_setpoint"][:, 0].T
        axes.plot(u[::2], v[::2], color=TARGET, lw=2.5, alpha=0.9, label="set-point", zorder=1)
        axes.set_aspect("equal", "datalim")
        axes.legend(loc="upper right")
        return svg(figure)


def perturbation(
    name: str, policies: Mapping[str, Sequence[Mapping[str, float]]], measure: Measure, trained: Sequence[float]
) -> str:
    """Success with its 95 % interval above, an error below, over the values of one perturbation."""
    factor = 1000.0 if name in MILLISECONDS else 1.0
    scale, unit = (100.0, "cm") if measure.unit == "m" else (1.0, measure.unit)
    lines = {"policy": (POLICY, "o-"), "controller": (CONTROLLER, "s--")}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.0, 3.5), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        for policy, rows in policies.items():
            colour, style = lines[policy]
            x = [factor * row["value"] for row in rows]
            low, middle, high = ([100 * row[key] for row in rows] for key in ("success_low", "success", "success_high"))
            upper.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
            upper.plot(x, middle, style, color=colour, ms=3.5, label=policy)
            lower.plot(x, [scale * row[measure.key] for row in rows], style, color=colour, ms=3.5)
        for axes in (upper, lower):
            low, high = axes.get_xlim()
            axes.set_xlim(low, high)  # as wide as what was flown, not as what was trained
            axes.axvspan(factor * trained[0], factor * trained[1], color=TARGET, alpha=0.08, lw=0)
            axes.patch.set_alpha(0)
        upper.set(ylim=(-3, 103), ylabel="success, %")
        if len(policies) > 1:
            upper.legend()
        lower.set(ylabel=f"error, {unit}", xlabel=PERTURBATIONS.get(name, name), ylim=(0, None))
        return svg(figure)


def draw_transfer(found: Transfer, ranges: Mapping[str, Any]) -> Figure:
    """Success in other engines above, beyond the ranges of training below, each with its 95 % interval."""
    names = list(found.perturbations)
    rows, columns = -(-len(names) // 4), 4
    with matplotlib.rc_context(STYLE):
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
                _beyond(axes, name, found, ranges[name].end)
            for row in grid:
                row[0].set_ylabel("success, %")
        return figure


def transfer(found: Transfer, ranges: Mapping[str, Any]) -> str:
    """``draw_transfer`` as SVG."""
    with matplotlib.rc_context(STYLE):
        return svg(draw_transfer(found, ranges))


def _engines(axes: Axes, found: Transfer) -> None:
    table = [("home", found.home, TARGET), *((row["engine"], row, POLICY) for row in found.engines)]
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


def _beyond(axes: Axes, name: str, found: Transfer, trained: Sequence[float]) -> None:
    factor = 1000.0 if name in MILLISECONDS else 1.0
    rows = found.perturbations[name]
    x = [factor * row["value"] for row in rows]
    axes.axvspan(factor * trained[0], factor * trained[1], color=TARGET, alpha=0.1, lw=0)
    axes.axhline(100 * found.home["success"], color=TARGET, lw=0.8, ls=":")
    for side in (1, -1):  # below and above what was trained; nothing is known in between
        own = [i for i, row in enumerate(rows) if side * (row["value"] - sum(trained) / 2) > 0]
        at = [x[i] for i in own]
        low, middle, high = ([100 * rows[i][key] for i in own] for key in ("success_low", "success", "success_high"))
        axes.fill_between(at, low, high, color=POLICY, alpha=0.15, lw=0)
        axes.plot(at, middle, "o-", color=POLICY, ms=3.5)
    axes.set(ylim=(-3, 103), xlabel=PERTURBATIONS.get(name, name))
    axes.patch.set_alpha(0)


def _courses(flights: Any, period: float) -> list[tuple[dict[str, np.ndarray], int]]:
    """Per recorded flight: its quantities (steps, k) until it ended, and the number of steps."""
    recording = flights.recording
    found = []
    for i in range(recording["position"].shape[1]):
        steps = min(round(flights.duration[i] / period), len(recording["position"]))
        found.append(({name: value[:steps, i] for name, value in recording.items()}, steps))
    return found


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
    with matplotlib.rc_context({"svg.hashsalt": f"plot {next(_count)}"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href", "href")
    return text.replace("<svg", '<svg role="img"', 1)
