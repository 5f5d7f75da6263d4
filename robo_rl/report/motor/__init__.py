"""What reports on motors have of their own: loci of the current within its limit, and steps of current and torque."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from robo_rl.evaluate.evaluation import Episodes
from robo_rl.report.findings import RECORDED, Findings, Plot, Section
from robo_rl.report.plots import POLICY, SMALL, TARGET, WIDE, courses, line_of, small_axes, styled
from robo_rl.sim.robots.motor import PmsmCard

HINTS: Mapping[str, str] = {
    "inductance_d": "Look at the left end: less inductance than the model's makes the loop gain too high.",
    "inductance_q": "Look at the left end: less inductance than the model's makes the loop gain too high.",
    "saturation": "Look at the right end: inductance that falls with the current.",
    "dead_time": "Look at how the error rises: voltage that the inverter loses in every period.",
    "supply_voltage": "Look at the left end: less voltage makes steps slower, whoever controls.",
    "speed": "Look at both ends: back-EMF leaves less voltage there.",
    "noise": "Look at how the error rises: the accuracy that current sensors need.",
}


def sections(findings: Findings) -> list[Section]:
    """Loci, currents over time and the torque that they make."""
    card, period = findings.task.spec.robot, findings.task.spec.control_period
    episodes = findings.episodes["policy"]
    if not isinstance(card, PmsmCard) or "stator_current" not in episodes.recording:
        return []
    peak = float(np.linalg.norm(episodes.recording["stator_current"], axis=-1).max())
    drawn = [
        Plot(
            loci(episodes, period, card.current_limit),
            f"The current of the policy's first {RECORDED} episodes, d and q, and its limit as a circle. Look at how "
            "near it comes, and at whether steps go straight.",
        ),
        Plot(
            torques(findings.episodes, period, card),
            "Torque in episode 1, by the card's figures. Look at overshoot, and at how long a step takes.",
        ),
        Plot(
            currents(findings.episodes, period),
            "Current in episode 1, d below and q above. Look at how d is disturbed while q moves, and at the noise.",
            wide=True,
        ),
    ]
    text = (
        f"An episode fails when the current passes {card.current_limit:g} A. The robot's gate stops at a measured "
        "current above the limit; the guard in the policy's graph changes the voltage before."
    )
    summary = f"The greatest current in these episodes is {peak:.0f} A, of {card.current_limit:g} A."
    figures = {"largest_current_a": peak}
    return [Section("currents", "Currents and torque", text, plots=drawn, figures=figures, summary=summary)]


@styled
def loci(episodes: Episodes, period: float, limit: float) -> Figure:
    """Currents (A) in the plane of d and q, their set-points, and the circle of the ``limit`` (A)."""
    figure, axes = small_axes(SMALL, "d current, A", "q current, A")
    for i, course in enumerate(courses(episodes, period)):
        axes.plot(*course["stator_current"].T, color=POLICY, lw=0.8, alpha=0.7, label="current" if not i else None)
        axes.plot(*course["current_setpoint"].T, ".", color=TARGET, ms=3, label="set-point" if not i else None)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(limit * np.cos(angle), limit * np.sin(angle), "--", lw=1, color="crimson", label="limit")
    axes.set_aspect("equal", "datalim")
    axes.legend(loc="upper right")
    return figure


@styled
def currents(episodes: Mapping[str, Episodes], period: float) -> Figure:
    """d and q (A) of the first episode of each policy over time (ms)."""
    figure = Figure(figsize=(WIDE[0], 1.5 * WIDE[1]), layout="constrained")
    every = figure.subplots(2, 1, sharex=True)
    for axes, k, label in zip(every, (1, 0), ("q current, A", "d current, A"), strict=True):
        for name, of in reversed(list(episodes.items())):
            course = courses(of, period)[0]
            time = 1e3 * period * np.arange(len(course["stator_current"]))
            axes.plot(time, course["stator_current"][:, k], lw=1, label=name, **line_of(name))
        axes.plot(time, course["current_setpoint"][:, k], color=TARGET, lw=1.5, alpha=0.8, label="set-point", zorder=1)
        axes.set_ylabel(label)
    every[0].legend(loc="upper right", ncols=4)
    every[1].set_xlabel("time, ms")
    return figure


@styled
def torques(episodes: Mapping[str, Episodes], period: float, card: PmsmCard) -> Figure:
    """Torque (N m) of the first episode of each policy over time (ms), by the card's figures."""
    figure, axes = small_axes(SMALL, "time, ms", "torque, N m")
    for name, of in reversed(list(episodes.items())):
        course = courses(of, period)[0]
        time = 1e3 * period * np.arange(len(course["stator_current"]))
        axes.plot(time, torque(course["stator_current"], card), lw=1, label=name, **line_of(name))
    axes.plot(time, torque(course["current_setpoint"], card), color=TARGET, lw=1.5, label="set-point", zorder=1)
    axes.legend(loc="upper right")
    return figure


def torque(current: np.ndarray, card: PmsmCard) -> np.ndarray:
    """(…,) N m of currents (…, 2) A, without saturation."""
    d, q = np.moveaxis(current, -1, 0)
    return 1.5 * card.pole_pairs * (card.flux + (card.inductance_d - card.inductance_q) * d) * q
