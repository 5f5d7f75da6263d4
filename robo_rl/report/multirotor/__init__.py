"""What reports on multirotors have of their own: the figure-eight, tilt, height, the way from above, rotor speeds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from robo_rl.evaluate.evaluation import Conditions, quantity, rollout
from robo_rl.policies.loading import CLASSICAL
from robo_rl.report.findings import RECORDED, Cell, Findings, Plot, Section
from robo_rl.report.multirotor import plots
from robo_rl.report.plots import courses
from robo_rl.sim.robots.multirotor import MultirotorCard
from robo_rl.sim.tasks.multirotor.quadrotor import FIGURE_EIGHT

SECONDS, SETTLED = 6.5, 1.0
"""s: one round of the figure-eight takes 5.5 s, after 1 s to settle in."""
HINTS: Mapping[str, str] = {
    "mass": "Look at both ends: the policy can infer a different mass only from its memory.",
    "thrust": "Look at the left end: weak motors leave little thrust to stop a fall.",
    "inertia": "Look at the left end, where the same torque turns the vehicle much faster.",
    "rise_time": "Look at the left end, where motors respond faster than the policy expects.",
    "delay": "Look at where the upper line falls: the latency limit of the policy.",
    "wind": "Look at how far the error rises: the steady-state error under a constant force.",
    "noise": "Look at how the error rises: the accuracy that the estimator needs.",
}


def sections(findings: Findings) -> list[Section]:
    """The figure-eight if the task has one, and the vehicle's motion in the first episodes."""
    flies_eights = set(FIGURE_EIGHT) <= set(findings.task.spec.ranges)
    return [*([figure_eight(findings)] if flies_eights else []), motion(findings)]


def figure_eight(findings: Findings) -> Section:
    """Policy and classical controller around the figure-eight."""
    task, count = findings.task, findings.few
    around = Conditions(count, findings.conditions.seed, SECONDS, FIGURE_EIGHT, recorded=RECORDED)
    flown = {name: rollout(task, policy, around, "figure-eight") for name, policy in findings.policies.items()}
    summaries = {name: episodes.summary() for name, episodes in flown.items()}
    keys = {"policy": "figure_eight_policy_rms_m", CLASSICAL: "figure_eight_geometric_rms_m"}
    errors = {key: summaries[name]["tracking_error_rms_m"] for name, key in keys.items() if name in summaries}
    least = min(errors.items(), key=lambda item: math.inf if math.isnan(item[1]) else item[1])
    names = {name: subject.loaded.name for name, subject in findings.named.items()}
    if len(findings.subjects) > 1:
        names = {name: f"{name}: {subject}" for name, subject in names.items()}
    names |= {CLASSICAL: "classical controller"}
    table = {
        names[name]: [
            Cell(quantity(summary["tracking_error_rms_m"], "m"), "root mean square error"),
            Cell(f"{100 * summary['success']:.1f} %", "stay within a metre"),
        ]
        for name, summary in summaries.items()
    }
    fixed = " ".join(f"{name} {value:g}" for name, value in FIGURE_EIGHT.items())
    target = findings.subjects[0].target + findings.options
    by = "the policy" if least[0] == keys["policy"] else "the classical controller"
    return Section(
        "figure-eight",
        "Figure-eight",
        f"Period 5.5 s, 2 m by 1 m, all other ranges as in training, {count} episodes of each.",
        table,
        [
            Plot(
                plots.figure_eight(flown, task.spec.control_period, SETTLED),
                f"From above, {RECORDED} episodes of each from {SETTLED:g} s on. Look at the outer bends, where "
                "acceleration is greatest, and at whether the ways of one policy agree with each other.",
                wide=True,
            )
        ],
        errors,
        [f"robo-rl evaluate {target} --episodes {count} --seed {around.seed} --seconds {SECONDS:g} --fixed {fixed}"],
        f"Smallest error: {by}, {quantity(least[1], 'm')}.",
    )


def motion(findings: Findings) -> Section:
    """How the vehicle moved in the policy's first episodes."""
    episodes, period, card = findings.episodes["policy"], findings.task.spec.control_period, findings.task.spec.robot
    assert isinstance(card, MultirotorCard)
    drawn = [
        Plot(
            plots.top_view(episodes, period),
            f"The policy's first {RECORDED} episodes from above. Look at whether they end at the set-point, and how "
            "they drift there.",
        ),
        Plot(
            plots.tilts(episodes, period),
            "Tilt in the same episodes. Look at the first tenths of a second, in which the vehicle must get upright.",
        ),
        Plot(
            plots.heights(episodes, period),
            "Height in the same episodes. Look at the depth of the first dip: the height that a recovery needs.",
        ),
        Plot(
            plots.rotor_speeds(episodes, period, card.rotor_names, card.rotor_speed_max),
            "Episode 1: speeds as lines, commands as dots, the top speed dotted. Look at commands at their limits, and "
            "at how far speeds lag behind.",
        ),
    ]
    away = [course["position"] - course["position_setpoint"] for course in courses(episodes, period)]
    lowest, farthest = min(float(way[:, 2].min()) for way in away), max(float(np.linalg.norm(way[-1])) for way in away)
    return Section(
        "motion",
        "Motion",
        "An episode fails when the vehicle is more than a metre from its set-point, or turns faster than the range "
        "of its gyroscope.",
        plots=drawn,
        summary=f"In the first {len(away)} episodes at most {quantity(max(0.0, -lowest), 'm')} below the set-point, "
        f"and ends at most {quantity(farthest, 'm')} from it.",
    )
