"""Find what flies: a run's folder, a bundle, or the classical controller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.evaluation import ControllerPolicy, GraphPolicy
from robo_rl.runs import Run
from robo_rl.zoo import located
from sim.tasks import Task
from sim.tasks.loading import load_task


@dataclass(frozen=True)
class Loaded:
    """Something that can fly, and the task it flies."""

    name: str
    task: Task
    policy: Any


def load(target: str, task: str | None = None, robot: str | None = None) -> Loaded:
    """What is called ``target``: a run's folder, an .onnx file, or "geometric" (which needs ``task``).

    ``task`` and ``robot`` make it fly another task or another robot than its own.
    """
    if target == "geometric":
        if task is None:
            raise ValueError("the geometric controller flies any task; say which with --task")
        known = load_task(task, robot)
        return Loaded(target, known, ControllerPolicy(known))
    path = located(target)
    if path.suffix == ".onnx":
        return _bundle(path, task, robot)
    if not path.is_dir():
        raise ValueError(f"'{target}' is neither a run's folder nor a .onnx file nor 'geometric'")
    policy, _ = Run.open(path).policy()
    own = policy.task.spec
    chosen = load_task(task or own.name, robot or own.robot.name) if task or robot else policy.task
    return Loaded(path.name, chosen, GraphPolicy(policy))


def _bundle(path: Path, task: str | None, robot: str | None) -> Loaded:
    from deploy.bundle import Bundle
    from deploy.verify import BundlePolicy

    bundle = Bundle.read(path)
    contract = bundle.contract
    return Loaded(path.name, load_task(task or contract.task, robot or contract.robot_name), BundlePolicy(bundle))
