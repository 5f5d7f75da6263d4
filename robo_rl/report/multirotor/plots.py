"""The plots of a report that only multirotors have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.transform import Rotation

from robo_rl.evaluate.evaluation import Episodes
from robo_rl.report.plots import COLOURS, INK, POLICY, SMALL, TARGET, courses, line_of, small_axes, styled


@styled
def figure_eight(episodes: Mapping[str, Episodes], period: float, skipped: float) -> Figure:
    """Ways of policy and classical controller around the figure-eight, from ``skipped`` s on, seen from above."""
    figure, axes = small_axes((8.2, 4.0), "x, m", "y, m")
    start = round(skipped / period)
    for name, of in reversed(list(episodes.items())):
        for i, course in enumerate(courses(of, period)):
            x, y, _ = course["position"][start:].T
            axes.plot(x[::2], y[::2], lw=1, alpha=0.75, **line_of(name), label=name if not i else None)
    u, v, _ = episodes["policy"].recording["position_setpoint"][:, 0].T
    axes.plot(u[::2], v[::2], color=TARGET, lw=2.5, alpha=0.9, label="set-point", zorder=1)
    axes.set_aspect("equal", "datalim")
    axes.legend(loc="upper right")
    return figure


@styled
def top_view(episodes: Episodes, period: float) -> Figure:
    """Ways over ground, from above."""
    figure, axes = small_axes(SMALL, "x, m", "y, m")
    for i, course in enumerate(courses(episodes, period)):
        x, y, _ = course["position"].T
        u, v, _ = course["position_setpoint"].T
        axes.plot(x[::2], y[::2], color=POLICY, lw=1, alpha=0.8, label="path" if not i else None)
        axes.plot(x[0], y[0], "o", color=POLICY, ms=3, label="start" if not i else None)
        if np.ptp(u) + np.ptp(v) > 1e-3:
            axes.plot(u[::3], v[::3], "--", color=TARGET, lw=1, label="set-point" if not i else None)
        else:
            axes.plot(u[0], v[0], "+", color=TARGET, ms=11, mew=2, label="set-point" if not i else None)
    axes.set_aspect("equal", "datalim")
    axes.legend(loc="upper right")
    return figure


@styled
def tilts(episodes: Episodes, period: float) -> Figure:
    """Angle between body z and world z in the first 1.5 s."""
    figure, axes = small_axes(SMALL, "time, s", "tilt, degrees")
    for course in courses(episodes, period):
        tilt = np.degrees(np.arccos(Rotation.from_quat(course["orientation"]).as_matrix()[:, 2, 2].clip(-1, 1)))
        count = min(len(course["position"]), round(1.5 / period))
        axes.plot(np.arange(count) * period, tilt[:count], color=POLICY, lw=1, alpha=0.8)
    axes.set_ylim(bottom=0)
    axes.set_yticks(range(0, 181, 30) if axes.get_ylim()[1] > 100 else range(0, 91, 15))
    return figure


@styled
def heights(episodes: Episodes, period: float) -> Figure:
    """Height above the set-point in the first 2.5 s."""
    figure, axes = small_axes(SMALL, "time, s", "height above the set-point, m")
    for course in courses(episodes, period):
        count = min(len(course["position"]), round(2.5 / period))
        height = (course["position"] - course["position_setpoint"])[:count, 2]
        axes.plot(np.arange(count) * period, height, color=POLICY, lw=1, alpha=0.8)
    axes.axhline(0, color=TARGET, lw=1)
    return figure


@styled
def rotor_speeds(episodes: Episodes, period: float, names: Sequence[str], top: float) -> Figure:
    """Speed (lines) and command (dots, where speeds are commanded) of every rotor, first 1.5 s of the first episode."""
    figure, axes = small_axes(SMALL, "time, s", "rotor speed, rad/s")
    course = courses(episodes, period)[0]
    count = min(len(course["position"]), round(1.5 / period))
    time = np.arange(count) * period
    for i, name in enumerate(names):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(time, course["rotor_speed"][:count, i], color=colour, label=name)
        if "rotor_speed_command" in course:
            axes.plot(time[::2], course["rotor_speed_command"][:count:2, i], ".", color=colour, ms=2, alpha=0.6)
    axes.axhline(top, color=INK, lw=0.8, ls=":")
    axes.set_ylim(0, 1.08 * top)
    axes.legend(ncols=4, loc="lower right")
    return figure
