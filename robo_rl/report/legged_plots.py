"""The plots of a report on a robot on legs, in the style of ``robo_rl.report.plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from robo_rl.report.plots import (
    POLICY,
    SMALL,
    STYLE,
    TARGET,
    WIDE,
    small_axes,
    svg,
)

STANCE = 1.0
"""N, above which a foot counts as on the ground."""


def velocities(recording: Mapping[str, np.ndarray], period: float) -> str:
    """Commanded and true velocities of the first walk, in the heading frame."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.2, 4.2), layout="constrained")
        rows = figure.subplots(3, 1, sharex=True)
        time = np.arange(len(recording["position"])) * period
        x, y, z, w = recording["orientation"][:, 0].T
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        u, v, _ = recording["linear_velocity"][:, 0].T
        true = (np.cos(yaw) * u + np.sin(yaw) * v, np.cos(yaw) * v - np.sin(yaw) * u)
        wanted = (*recording["linear_velocity_command"][:, 0].T, recording["yaw_rate_command"][:, 0, 0])
        labels = ("forward, m/s", "to the left, m/s", "turn left, rad/s")
        for axes, label, want, have in zip(
            rows, labels, wanted, (*true, recording["angular_velocity"][:, 0, 2]), strict=True
        ):
            axes.plot(time, have, color=POLICY, lw=0.9, label="true")
            axes.plot(time, want, "--", color=TARGET, lw=1.6, label="commanded")
            axes.set_ylabel(label)
            axes.patch.set_alpha(0)
        rows[0].legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 0.98))
        rows[-1].set_xlabel("time, s")
        return svg(figure)


def gait(force: np.ndarray, feet: Sequence[str], period: float, seconds: float = 3.0) -> str:
    """Which feet of the first walk are on the ground, of their forces (steps, F) N, in its middle."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes((WIDE[0], 1.9), "time, s", "")
        begin = max(0, (len(force) - round(seconds / period)) // 2)
        down = force[begin : begin + round(seconds / period)] > STANCE
        for row in range(len(feet)):
            changes = np.flatnonzero(np.diff(np.concatenate([[False], down[:, row], [False]])))
            starts, ends = (begin + changes[0::2]) * period, (begin + changes[1::2]) * period
            axes.broken_barh(list(zip(starts, ends - starts, strict=True)), (-row - 0.35, 0.7), color=POLICY)
        axes.set_yticks([-row for row in range(len(feet))], [foot.removesuffix("_foot") for foot in feet])
        return svg(figure)


def falls(survived: np.ndarray, duration: np.ndarray, length: float) -> str:
    """Part of all walks that have not fallen yet, over time."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, "time, s", "still walking, %")
        ends = np.sort(duration[~survived])
        part = 100 * (1 - np.arange(len(ends) + 1) / len(survived))
        axes.step([0.0, *ends, length], [*part, part[-1]], where="post", color=POLICY)
        axes.set(ylim=(min(95.0, part[-1] - 1), 100.2), xlim=(0, length))
        return svg(figure)


def walking_errors(error: np.ndarray, name: str, unit: str) -> str:
    """Part of the walks without a fall that stay within an error."""
    with matplotlib.rc_context(STYLE):
        figure, axes = small_axes(SMALL, f"{name.replace('_', ' ')}, {unit} (at most)", "part of the walks, %")
        known = np.sort(error[~np.isnan(error)])
        axes.step(known, 100 * np.arange(1, len(known) + 1) / max(len(known), 1), where="post", color=POLICY)
        axes.set(ylim=(-2, 102), xlim=(0, None))
        return svg(figure)
