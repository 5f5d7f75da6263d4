"""The report of a legged robot on one page: what a policy is and does. As ``robo_rl.report.multirotor`` otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.evaluation import Conditions, perturbations, sweep
from robo_rl.report import legged_plots, plots
from robo_rl.report.page import Subject, load_all, pictures, subject_of, write_page
from robo_rl.terrain_evaluation import SPEED, evaluate_terrain
from robo_rl.transfer import Transfer
from sim.robots.legged import LeggedCard
from sim.tasks import Task
from sim.tasks.legged.rough import RoughWalk

RECORDED = 4  # walks in plots and film


@dataclass(frozen=True)
class Findings:
    """All that the page tells. The first subject gets the plots."""

    task: Task
    conditions: Conditions
    subjects: list[Subject]
    sweeps: Mapping[str, list[dict[str, float]]]
    sweep_walks: int
    elsewhere: Transfer | None
    crossings: Sequence[Mapping[str, Any]] = ()
    """Of rough ground, by the first subject, as ``robo_rl.terrain_evaluation.evaluate_terrain`` gives them."""

    def figures(self) -> dict[str, Any]:
        """The figures that ``robo-rl report --json`` prints and the page shows."""
        rows = [{"target": one.target, "name": one.loaded.name, **one.figures} for one in self.subjects]
        found: dict[str, Any] = {**rows[0], "targets": rows}
        if self.elsewhere is not None:
            found |= {"engines": self.elsewhere.engines, "least_kept": self.elsewhere.least_kept}
        if self.crossings:
            found["crossings"] = self.crossings
        return found


def gather(
    targets: Sequence[str], episodes: int = 1000, seed: int = 0, robot: str | None = None,
    elsewhere: Path | None = None, task_name: str | None = None,
) -> Findings:  # fmt: skip
    """Walk all that the page tells about; ``elsewhere``: what 'robo-rl transfer --json' printed about the first."""
    subjects = load_all(targets, episodes, robot, task_name)
    task = subjects[0].task
    there = read_transfer(elsewhere, task) if elsewhere else None
    conditions = Conditions(episodes=episodes, seed=seed, recorded=RECORDED)
    few = Conditions(episodes=max(20, episodes // 10), seed=seed)
    return Findings(
        task=task,
        conditions=conditions,
        subjects=[subject_of(target, loaded, conditions) for target, loaded in zip(targets, subjects, strict=True)],
        sweeps=sweep(task, subjects[0].policy, perturbations(task), few),
        sweep_walks=few.episodes,
        elsewhere=there,
        crossings=evaluate_terrain(task, subjects[0].policy, max(1, episodes // 20), seed)
        if isinstance(task, RoughWalk)
        else (),
    )


def read_transfer(path: Path, task: Task) -> Transfer:
    """What 'robo-rl transfer --json' printed: the last line of a file."""
    expected = f"expected what 'robo-rl transfer --json' prints about a policy of {task.spec.name}"
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file; {expected}")
    try:
        found = json.loads(path.read_text().splitlines()[-1])
        parts = found["home"], found["engines"], found["perturbations"]
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}; {expected}") from None
    if (found.get("task"), found.get("robot")) != (task.spec.name, task.spec.robot.name):
        raise ValueError(f"{path}: it is of {found.get('task')} and {found.get('robot')}; {expected}")
    return Transfer(task.measures, *parts)


def write(findings: Findings, out: Path) -> int:
    """Write the page; returns its size in bytes."""
    first, spec = findings.subjects[0], findings.task.spec
    card, recording = spec.robot, first.flights.recording
    assert isinstance(card, LeggedCard)
    period = spec.control_period
    measure = findings.task.measures[-1]
    drawn = {
        "training": plots.training(first.metrics) if first.metrics else [],
        "velocities": legged_plots.velocities(recording, period) if "linear_velocity_command" in recording else "",
        "gait": legged_plots.gait(recording["foot_force"][:, 0], card.feet, period),
        "falls": legged_plots.falls(first.flights.survived, first.flights.duration, spec.episode_length),
        "errors": [
            legged_plots.walking_errors(first.flights.errors[m.error], m.error, m.unit) for m in findings.task.measures
        ],
        "sweeps": {
            name: plots.perturbation(name, {"policy": rows}, measure, spec.ranges[name].end)
            for name, rows in findings.sweeps.items()
        },
        "elsewhere": plots.transfer(findings.elsewhere, spec.ranges) if findings.elsewhere else "",
    }
    return write_page(
        "legged.html",
        out,
        first,
        findings.figures(),
        findings=findings,
        plots=drawn,
        commands=_commands(findings),
        crossings=_by_kind(findings.crossings),
        speed=SPEED,
        pictures=pictures(first.flights.motion),
    )


def _by_kind(crossings: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows of crossings of each kind of ground, from easy to hard."""
    table: dict[str, list[Mapping[str, Any]]] = {}
    for row in crossings:
        table.setdefault(row["kind"], []).append(row)
    return table


def _commands(findings: Findings) -> list[str]:
    """What to type to repeat the numbers."""
    target = findings.subjects[0].target
    walks = f"--episodes {findings.conditions.episodes} --seed {findings.conditions.seed}"
    commands = [f"robo-rl report {' '.join(subject.target for subject in findings.subjects)} {walks}"]
    commands += [f"robo-rl evaluate {subject.target} {walks}" for subject in findings.subjects]
    if findings.crossings:
        commands.append(f"robo-rl evaluate {target} {walks} --ground")
    return [*commands, f"robo-rl evaluate {target} --sweep", f"robo-rl transfer {target}", f"robo-rl play {target}"]
