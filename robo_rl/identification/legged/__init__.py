"""Legged robots: a walk on flat ground, fitted by ``fit`` and judged by ``judge``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robo_rl.identification.findings import Findings, Progress
from robo_rl.identification.fit import identify
from robo_rl.identification.joint_findings import joint_findings
from robo_rl.identification.judge import faults
from robo_rl.identification.recorded import walk

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log
    from robo_rl.sim.tasks import Task


def find(logs: Sequence[Log], task: Task, iterations: int, progress: Progress) -> Findings:
    """ValueError unless it is one log of a robot that walks on flat ground."""
    if len(logs) > 1:
        raise ValueError(f"{logs[1].path}: a walk is fitted from one log; expected {logs[0].path} alone")
    path, spec = logs[0].path, task.spec
    plant: Any = task.make_plant(1, "cpu")
    mechanism, physics = getattr(plant, "mechanism", None), getattr(plant, "physics", None)
    if mechanism is None or physics is None or mechanism.fixed or not mechanism.points:
        raise ValueError(f"{path} is of a {spec.robot.kind}; expected a robot that walks, simulated by MuJoCo")
    if plant.ground is not None:
        raise ValueError(f"{path} is of {spec.name}, on rough ground; expected a walk on flat ground")
    if physics.contacts != "points":
        raise ValueError(f"{path} is of {spec.name}, where all shapes touch the ground; expected a walk")
    record = walk(logs[0])
    found = identify(mechanism, record, physics, iterations=iterations, progress=progress)
    return joint_findings(record, found, faults(record, found), spec.ranges, mechanism.joint_names)
