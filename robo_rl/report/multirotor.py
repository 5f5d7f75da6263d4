"""The report: one page about what a policy is and does, with plots, tables and a film, in one file.

``gather`` flies and collects; ``write`` makes the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from controllers.rotation import body_z
from robo_rl.evaluation import HELD_OUT, Conditions, ControllerPolicy, Episodes, compare, perturbations, rollout, sweep
from robo_rl.loading import Loaded
from robo_rl.report import plots
from robo_rl.report.page import Subject, load_all, pictures, subject_of, write_page
from sim.env import VecEnv
from sim.robots.multirotor import MultirotorCard
from sim.tasks import Task
from sim.tasks.multirotor.quadrotor import FIGURE_EIGHT

RECORDED = 8  # flights in plots
FIGURE_EIGHT_SECONDS = 6.5  # one round of 5.5 s after 1 s to settle in
FAILURES_SHOWN = 12
SENTENCES = {
    "mass": "Look at both ends: only memory can tell the policy that it is heavier or lighter than it thought.",
    "thrust": "Look at the left end: weak motors leave little to stop a fall with.",
    "inertia": "Look at the left end, where the same torque turns the vehicle much faster.",
    "rise_time": "Look at the left end, where motors answer sooner than the policy expects.",
    "delay": "Look at where the upper lines fall: the latency beyond which it must not fly.",
    "wind": "Look at how far the lower lines rise: how much a steady push leaves behind.",
    "noise": "Look at how the lower lines rise: how good the estimator must be.",
}
"""What to look at in the plot of each perturbation."""
BLOCKS, INTERIMS = 5, 2  # of the sequential test; together ten blocks of flights


@dataclass(frozen=True)
class Findings:
    """All that the page tells. The first subject gets the plots."""

    task: Task
    conditions: Conditions
    subjects: list[Subject]
    controller: Subject
    comparisons: list[dict[str, Any]]
    """Of each subject with the controller, as ``robo_rl.evaluation.compare`` gives it."""
    sweeps: Mapping[str, Mapping[str, list[dict[str, float]]]]
    """By "policy" and "controller", then by perturbation; values fixed for ``sweep_flights`` flights each."""
    sweep_flights: int
    eights: Mapping[str, Episodes]
    """By "policy" and "controller": the figure-eight, if the task can fly one."""

    def figures(self) -> dict[str, Any]:
        """The figures that ``robo-rl report --json`` prints and the page shows."""
        rows = [
            {"target": one.target, "name": one.loaded.name, **one.figures, "decision": comparison["decision"]}
            for one, comparison in zip(self.subjects, self.comparisons, strict=True)
        ]
        found = {**rows[0], "targets": rows, "geometric": self.controller.figures}
        if self.eights:
            summaries = {name: flights.summary() for name, flights in self.eights.items()}
            found["figure_eight_policy_rms_m"] = summaries["policy"]["tracking_error_rms_m"]
            found["figure_eight_geometric_rms_m"] = summaries["controller"]["tracking_error_rms_m"]
        return found


def gather(
    targets: Sequence[str], episodes: int = 1000, seed: int = 0, robot: str | None = None, task_name: str | None = None
) -> Findings:
    """Fly everything that the page tells about. All ``targets`` (runs or bundles) must be of one task and robot."""
    loaded = load_all(targets, episodes, robot, task_name)
    task = loaded[0].task
    conditions = Conditions(episodes=episodes, seed=seed, recorded=RECORDED)
    geometric = Loaded("geometric", task, ControllerPolicy(task))  # refuses robots that it can't fly
    subjects = [subject_of(target, each, conditions) for target, each in zip(targets, loaded, strict=True)]
    controller = Subject("geometric", geometric, rollout(task, geometric.policy, conditions, "geometric controller"))
    policies = {"policy": loaded[0].policy, "controller": geometric.policy}
    few = Conditions(episodes=max(20, episodes // 10), seed=seed)
    around = Conditions(
        episodes=max(20, episodes // 10), seed=seed, seconds=FIGURE_EIGHT_SECONDS, fixed=FIGURE_EIGHT, recorded=RECORDED
    )
    flies_eights = set(FIGURE_EIGHT) <= set(task.spec.ranges)
    return Findings(
        task=task,
        conditions=conditions,
        subjects=subjects,
        controller=controller,
        comparisons=[_compare(subject, controller) for subject in subjects],
        sweeps={name: sweep(task, policy, perturbations(task), few) for name, policy in policies.items()},
        sweep_flights=few.episodes,
        eights={name: rollout(task, p, around, "figure-eight") for name, p in policies.items()} if flies_eights else {},
    )


def _compare(subject: Subject, controller: Subject) -> dict[str, Any]:
    """AdaStop on blocks of the same flights: mean distance from the set-point, a failed flight counting as 1 m."""
    size = len(subject.flights) // (BLOCKS * INTERIMS)

    def score(flights: Episodes) -> Any:
        away = np.where(np.isnan(flights.tracking_error), 1.0, flights.tracking_error)
        return lambda block: -float(away[block * size : (block + 1) * size].mean())

    scores = {"policy": score(subject.flights), "geometric": score(controller.flights)}
    return {**compare(scores, BLOCKS, INTERIMS), "block": size}


def failures(findings: Findings) -> list[dict[str, float]]:
    """The first subject's failed flights with the conditions that were drawn for them."""
    flights, task = findings.subjects[0].flights, findings.task
    lost = np.flatnonzero(~flights.survived)
    env = VecEnv(task, len(flights), HELD_OUT + 1000 * findings.conditions.seed, evaluation=True)
    drawn, nominal = env.plant.parameters, env.plant.nominal
    tilt = torch.rad2deg(torch.acos(body_z(env.plant.current.orientation.unbind(-1))[2].clamp(-1.0, 1.0)))
    columns = {
        "lasted, s": torch.from_numpy(flights.duration),
        "tilt at start, °": tilt,
        "mass, ×": drawn.mass / nominal.mass,
        "thrust, ×": drawn.thrust_scale.mean(-1),
        "inertia, ×": drawn.inertia[:, 0] / nominal.inertia[:, 0],
        "motor rise time, ×": drawn.rise_time / nominal.rise_time,
        "latency, ms": 1000 * env.drawn["delay"],
        "wind, m/s": drawn.wind.norm(dim=-1),
    }
    return [
        {"flight": int(i), **{name: float(value[i]) for name, value in columns.items()}} for i in lost[:FAILURES_SHOWN]
    ]


