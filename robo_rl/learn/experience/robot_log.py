"""A robot's log as transitions of a task, for an algorithm that learns from a robot and its simulator together.

A step of a log (``robo_rl.deploy.robot.logs.reader``) has the signals, the memory and the commands that were sent. What
a policy would have seen follows by the task's own functions. The action is the one that commands what was sent, whoever
sent it: a policy, a classical controller, the gate. Reward and end are the task's, of what was measured in the place of
what is true; a task that rewards what no signal measures is refused.

Used are steps one control period apart in which the gate was ACTIVE and its commands were sent, and the task's episode
not over: a robot lies about after a fall. A number in them that is not finite, or outside of its sensor's range,
refuses the log, as do stamps that are none of measurements for these steps. A run keeps the transitions in a file like
that of demonstrations.

Shapes: t steps of a log, s transitions, m numbers of all commands, a of an action.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from robo_rl.deploy.robot.logs.reader import Log
from robo_rl.learn.experience.demonstrations import (
    COMMAND,
    SIGNAL,
    START,
    Transitions,
    check,
    contract_of,
    digest,
    read,
)
from robo_rl.learn.experience.recorded_values import OPERATOR, faults, wrong_stamps
from robo_rl.sim.tasks import Task

FILE_NAME = "robot_log.safetensors"
"""In the folder of a run that learns from a robot's log."""
LEAST = 10.0
"""s of transitions that are needed: as for ``robo-rl sysid``."""
JITTER = 0.2
"""Of a control period, by which steps may be early or late: as for ``robo-rl sysid``."""
NEWTON = 12
"""Steps of Newton's method for an action: tanh, the steepest that tasks have, takes 6 to float32's last digit."""
MISSED = 1e-3
"""Of a command's range, by which an action may command something else than what was sent."""
DAMPING = 1e-6
"""Added to the normal matrix, for actions that a command does not depend on."""


class RobotLogError(ValueError):
    """A log can't be learnt from. The message says why."""


def transitions_of(log: Log, task: Task) -> dict[str, Tensor]:
    """The tensors of a file of demonstrations, of a session at ``task``; RobotLogError if it has none to learn from.

    An "episode" is a stretch without a gap.
    """
    _require_fit(log, task)
    signals, memory, sent = _columns(log, task)
    over = _over(task, signals)
    began = _begins(log, task.spec.control_period)
    began = began[~over.numpy()[began]]
    if not len(began):
        raise RobotLogError(
            f"{log.path}: no three steps, one control period apart, are in it under an ACTIVE gate that sent its "
            "commands; expected a session in mode 'blend' or 'live' in which the robot ran"
        )
    used = np.union1d(began, began + 1)
    for fault in faults(
        task.spec.signals, {n: v[used].numpy() for n, v in {**signals, **memory, "sent": sent}.items()}
    ):
        raise RobotLogError(f"{log.path}: step {log.steps[used[fault.first]].number}: {fault.sentence}")
    if wrong := wrong_stamps(*_measured(log, used)):
        raise RobotLogError(f"{log.path}: step {log.steps[used[wrong[0]]].number}: {wrong[1]}")
    now, later = ({n: v[rows] for n, v in signals.items()} for rows in (began, began + 1))
    kept = {name: value[began] for name, value in memory.items()}
    action, missed = actions_of(task, now, kept, sent[began])
    earned = _reward(task, later, _named(task, sent[began]), _named(task, sent[began - 1]))
    found = {
        "observation": task.observe(now, kept), "action": action, "reward": earned, "ended": over[began + 1],
        "next_observation": task.observe(later, {name: value[began + 1] for name, value in memory.items()}),
        **{SIGNAL + name: value for name, value in now.items()},
        **{COMMAND + name: value for name, value in _named(task, sent[began]).items()},
    }  # fmt: skip
    good = missed <= MISSED
    if not good.any():
        raise RobotLogError(
            f"{log.path}: no action of '{task.name}' commands what was sent in any of its steps; expected a log of a "
            "policy, or of a controller within the policy's reach"
        )
    episode = np.cumsum(np.diff(began[good.numpy()], prepend=-2) != 1) - 1
    return {name: value[good].float().contiguous() for name, value in found.items()} | {
        "episode": torch.from_numpy(episode.astype(np.int64))
    }


def joined(parts: Sequence[tuple[Path, Mapping[str, Tensor]]], task: Task) -> dict[str, Tensor]:
    """All logs' tensors as one, checked; RobotLogError if there is too little to learn from."""
    found: dict[str, list[Tensor]] = {}
    episodes = 0
    for path, tensors in parts:
        check(dict(tensors), path, task)
        for name, value in tensors.items():
            if not name.startswith(START):
                found.setdefault(name, []).append(value + episodes if name == "episode" else value)
        episodes += int(tensors["episode"][-1]) + 1
    whole = {name: torch.cat(values) for name, values in found.items() if len(values) == len(parts)}
    seconds = len(whole["reward"]) * task.spec.control_period
    if seconds < LEAST:
        raise RobotLogError(
            f"{', '.join(str(path) for path, _ in parts)}: {seconds:.1f} s can be learnt from; expected at least "
            f"{LEAST:g} s, better 20 to 60 s, of steps under an ACTIVE gate whose commands the policy could give"
        )
    return whole


def kept(folder: Path | None, wanted: str, task: Task) -> Transitions | None:
    """The log's transitions in a run's folder, of which the run knows the digest ``wanted``; "" for none."""
    if not wanted:
        return None
    path = (folder or Path()) / FILE_NAME
    if not path.is_file() or digest(path) != wanted:
        raise RobotLogError(f"{path}: not the robot's log that the run began with; expected SHA-256 {wanted}")
    return read(path, task)[0]


