"""Whether the parts of a task fit together: for tasks that robo-rl does not know, before they are trained.

Every method is called once with two robots, and an environment makes two steps. What does not fit is told in
sentences that name the method, what it gives and what is expected.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Generator, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import ContractError, Network, Provenance
from robo_rl.controllers.start_pose import require_start
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants import Plant
from robo_rl.sim.tasks import Spec, Task
from robo_rl.sim.tasks.loading import told
from robo_rl.sim.teams import Teams

N = 2
"""Robots that are looked at, where they have no team."""
ACTIONS = (0.0, 3.0, -3.0)
"""Outputs of a network, of which 0 is where it begins."""
TOLERANCE = 1e-5
"""Of a command's range, for the rounding of float32."""


def check(task: Task) -> None:
    """ValueError with a sentence for each thing that does not fit."""
    where = task.source.label if task.source else type(task).__name__
    found: list[str] = []
    try:
        for sentence in _problems(task):
            found.append(sentence)
    except _FailedError as failure:
        found.append(str(failure))
    if found:
        raise ValueError("\n  ".join([f"{where} can't be trained as it is:", *found]))


def require_contract(task: Task) -> None:
    """ValueError unless a trained policy of it can be exported: of an included task, a card may be in the way."""
    for sentence in _of_the_contract(task.spec):
        raise ValueError(f"'{task.name}' for the robot '{task.spec.robot.name}' can't be exported: {sentence}")


class _FailedError(ValueError):
    """A method failed, so what depends on it is not looked at."""


def _call(task: Task, name: str, *given: Any) -> Any:
    try:
        with told(name, "it failed", Path(inspect.getfile(type(task))).parent):
            return getattr(task, name)(*given)
    except ValueError as error:
        raise _FailedError(str(error)) from error.__cause__


def _problems(task: Task) -> Iterator[str]:
    spec = getattr(task, "spec", None)
    if not isinstance(spec, Spec):
        raise _FailedError(f"spec is {spec!r}; expected a robo_rl.sim.tasks.Spec, made in __init__")
    yield from _of_the_spec(task)
    n = _count(spec)
    drawn = _draw(task)
    goal = _call(task, "goal", drawn)
    yield from _shaped("goal", goal, (n, task.goal_size), f"{_robots(spec)}, by goal_size")
    reference = _call(task, "reference", torch.zeros(n), goal)
    plant, ids = _call(task, "make_plant", n, "cpu"), torch.arange(n)
    told = [name for name in _names(spec.signals, "operator") if name not in plant.truth()]  # else it is measured
    yield from _named("reference", reference, told, "a signal from the operator", True)
    _call(task, "randomize", plant, ids, drawn)
    _call(task, "place", plant, ids, drawn, goal)
    known = {**{name: value.clone() for name, value in plant.truth().items()}, **reference}
    if spec.team > 1:
        known |= {name: value.clone() for name, value in Teams(task, known).update(known).items()}
    yield from _of_the_signals(spec, known)
    signals = {signal.name: known.get(signal.name, torch.zeros(n, *signal.dimensions)) for signal in spec.signals}
    commands = yield from _of_the_policy(task, signals)
    yield from _of_the_episode(task, known, commands, plant)
    disturbed = _call(task, "disturb", torch.zeros(n), goal)
    fields = getattr(plant.parameters, "_fields", ())
    for name in disturbed if fields else ():
        if name not in fields:
            yield f"disturb gives '{name}'; expected parameters of the plant, some of {list(fields)}"
    yield from _of_the_environment(task, commands)


def _of_the_spec(task: Task) -> Iterator[str]:
    spec = task.spec
    if spec.name != task.name:
        yield f"spec.name is '{spec.name}'; expected '{task.name}', the task's name"
    yield from _of_the_contract(spec)
    for name in task.perturbed:
        if name not in spec.ranges:
            yield f"perturbed has '{name}'; expected some of the ranges {list(spec.ranges)}"
    for rule in spec.rules:
        if not any(fnmatchcase(name, rule.pattern) for name in spec.ranges):
            yield f"a rule is for '{rule.pattern}'; expected a pattern of some of the ranges {list(spec.ranges)}"


def _of_the_contract(spec: Spec) -> Iterator[str]:
    measured = [signal for signal in spec.signals if signal.source != "simulation"]
    try:
        real = dataclasses.replace(spec, signals=tuple(measured))
        require_start(real.contract(Provenance("none", 0, 0, ""), Network((), "tanh", False)))
    except ContractError as error:
        yield f"spec makes no contract: {error}"


def _of_the_signals(spec: Spec, known: Mapping[str, Tensor]) -> Iterator[str]:
    for signal in spec.signals:
        if signal.name in known:
            what = f"the signal '{signal.name}'"
            shape = _count(spec), *signal.dimensions
            yield from _shaped(what, known[signal.name], shape, f"{_robots(spec)}, by its elements")
        elif signal.source in ("sensor", "simulation"):
            yield (
                f"the signal '{signal.name}' has no true quantity of its name; expected one of the plant's and the "
                f"reference's, {sorted(known)}"
            )


