"""A look at what a policy does at its task: reward terms, commands and observations, step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import vector_of
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task

ROBOTS, STEPS = 32, 200
"""Robots, and control steps at most."""
TRIED = 20
"""Control steps in which elements of an action are tried."""
SMALL = 1e-3
"""Part of a signal's range, or of 1 where that is not finite, by which it is changed to see what depends on it."""


@dataclass(frozen=True)
class Look:
    """What was seen in s samples, of all robots and control steps."""

    terms: dict[str, Tensor]
    """(s,) weighted terms of the reward; those of steps that ended an episode stand last."""
    commands: dict[str, Tensor]
    """(s, elements) within their limits."""
    errors: dict[str, Tensor]
    """(s,) by the task's measures; without the steps that ended an episode."""
    observation: Tensor | None
    """(s, k) the vector; None of policies that are not networks."""
    lengths: list[int]
    """Control steps of the episodes that failed."""
    causes: dict[str, int]
    """How many of them by their cause."""
    finite: bool
    """Whether all of it was."""


def look(task: Task, policy: Any, graph: PolicyGraph | None = None, seed: int = 0) -> Look:
    """Run ``policy``, which is ``graph`` if that is given, over the full ranges of its task."""
    env = VecEnv(task, -(-ROBOTS // task.spec.team), HELD_OUT + seed, evaluation=True)
    state, signals = policy.initial_state(env.n), env.signals()
    terms, last, seen, lengths = [], [], [], list[int]()
    commanded: dict[str, list[Tensor]] = {command.name: [] for command in task.spec.commands}
    errors: dict[str, list[Tensor]] = {measure.error: [] for measure in task.measures}
    statistics = env.keep_statistics()
    for _ in range(min(STEPS, task.spec.episode_steps)):
        before, steps = env.kept.sums.clone(), env.episode.step.clone()
        if graph is not None:
            seen.append(vector_of(task.observe(signals, graph.unpack(state))).clone())
        commands, state = policy(signals, state)
        step = env.step(commands)
        goes_on = torch.ones(env.n, dtype=torch.bool)
        goes_on[step.ids] = False
        terms.append((env.kept.sums - before)[goes_on])
        if len(step.ids):
            last.append(statistics.last - before[step.ids])
        for command in task.spec.commands:
            limits = (torch.tensor(x) for x in (command.lower, command.upper))
            commanded[command.name].append(commands[command.name].clamp(*limits).clone())
        for name, error in task.errors(env.truth()).items():
            errors[name].append(error[goes_on])
        lengths += [int(steps[i]) + 1 for i in step.ids if step.failed[i]]
        signals = step.signals
        state[step.ids] = policy.initial_state(len(step.ids))
    told = statistics.read()
    causes = {name[8:]: round(100 * part) for name, part in told.items() if name.startswith("failure/")}
    columns = torch.cat([*terms, *last])
    observation = torch.cat(seen) if seen else None
    named = {name: columns[:, i] for i, name in enumerate(task.spec.reward)}
    sent = {name: torch.cat(parts) for name, parts in commanded.items()}
    everything = [columns, *sent.values(), *(() if observation is None else (observation,))]
    told_errors = {name: torch.cat(parts) for name, parts in errors.items()}
    return Look(
        named, sent, told_errors, observation, lengths, causes, all(bool(x.isfinite().all()) for x in everything)
    )


@torch.no_grad()
def sources(task: Task) -> list[list[str]]:
    """By column of the observation's vector: the signals and blocks of memory that it depends on."""
    env = VecEnv(task, -(-8 // task.spec.team), HELD_OUT, evaluation=True)
    signals = {name: value.clone() for name, value in env.signals().items()}
    memory = task.first_memory(env.n)

    def observed(given: Mapping[str, Tensor], remembered: Mapping[str, Tensor]) -> Tensor:
        return vector_of(task.observe(given, remembered)).clone()

    plain = observed(signals, memory)
    found: list[list[str]] = [[] for _ in range(plain.shape[1])]
    wide = {signal.name: _width(signal.lower, signal.upper) for signal in task.spec.signals}
    for values, which in ((signals, 0), (memory, 1)):
        for name, value in values.items():
            moved = {**values, name: value + SMALL * wide.get(name, 1.0) * (1.0 + torch.rand_like(value))}
            after = observed(moved, memory) if which == 0 else observed(signals, moved)
            for column in (after != plain).any(0).nonzero()[:, 0].tolist():
                found[column].append(name)
    return found


def _width(lower: Any, upper: Any) -> float:
    """The smallest width of a signal's limits, which are numbers or one of each."""
    ends = torch.as_tensor(upper, dtype=torch.float64) - torch.as_tensor(lower, dtype=torch.float64)
    widths = [float(x) for x in ends.flatten() if math.isfinite(x)]
    return min(widths, default=1.0)


@torch.no_grad()
def unused_actions(task: Task) -> list[int]:
    """Numbers of the elements of an action that change no command, tried at random for some control steps."""
    torch.manual_seed(0)
    env = VecEnv(task, -(-8 // task.spec.team), HELD_OUT, evaluation=True)
    memory, signals, unused = task.first_memory(env.n), env.signals(), set(range(task.action_size))
    for _ in range(TRIED):
        action = 4.0 * torch.rand(env.n, task.action_size) - 2.0
        commands = {name: value.clone() for name, value in task.command(action, memory).items()}
        for i in list(unused):
            moved = action.clone()
            moved[:, i] = 4.0 * torch.rand(env.n) - 2.0
            if any(not torch.equal(value, commands[name]) for name, value in task.command(moved, memory).items()):
                unused.remove(i)
        memory = task.remember(memory, signals, commands)
        signals = env.step(commands).signals
    return sorted(unused)
