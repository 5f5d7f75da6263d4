"""A smaller policy that does what a larger one does, for a microcontroller with little flash.

The student flies, the teacher says at every moment what it would have commanded, and the student learns to command
the same (DAgger: Ross et al. 2011). So it learns where its own mistakes take it, which imitating the teacher's flights
does not teach.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.console import Progress
from robo_rl.policy import PolicyGraph
from sim.env import VecEnv
from sim.tasks import Task

ENVIRONMENTS = 512
TEACHER_STEPS = 50  # that the teacher flies at first
KEPT, MIXED = 300, 4  # past moments that are kept, and how many of them join every update
LEARNING_RATE = 3e-3
WIDTHS = (64, 48, 40, 32, 24, 20, 16, 12, 8)
CODE_BYTES = 3072  # of a quadrotor's policy without constants: measured for Cortex-M4F with -Os


class CompressError(ValueError):
    """No student fits."""


@dataclass(frozen=True)
class Distilled:
    """A trained student."""

    policy: PolicyGraph
    hidden: tuple[int, ...]
    environment_steps: int
    loss: float
    """Mean square of the difference in commands at the end, in units of their range."""


def largest_width(task: Task, layers: int, flash: int) -> int:
    """The widest hidden layers whose float32 weights fit into ``flash`` bytes beside the code."""
    for width in WIDTHS:
        sizes = [task.observation_size, *[width] * layers, task.action_size]
        weights = sum((columns + 1) * rows for columns, rows in pairwise(sizes))
        if 4 * weights + CODE_BYTES <= flash:
            return width
    raise CompressError(f"flash is {flash} bytes; even hidden layers of {WIDTHS[-1]} need more")


def distill(teacher: PolicyGraph, hidden: Sequence[int], activation: str, updates: int, seed: int) -> Distilled:
    """Train a student with these hidden layers."""
    torch.manual_seed(seed)
    task = teacher.task
    student = PolicyGraph(task, tuple(hidden), activation)
    optimizer = torch.optim.Adam(student.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    env = VecEnv(task, ENVIRONMENTS, seed=seed, evaluation=True)
    signals, state = env.signals(), teacher.initial_state(env.n)
    lessons: deque[_Lesson] = deque(maxlen=KEPT)
    loss = torch.zeros(())
    with Progress("distilling", updates) as progress:
        for k in range(updates):
            lessons.append(_lesson(teacher, signals, state))
            loss = _update(student, lessons, optimizer)
            schedule.step()
            with torch.no_grad():
                commands, state = (teacher if k < TEACHER_STEPS else student)(signals, state)
            step = env.step(commands)
            signals, state = step.signals, state.clone()
            state[step.ids] = teacher.initial_state(len(step.ids))
            progress.update(k + 1, f"error {float(loss) ** 0.5:.4f}")
    policy = student.requires_grad_(False).eval()
    return Distilled(policy, tuple(hidden), updates * ENVIRONMENTS, float(loss))


class _Lesson(NamedTuple):
    """Some moments (n, …): what was observed and remembered, and what the teacher would command, in units of range."""

    observed: Tensor
    state: Tensor
    expected: Tensor


def _lesson(teacher: PolicyGraph, signals: dict[str, Tensor], state: Tensor) -> _Lesson:
    with torch.no_grad():
        observed = teacher.task.observe(signals, teacher.unpack(state)).clone()
        return _Lesson(observed, state.clone(), _scaled_commands(teacher, observed, state))


def _scaled_commands(policy: PolicyGraph, observed: Tensor, state: Tensor) -> Tensor:
    """The commands for an observation and a memory, (n, k), in units of their range."""
    action, parts = policy.network(policy.normalizer(observed)), []
    for name, value in policy.task.command(action, policy.unpack(state)).items():
        lower, upper = policy.get_buffer(f"{name}_limits").unbind(0)
        parts.append((value - lower) / (upper - lower))
    return torch.cat(parts, -1)


def _update(student: PolicyGraph, lessons: deque[_Lesson], optimizer: torch.optim.Optimizer) -> Tensor:
    """One step towards the teacher's commands, now and at a few moments of the past."""
    past = torch.randint(len(lessons), (MIXED,)).tolist()
    mixed = _Lesson(*(torch.cat(parts) for parts in zip(*(lessons[i] for i in [*past, -1]), strict=True)))
    loss = (_scaled_commands(student, mixed.observed, mixed.state) - mixed.expected).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()