def _of_the_policy(task: Task, signals: Mapping[str, Tensor]) -> Generator[str, None, dict[str, Tensor]]:
    """What is traced into the bundle; returns the commands of an idle policy."""
    spec, n, robots = task.spec, _count(task.spec), _robots(task.spec)
    memory = _call(task, "first_memory", n)
    observed = _call(task, "observe", signals, memory)
    vector = observed.get("policy") if isinstance(observed, Mapping) else observed
    yield from _shaped("observe", vector, (n, task.observation_size), f"{robots}, by observation_size")
    idle: dict[str, Tensor] = {}
    for action in ACTIONS:
        given = _call(task, "command", torch.full((n, task.action_size), action), memory)
        yield from _named("command", given, [command.name for command in spec.commands], "a command of the spec")
        for command in spec.commands:
            value = given.get(command.name)
            if value is None:
                continue
            wrong = list(_shaped(f"command: '{command.name}'", value, (n, command.size), f"{robots}, by its elements"))
            yield from wrong
            if wrong:
                continue
            lower, upper = torch.tensor(command.lower), torch.tensor(command.upper)
            slack = TOLERANCE * (upper - lower)
            if not ((value >= lower - slack) & (value <= upper + slack)).all():
                yield (
                    f"command: '{command.name}' is {value[0].tolist()} for an action of {action:g}; expected numbers "
                    f"from {list(command.lower)} to {list(command.upper)}"
                )
        idle = idle or given
    kept = _call(task, "remember", memory, signals, idle)
    yield from _named("remember", kept, [block.name for block in spec.memory], "a block of memory")
    for block in spec.memory:
        if block.name in kept:
            yield from _shaped(f"remember: '{block.name}'", kept[block.name], (n, *block.shape), f"{robots}, its shape")
    return idle


def _of_the_episode(
    task: Task, known: Mapping[str, Tensor], commands: Mapping[str, Tensor], plant: Plant
) -> Iterator[str]:
    n = _count(task.spec)
    terms = _call(task, "reward", known, commands, commands)
    yield from _named("reward", terms, list(task.spec.reward), "a weight of the spec")
    errors = _call(task, "errors", known)
    yield from _named("errors", errors, [measure.error for measure in task.measures], "a measure's error", True)
    for what, values in (("reward", terms), ("errors", errors)):
        for name, value in values.items():
            yield from _shaped(f"{what}: '{name}'", value, (n,), "one number per robot")
            if isinstance(value, Tensor) and not torch.isfinite(value).all():
                yield f"{what}: '{name}' is {value.tolist()} where an episode begins; expected finite numbers"
    failed = _call(task, "failed", known)
    yield from _shaped("failed", failed, (n,), "one truth value per robot")
    seen = _call(task, "privileged", known, plant.parameters)
    if not isinstance(seen, Tensor) or seen.ndim != 2 or len(seen) != n:
        yield f"privileged gives {_shape(seen)}; expected ({n}, k), numbers for {_robots(task.spec)}"


def _of_the_environment(task: Task, commands: Mapping[str, Tensor]) -> Iterator[str]:
    folder = Path(inspect.getfile(type(task))).parent
    try:
        with told("two steps of an environment", "they failed", folder):
            env = VecEnv(task, _count(task.spec) // task.spec.team)
            env.reset()
            for _ in range(2):
                step = env.step({name: value.clone() for name, value in commands.items()})
    except ValueError as error:
        raise _FailedError(str(error)) from error.__cause__
    if env.diverged:
        yield "after two steps a robot's state or reward is not finite"
    for name, value in step.signals.items():
        if not torch.isfinite(value).all():
            yield f"the signal '{name}' is {value[0].tolist()} after two steps; expected finite numbers"


def _count(spec: Spec) -> int:
    """Robots that are looked at: a whole team."""
    return max(N, spec.team)


def _robots(spec: Spec) -> str:
    return "two robots" if _count(spec) == N else f"{_count(spec)} robots"


def _draw(task: Task) -> dict[str, Tensor]:
    """A draw from every range as it is at the end of training."""
    generator, drawn, n = torch.Generator().manual_seed(0), {}, _count(task.spec)
    for name, bounds in task.spec.ranges.items():
        low, high = bounds.end
        shape = (n,) if bounds.count is None else (n, bounds.count)
        drawn[name] = low + (high - low) * torch.rand(shape, generator=generator)
    return drawn


def _names(signals: Sequence[Any], source: str) -> list[str]:
    return [signal.name for signal in signals if signal.source == source]


def _named(what: str, given: Any, expected: list[str], meaning: str, more: bool = False) -> Iterator[str]:
    """``given`` is a dictionary with the expected names; ``more``: others, too."""
    if not isinstance(given, Mapping):
        raise _FailedError(f"{what} gives {_shape(given)}; expected a dictionary with {expected}")
    for name in expected:
        if name not in given:
            yield f"{what} lacks '{name}', {meaning}; it gives {list(given)}"
    for name in () if more else given:
        if name not in expected:
            yield f"{what} gives '{name}', which is not {meaning}; expected {expected}"


def _shaped(what: str, value: Any, shape: tuple[int, ...], meaning: str) -> Iterator[str]:
    if _shape(value) != str(shape):
        yield f"{what} gives {_shape(value)}; expected {shape}: {meaning}"


def _shape(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"