def write(findings: Findings, out: Path) -> int:
    """Write the page; returns its size in bytes."""
    first, task = findings.subjects[0], findings.task
    period, card = task.spec.control_period, _card(task)
    drawn = {
        "training": plots.training(first.metrics) if first.metrics else [],
        "errors": plots.errors({"policy": first.flights, "controller": findings.controller.flights}, period),
        "tilts": plots.tilts(first.flights, period),
        "heights": plots.heights(first.flights, period),
        "distribution": plots.distribution(
            {"policy": first.flights.position_error, "controller": findings.controller.flights.position_error}
        ),
        "top_view": plots.top_view(first.flights, period),
        "rotor_speeds": plots.rotor_speeds(first.flights, period, card.rotor_names, card.rotor_speed_max),
        "figure_eight": plots.figure_eight(findings.eights, period, 1.0) if findings.eights else "",
        "sweeps": {
            name: plots.perturbation(
                name,
                {policy: findings.sweeps[policy][name] for policy in ("controller", "policy")},
                task.measures[0],
                task.spec.ranges[name].end,
            )
            for name in findings.sweeps["policy"]
        },
    }
    return write_page(
        "multirotor.html",
        out,
        first,
        findings.figures(),
        findings=findings,
        failures=failures(findings),
        lost=int((~first.flights.survived).sum()),
        plots=drawn,
        recorded=RECORDED,
        sentences=SENTENCES,
        commands=_commands(findings),
        pictures=pictures(first.flights.motion),
    )


def _commands(findings: Findings) -> list[str]:
    """What to type to repeat the numbers."""
    task, target = findings.task.spec.name, findings.subjects[0].target
    flights = f"--episodes {findings.conditions.episodes} --seed {findings.conditions.seed}"
    commands = [
        f"robo-rl report {' '.join(subject.target for subject in findings.subjects)} {flights}",
        *(f"robo-rl evaluate {subject.target} {flights}" for subject in findings.subjects),
        f"robo-rl evaluate geometric --task {task} {flights}",
        f"robo-rl evaluate {target} --sweep",
        f"robo-rl evaluate {target} --against geometric",
        f"robo-rl play {target}",
    ]
    if findings.eights:
        fixed = " ".join(f"{name} {value:g}" for name, value in FIGURE_EIGHT.items())
        few = next(iter(findings.eights.values()))
        eight = f"--episodes {len(few)} --seconds {FIGURE_EIGHT_SECONDS:g} --fixed {fixed}"
        commands.append(f"robo-rl evaluate {target} {eight}")
    return commands


def _card(task: Task) -> MultirotorCard:
    card = task.spec.robot
    assert isinstance(card, MultirotorCard)
    return card
