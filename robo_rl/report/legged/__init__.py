"""What reports on legged robots have of their own: velocities, gait, and how surely rough ground is crossed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robo_rl.evaluate.terrain_evaluation import SPEED, evaluate_terrain
from robo_rl.report.findings import Cell, Findings, Plot, Section
from robo_rl.report.legged import plots
from robo_rl.report.plots import courses
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.rough import RoughWalk

HINTS: Mapping[str, str] = {}


def sections(findings: Findings) -> list[Section]:
    """Velocities and gait of the first episode; on rough ground how surely each kind is crossed."""
    found = [motion(findings)]
    if isinstance(findings.task, RoughWalk):
        each = max(1, findings.conditions.episodes // 20)
        policy = findings.policies["policy"]
        found.append(ground(findings, evaluate_terrain(findings.task, policy, each, findings.conditions.seed)))
    return found


def motion(findings: Findings) -> Section:
    """How the robot moved in the policy's first episode."""
    spec, card = findings.task.spec, findings.task.spec.robot
    assert isinstance(card, LeggedCard)
    course, drawn = courses(findings.episodes["policy"], spec.control_period)[0], []
    if "linear_velocity_command" in course:
        caption = (
            "Episode 1: commanded (dashed) and true velocities. Look at how fast the lines follow a new command, and "
            "at the remaining error."
        )
        drawn.append(Plot(plots.velocities(course, spec.control_period), caption, wide=True))
    caption = (
        "Episode 1: which feet are on the ground, front right to rear left. Look at diagonal pairs in a trot, at how "
        "long each foot stays, and at whether all feet are on the ground when no velocity is commanded."
    )
    drawn.append(Plot(plots.gait(course["foot_force"], card.feet, spec.control_period), caption, wide=True))
    down = (course["foot_force"] > plots.STANCE).mean()
    summary = f"In episode 1 a foot is on the ground for {100 * down:.0f} % of the time"
    if "linear_velocity_command" in course:
        forward, left, _ = plots.true_velocities(course)
        error = np.hypot(*(np.stack([forward, left], -1) - course["linear_velocity_command"]).T).mean()
        summary += f", and the velocity is {error:.2f} m/s from the commanded one"
    return Section("motion", "Motion", plots=drawn, summary=f"{summary}.")


def ground(findings: Findings, crossings: Sequence[Mapping[str, Any]]) -> Section:
    """A row for each kind of ground, from easy to hard, of what ``evaluate_terrain`` found."""
    table: dict[str, list[Cell]] = {}
    worst = min(crossings, key=lambda row: row["crossed"])
    for row in crossings:
        interval = f"{100 * row['crossed_low']:.1f} % to {100 * row['crossed_high']:.1f} %"
        cell = Cell(f"{100 * row['crossed']:.0f} %", row["height"], interval, row["crossed"])
        table.setdefault(row["kind"], []).append(cell)
    return Section(
        "ground",
        "Rough ground",
        f"Straight on at {SPEED:g} m/s from the middle of a patch past all that it holds, {crossings[0]['walks']} "
        "episodes each, with pushes and all else drawn as ever. Below each share: how high, steep or wide it is.",
        table,
        summary=f"Least sure: {worst['kind']}, {worst['height']}: {100 * worst['crossed']:.0f} % cross it.",
        figures={"crossings": crossings},
        commands=[
            f"robo-rl evaluate {findings.subjects[0].target}{findings.options} "
            f"--episodes {findings.conditions.episodes} --seed {findings.conditions.seed} --ground"
        ],
    )
