"""A picture of what was identified."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robo_rl.identification.estimate import Estimate
from robo_rl.identification.fit import Identified
from robo_rl.identification.multirotor.fit import Flown
from robo_rl.report.plots import CONTROLLER, INK, POLICY, STYLE

UNKNOWN = "#8A8F98"
"""Colour of what the record does not determine."""


def draw_identified(found: Identified, joints: Sequence[str], period: float) -> Figure:
    """Predicted and recorded angles of three joints in held-out windows; parameters with two standard errors."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.2, 6.0), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=[3, 2], squeeze=False)[:, 0]
        rows = above.subplots(3, 1, sharex=True)
        recorded = found.predictions["recorded"]
        length = recorded.shape[1]
        shown = range(min(8, len(recorded)))
        for axes, joint in zip(rows, (0, 1, 2), strict=True):
            for i in shown:
                time = (i * (length + 2) + np.arange(length)) * period
                for name, colour in (("nominal", CONTROLLER), ("fitted", POLICY)):
                    axes.plot(
                        time, found.predictions[name][i, :, joint], color=colour, lw=1.2, label=None if i else name
                    )
                axes.plot(time, recorded[i, :, joint], ".", color=INK, ms=2.5, label=None if i else "recorded")
            axes.set_ylabel(f"{joints[joint].removesuffix('_joint')}, rad")
            axes.patch.set_alpha(0)
        rows[0].legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 0.98))
        rows[-1].set_xlabel("windows that were left out, one after the other, s")
        _draw_estimates(below.subplots(), found.estimates)
        return figure


def draw_flown(found: Flown, period: float) -> Figure:
    """Errors of the attitude that is predicted in held-out windows; parameters with two standard errors."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.2, 6.0), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=[2, 3], squeeze=False)[:, 0]
        axes = above.subplots()
        time = (1 + np.arange(found.traces["fitted"].shape[1])) * period
        for name, colour in (("nominal", CONTROLLER), ("fitted", POLICY)):
            size = np.linalg.norm(found.traces[name], axis=2)
            axes.plot(time, size.T, color=colour, lw=0.6, alpha=0.4)
            axes.plot(time, np.sqrt(np.mean(size**2, 0)), color=colour, lw=2.0, label=name)
        axes.set_yscale("log")
        axes.set_xlabel("time without sensors, s")
        axes.set_ylabel("error of the attitude, rad")
        axes.legend(loc="lower right")
        axes.patch.set_alpha(0)
        _draw_estimates(below.subplots(), found.estimates)
        return figure


def _draw_estimates(axes: Axes, estimates: Sequence[Estimate]) -> None:
    """Parameters, with two standard errors to both sides."""
    for i, estimate in enumerate(estimates):
        unknown = estimate.unknown
        middle = (unknown.inner(estimate.value) - unknown.inner(unknown.nominal)) / unknown.spread
        colour = POLICY if estimate.determined else UNKNOWN
        axes.errorbar(middle, -i, xerr=2 * estimate.error / unknown.spread, fmt="o", color=colour, ms=4, capsize=2)
    axes.axvline(0, color=INK, lw=0.8, ls=":")
    axes.set_yticks([-i for i in range(len(estimates))], [e.unknown.name for e in estimates])
    axes.set_xlabel("away from nominal, in units of how far it may well be (grey: not determined)")
    axes.patch.set_alpha(0)
