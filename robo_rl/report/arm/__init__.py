"""What reports on arms have of their own: the forces on the pads, at rest and at their greatest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from robo_rl.contract import ImpedanceLaw
from robo_rl.evaluate.evaluation import Episodes
from robo_rl.report.findings import Findings, Plot, Section
from robo_rl.report.plots import styled

SHOWN = 6
"""Episodes in the plot."""
STEADY = 0.2
"""s: a force is static if half of so long a time has as much."""
HINTS: Mapping[str, str] = {
    "cube_friction": "Look at the left end: what slips out of the hand.",
    "cube_mass": "Look at the right end: what is too heavy for the grip.",
    "delay/cube_position": "Look at where the upper line falls: how late a camera may tell where the cube is.",
    "strength": "Look at the left end: motors that are weaker than the card says.",
}


def sections(findings: Findings) -> list[Section]:
    """Forces on the pads in the policy's first episodes."""
    episodes, spec = findings.episodes["policy"], findings.task.spec
    if "pad_force" not in episodes.recording:
        return []
    static, peak = forces(episodes, spec.control_period)
    summary = f"At most {static.max():.0f} N of static force on a pad, and {peak.max():.0f} N at an impact."
    text = (
        f"Static: the median of {STEADY:g} s. An impact: the greatest at a single control step of recorded episodes. "
    )
    law = spec.commands[0].law
    if isinstance(law, ImpedanceLaw):
        bound = law.stiffness[0] * law.clip[0]
        text += f"The grip is one part of them; what the arm adds is at most {bound:.0f} N at rest: stiffness · clip."
    else:
        text += "The grip is one part of them; what the arm adds is bounded by the effort of its motors alone."
    caption = (
        f"The greater force of the two pads in the policy's first {SHOWN} episodes. Look at the peak when they close, "
        "and at how even the force is while the cube is carried."
    )
    plot = Plot(traces(episodes, spec.control_period), caption)
    return [Section("forces", "Contact forces", text, plots=[plot], summary=summary)]


def forces(episodes: Episodes, period: float) -> tuple[np.ndarray, np.ndarray]:
    """(recorded,) N: of each recorded episode the greatest static force on a pad, and the greatest at any step."""
    window = max(1, round(STEADY / period))
    static, peak = [], []
    for i in range(episodes.recording["pad_force"].shape[1]):
        trace = _trace(episodes, i, period)
        windows = np.lib.stride_tricks.sliding_window_view(trace, min(window, len(trace)), axis=0)
        static.append(float(np.median(windows, axis=-1).max()))
        peak.append(float(trace.max()))
    return np.array(static), np.array(peak)


@styled
def traces(episodes: Episodes, period: float) -> Figure:
    """Forces over time."""
    figure = Figure((7.0, 3.2))
    axes = figure.subplots()
    for i in range(min(SHOWN, episodes.recording["pad_force"].shape[1])):
        trace = _trace(episodes, i, period).max(1)
        axes.plot(period * np.arange(len(trace)), trace, lw=1.2)
    axes.set_xlabel("time, s")
    axes.set_ylabel("force on a pad, N")
    return figure


def _trace(episodes: Episodes, i: int, period: float) -> np.ndarray:
    """(steps, pads) N, of one episode up to its end."""
    count = max(1, round(float(episodes.duration[i]) / period))
    return episodes.recording["pad_force"][:count, i]
