"""The plots of a report that only legged robots have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from robo_rl.controllers.rotation import yaw_angle
from robo_rl.report.plots import POLICY, TARGET, WIDE, small_axes, styled

STANCE = 1.0
"""N, above which a foot counts as on the ground."""


def true_velocities(course: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(steps,) each: forward and to the left in the heading frame, m/s; turning left, rad/s."""
    yaw = yaw_angle(tuple(course["orientation"].T))
    u, v, _ = course["linear_velocity"].T
    forward, left = np.cos(yaw) * u + np.sin(yaw) * v, np.cos(yaw) * v - np.sin(yaw) * u
    return forward, left, course["angular_velocity"][:, 2]


@styled
def velocities(course: Mapping[str, np.ndarray], period: float) -> Figure:
    """Commanded and true velocities in the heading frame, of an episode: quantities (steps, k) by name."""
    figure = Figure(figsize=(8.2, 4.2), layout="constrained")
    rows = figure.subplots(3, 1, sharex=True)
    time = np.arange(len(course["position"])) * period
    wanted = (*course["linear_velocity_command"].T, course["yaw_rate_command"][:, 0])
    labels = ("forward, m/s", "to the left, m/s", "turn left, rad/s")
    for axes, label, want, have in zip(rows, labels, wanted, true_velocities(course), strict=True):
        axes.plot(time, have, color=POLICY, lw=0.9, label="true")
        axes.plot(time, want, "--", color=TARGET, lw=1.6, label="commanded")
        axes.set_ylabel(label)
        axes.patch.set_alpha(0)
    rows[0].legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 0.98))
    rows[-1].set_xlabel("time, s")
    return figure


@styled
def gait(force: np.ndarray, feet: Sequence[str], period: float, seconds: float = 3.0) -> Figure:
    """Which feet of the first episode are on the ground, of their forces (steps, F) N, in its middle."""
    figure, axes = small_axes((WIDE[0], 1.9), "time, s", "")
    begin = max(0, (len(force) - round(seconds / period)) // 2)
    down = force[begin : begin + round(seconds / period)] > STANCE
    for row in range(len(feet)):
        changes = np.flatnonzero(np.diff(np.concatenate([[False], down[:, row], [False]])))
        starts, ends = (begin + changes[0::2]) * period, (begin + changes[1::2]) * period
        axes.broken_barh(list(zip(starts, ends - starts, strict=True)), (-row - 0.35, 0.7), color=POLICY)
    axes.set_yticks([-row for row in range(len(feet))], [foot.removesuffix("_foot") for foot in feet])
    return figure
