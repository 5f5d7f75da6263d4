"""Find what flies: a run's folder, a bundle, or the classical controller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.evaluation import ControllerPilot, GraphPilot
from robo_rl.runs import Run
from robo_rl.zoo import located
from sim.tasks import Task, load_task


@dataclass(frozen=True)
class Flier:
    """Something that can fly, and the task it flies."""

    name: str
    task: Task
    pilot: Any


def find(target: str, task: str | None = None, robot: str | None = None) -> Flier:
    """The flier called ``target``: a run's folder, an .onnx file, or "geometric" (which needs ``task``).

    ``task`` and ``robot`` make it fly another task or another robot than its own.
    """
    if target == "geometric":
        if task is None:
            raise ValueError("the geometric controller flies any task; say which with --task")
        loaded = load_task(task, robot)
        return Flier(target, loaded, ControllerPilot(loaded))
    path = located(target)
    if path.suffix == ".onnx":
        return _bundle(path, task, robot)
    if not path.is_dir():
        raise ValueError(f"'{target}' is neither a run's folder nor a .onnx file nor 'geometric'")
    policy, _ = Run.open(path).policy()
    own = policy.task.spec
    loaded = load_task(task or own.name, robot or own.robot.name) if task or robot else policy.task
    return Flier(path.name, loaded, GraphPilot(policy))


def _bundle(path: Path, task: str | None, robot: str | None) -> Flier:
    from deploy.bundle import Bundle
    from deploy.verify import BundlePilot

    bundle = Bundle.read(path)
    contract = bundle.contract
    return Flier(path.name, load_task(task or contract.task, robot or contract.robot_name), BundlePilot(bundle))