def actions_of(
    task: Task, signals: Mapping[str, Tensor], memory: Mapping[str, Tensor], sent: Tensor
) -> tuple[Tensor, Tensor]:
    """(s, a) actions within ±1 that command ``sent`` (s, m), and by which part of a command's range they miss it (s,).

    Gauss and Newton's method on the task's ``act``.
    """
    limits = {c.name: torch.tensor([c.lower, c.upper]) for c in task.spec.commands}
    low, high = (torch.cat([limit[k] for limit in limits.values()]) for k in (0, 1))
    wanted = sent / (high - low)

    def commanded(action: Tensor) -> Tensor:
        given, _ = task.act(action, signals, memory, lambda name, value: value.clamp(*limits[name]))
        return torch.cat([given[name].flatten(1) for name in limits], 1) / (high - low)

    action = torch.zeros(len(sent), task.action_size)
    for _ in range(NEWTON):
        units = torch.eye(task.action_size)
        slopes = torch.stack([torch.func.jvp(commanded, (action,), (u.expand_as(action),))[1] for u in units], -1)
        missing = (wanted - commanded(action))[:, :, None]
        normal = slopes.mT @ slopes + DAMPING * units
        action = (action + torch.linalg.solve(normal, slopes.mT @ missing)[:, :, 0]).clamp(-1.0, 1.0)
    return action, (wanted - commanded(action)).abs().amax(1)


def _require_fit(log: Log, task: Task) -> None:
    """RobotLogError unless a log has the task's signals, commands, limits and memory."""
    ours, theirs = contract_of(task), log.contract
    plain = tuple(dataclasses.replace(signal, seen_low=None, seen_high=None) for signal in theirs.signals)
    alike = dataclasses.replace(
        theirs, signals=plain, network=ours.network, provenance=ours.provenance, state=ours.state
    )
    if alike.interface_digest != ours.interface_digest:
        raise RobotLogError(
            f"{log.path}: recorded at task '{theirs.task}' with {theirs.robot_name}, whose signals, commands or limits "
            f"are not those of '{task.name}' with {task.spec.robot.name}"
        )
    lacking = [block.name for block in ours.state if block not in theirs.state]
    if lacking:
        raise RobotLogError(f"{log.path}: its policy's memory has no {lacking}; expected those of '{task.name}'")
    if task.spec.team > 1 or task.encoders:
        raise RobotLogError(f"task '{task.name}' is of a team, or observes images; expected one robot and a vector")


def _begins(log: Log, period: float) -> np.ndarray:
    """(s,) steps that the next one follows, whose commands were sent, and that follow another, whose are known."""
    number, time, active = (
        np.array([of(step) for step in log.steps])
        for of in (lambda s: s.number, lambda s: s.time, lambda s: s.commanded)
    )
    late = np.diff(time) * 1e-6 / period - 1.0
    follows = (np.diff(number) == 1) & (np.abs(late) <= JITTER)
    return np.flatnonzero(follows[1:] & follows[:-1] & active[1:-1] & active[2:]) + 1


def _measured(log: Log, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(t,) times of some steps and (t, n) stamps of the sensors that can't be absent in them; s."""
    absent = {signal.age_of for signal in log.contract.signals}
    where = [
        i for i, s in enumerate(log.contract.signals) if s.source not in (OPERATOR, "runtime") and s.name not in absent
    ]
    times = np.array([log.steps[row].time for row in rows])
    stamps = np.array([[log.steps[row].stamps[i] for i in where] for row in rows])
    return times * 1e-6, stamps * 1e-6


def _columns(log: Log, task: Task) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    """Signals (t, …) and the task's memory (t, …) by name, and what was sent (t, m)."""
    flat, memory, sent = (
        torch.from_numpy(np.stack([getattr(step, name) for step in log.steps]))
        for name in ("signals", "memory", "sent")
    )
    signals = flat.split([signal.size for signal in log.contract.signals], 1)
    blocks = memory.split([block.size for block in log.contract.state], 1) if log.contract.state else ()
    wanted = {block.name for block in task.spec.memory}
    return (
        {s.name: part.unflatten(1, s.dimensions) for s, part in zip(log.contract.signals, signals, strict=True)},
        {b.name: part.unflatten(1, b.shape) for b, part in zip(log.contract.state, blocks, strict=True)
         if b.name in wanted},
        sent,
    )  # fmt: skip


def _named(task: Task, commands: Tensor) -> dict[str, Tensor]:
    """Commands (s, m) by name."""
    parts = commands.split([command.size for command in task.spec.commands], 1)
    return {c.name: part.unflatten(1, c.dimensions) for c, part in zip(task.spec.commands, parts, strict=True)}


def _reward(
    task: Task, measured: Mapping[str, Tensor], commands: Mapping[str, Tensor], previous: Mapping[str, Tensor]
) -> Tensor:
    """(s,) for commands that led to what was ``measured``."""
    with _of_signals(task):
        terms = task.reward(measured, commands, previous)
    return torch.stack([weight * terms[name] for name, weight in task.spec.reward.items()]).sum(0)


def _over(task: Task, measured: Mapping[str, Tensor]) -> Tensor:
    """(t,) bool: what was ``measured`` ends the task's episode."""
    with _of_signals(task):
        failed, succeeded = task.failed(measured), task.succeeded(measured)
    return failed if succeeded is None else failed | succeeded


@contextlib.contextmanager
def _of_signals(task: Task) -> Iterator[None]:
    """RobotLogError where a task asks for what is no signal."""
    try:
        yield
    except KeyError as missing:
        raise RobotLogError(
            f"task '{task.name}' rewards, or ends by, {missing}, which no signal of the robot measures; expected a "
            "task whose reward is of its signals"
        ) from None
