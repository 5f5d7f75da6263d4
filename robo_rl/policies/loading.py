"""Find policies by what they are called: a run's folder, a bundle, a task's classical controller, "zero", "random"."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.contract import Contract
from robo_rl.evaluate.evaluation import ControllerPolicy, GraphPolicy
from robo_rl.evaluate.untrained import RandomPolicy, ZeroPolicy
from robo_rl.learn.runs.folder import Run
from robo_rl.policy import PolicyGraph
from robo_rl.policy.led import LedPolicy
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task
from robo_rl.zoo import located

CLASSICAL = "classical"
"""What the classical controller of any task is called; its own name does as well."""
UNTRAINED = {"zero": ZeroPolicy, "random": RandomPolicy}
"""Policies to look at a task with."""


@dataclass(frozen=True)
class Loaded:
    """A policy, and the task that it does."""

    name: str
    task: Task
    policy: Any


def load(target: str, task: str | Task | None = None, robot: str | None = None) -> Loaded:
    """What is called ``target``: a run's folder, an .onnx file, or of ``task`` "classical", "zero" or "random".

    ``task`` and ``robot`` make a policy do another task or another robot than its own; a bundle of a user's own task
    needs ``task`` in any case.
    """
    path = located(target)
    if target in (CLASSICAL, *UNTRAINED) or (path.suffix != ".onnx" and not path.is_dir()):
        return _controller(target, task, robot)
    if path.suffix == ".onnx":
        return _bundle(path, task, robot)
    run = Run.open(path)
    policy, _ = run.policy()
    if isinstance(task, Task):
        chosen = task
    elif task or robot:
        chosen = load_task(task or run.task_source, robot or run.robot_source)
    else:
        chosen = policy.task
    return Loaded(
        path.name, chosen, _led(GraphPolicy(policy), {signal.name for signal in policy.task.spec.signals}, chosen)
    )


def graph(target: str, task: Task) -> PolicyGraph:
    """The policy graph in torch of a run's folder, or of an .onnx file, which was trained at ``task``."""
    path = located(target)
    if path.suffix != ".onnx":
        return Run.open(path).policy()[0]
    from robo_rl.deploy.build.verify import torch_policy
    from robo_rl.deploy.robot.bundle import Bundle

    bundle = Bundle.read(path)
    _require_fit(path, bundle.contract, task)
    return torch_policy(bundle, task)


def _controller(target: str, task: str | Task | None, robot: str | None) -> Loaded:
    if task is None and target == CLASSICAL:
        raise ValueError("a classical controller belongs to a task; expected --task with its name")
    if task is None and target in UNTRAINED:
        raise ValueError(f"'{target}' is a policy for any task; expected --task with its name")
    if task is not None:
        known = task if isinstance(task, Task) else load_task(task, robot)
        if target == CLASSICAL or target == getattr(known.controller(), "name", None):
            return Loaded(target, known, ControllerPolicy(known))
        if target in UNTRAINED:
            return Loaded(target, known, UNTRAINED[target](known))
        named = {controller.name: controller for controller in known.controllers()}
        if target in named:
            return Loaded(target, known, ControllerPolicy(known, named[target]))
        first = getattr(known.controller(), "name", None)
        has = ", ".join(repr(name) for name in ([first] if first else []) + list(named)) or "none"
        theirs = f"the classical controller of {known.name} (it has: {has})"
    else:
        theirs = "the classical controller of --task"
    raise ValueError(
        f"'{target}' is neither a run's folder nor a .onnx file, nor '{CLASSICAL}', {theirs}, 'zero' or 'random'"
    )


def _bundle(path: Path, task: str | Task | None, robot: str | None) -> Loaded:
    from robo_rl.deploy.build.verify import BundlePolicy, named_task
    from robo_rl.deploy.robot.bundle import Bundle

    bundle = Bundle.read(path)
    chosen = task if isinstance(task, Task) else named_task(bundle, task, robot)
    policy = _led(BundlePolicy(bundle), {signal.name for signal in bundle.contract.signals}, chosen)
    planned = tuple(policy.planner.commands) if isinstance(policy, LedPolicy) else ()
    _require_fit(path, bundle.contract, chosen, planned)
    return Loaded(path.name, chosen, policy)


def _led(policy: Any, reads: set[str], task: Task) -> Any:
    """A policy that reads such signals, led by the task's planner if that commands those which the task lacks."""
    planner = task.planner()
    lacking = reads - {signal.name for signal in task.spec.signals}
    return LedPolicy(planner, policy, reads) if planner and lacking and lacking <= set(planner.commands) else policy


def _require_fit(path: Path, contract: Contract, task: Task, planned: tuple[str, ...] = ()) -> None:
    """ValueError unless the task gives all signals that a policy reads, or its planner, and takes its commands."""
    given = {signal.name: signal.dimensions for signal in task.spec.signals}
    for signal in contract.signals:
        if signal.name in planned:
            continue
        if given.get(signal.name) != signal.dimensions:
            raise ValueError(
                f"{path} reads the signal '{signal.name}' {signal.dimensions}; the task '{task.name}' for robot "
                f"'{task.spec.robot.name}' has {given}"
            )
    commands = [(command.name, command.size) for command in contract.commands]
    taken = [(command.name, command.size) for command in task.spec.commands]
    if commands != taken:
        raise ValueError(f"{path} gives the commands {commands}; the task '{task.name}' takes {taken}")
