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


def load(target: str, task: str | Task | None = None, robot: str | None = None) -> Loaded:
    """What is called ``target``: a run's folder, an .onnx file, or "geometric" (which needs ``task``).

    ``task`` and ``robot`` make it fly another task or another robot than its own; a bundle of a user's own task needs
    ``task`` in any case.
    """
    if target == "geometric":
        if task is None:
            raise ValueError("the geometric controller flies any task; say which with --task")
        known = task if isinstance(task, Task) else load_task(task, robot)
        return Loaded(target, known, ControllerPolicy(known))
    path = located(target)
    if path.suffix == ".onnx":
        return _bundle(path, task, robot)
    if not path.is_dir():
        raise ValueError(f"'{target}' is neither a run's folder nor a .onnx file nor 'geometric'")
    run = Run.open(path)
    policy, _ = run.policy()
    if isinstance(task, Task):
        chosen = task
    elif task or robot:
        chosen = load_task(task or run.task_source, robot or run.robot_source)
    else:
        chosen = policy.task
    return Loaded(path.name, chosen, GraphPolicy(policy))


def _bundle(path: Path, task: str | Task | None, robot: str | None) -> Loaded:
    from deploy.bundle import Bundle
    from deploy.verify import BundlePolicy, named_task

    bundle = Bundle.read(path)
    chosen = task if isinstance(task, Task) else named_task(bundle.contract, task, robot)
    return Loaded(path.name, chosen, BundlePolicy(bundle))
