"""Distillation: a policy that imitates another one, with a smaller network, or with fewer signals.

The student acts, the teacher gives its command at every step, and the student learns to command the same (DAgger: Ross
et al. 2011). So it learns in the states that its own mistakes lead to, which imitating the teacher's episodes does not
teach. Teacher and student have the same commands. The student's signals are among the teacher's, or, where its task
says so (``Task.beside``), of its own, such as the image of a camera that sees what the teacher is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from robo_rl.console import Progress
from robo_rl.learn.adam import Adam
from robo_rl.learn.config import DistillConfig
from robo_rl.learn.finite import gradient_norm, stepped
from robo_rl.learn.schedule import set_cosine_rate
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import VECTOR
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task

KNEE = 0.1  # of an action: larger errors count by their size, smaller ones by their square
TEACHER_STEPS = 50  # of the teacher at first
KEPT = 300  # past moments that are kept
WIDTHS = (64, 48, 40, 32, 24, 20, 16, 12, 8)
CODE_BYTES = 3072  # of a quadrotor's policy without constants: measured for Cortex-M4F with -Os


class CompressError(ValueError):
    """No student fits."""


@dataclass(frozen=True)
class Distilled:
    """The result of a distillation."""

    environment_steps: int
    losses: list[float]
    """Mean square of the difference in commands, in units of their range, at every update."""


def largest_width(task: Task, layers: int, flash: int) -> int:
    """The widest hidden layers whose float32 weights fit into ``flash`` bytes beside the code."""
    for width in WIDTHS:
        sizes = [task.observation_size, *[width] * layers, task.action_size]
        weights = sum((columns + 1) * rows for columns, rows in pairwise(sizes))
        if 4 * weights + CODE_BYTES <= flash:
            return width
    raise CompressError(f"flash is {flash} bytes; even hidden layers of {WIDTHS[-1]} need more")


class Distillation:
    """The training of a student; ``student`` is trained in place."""

    def __init__(self, teacher: PolicyGraph, student: PolicyGraph, config: DistillConfig, seed: int) -> None:
        if teacher.recurrence is not None or student.recurrence is not None:
            raise ValueError("teacher or student has a recurrent network; distillation is for policies without one")
        self.teacher, self.student, self.config, self.done = teacher, student, config, 0
        self.skipped = 0
        """Steps of the optimiser along gradients that were not finite."""
        self.optimizer = Adam(student.parameters())
        self.env = VecEnv(student.task.beside(teacher.task), config.environments, seed=seed, evaluation=True)
        self._signals = self.env.signals()
        self._states = [policy.initial_state(self.env.n) for policy in (teacher, student)]
        self._past: deque[_Lesson] = deque(maxlen=KEPT)

    def update(self) -> float:
        """Learn from this moment and some past ones, then let the robots make a step; returns the mean square of the
        difference in commands, in units of their range."""
        self._past.append(_lesson(self.teacher, self.student, self._signals, self._states).finite())
        set_cosine_rate(self.optimizer, self.config.learning_rate, self.done, self.config.updates)
        loss, good = _update(self.student, self._past, self.config.mixed, self.optimizer)
        self.skipped += not good
        self._step()
        self.done += 1
        return loss

    @torch.no_grad()
    def _step(self) -> None:
        policies = (self.teacher, self.student)
        commands = self._commands()
        self._states = [
            _remembered(policy, self._signals, commands, state)
            for policy, state in zip(policies, self._states, strict=True)
        ]
        step = self.env.step(commands)
        self._signals = step.signals
        for policy, state in zip(policies, self._states, strict=True):
            state[step.ids] = policy.initial_state(len(step.ids))

    def _commands(self) -> dict[str, Tensor]:
        """What the robots are told: those that are still the teacher's by what the student is taught, or by that."""
        part = self.config.teacher_part
        if not part:
            now = 0 if self.done < TEACHER_STEPS else 1
            return (self.teacher, self.student)[now](self._signals, self._states[now])[0]
        share = 1.0 - self.done / (part * self.config.updates)
        own, _ = self.student(self._signals, self._states[1])
        if share <= 0.0:
            return own
        theirs, _ = self.teacher(self._signals, self._states[0])
        memory = self.student.unpack(self._states[1])
        wanted = self.student.task.imitated(theirs, self._signals, memory)
        theirs = theirs if wanted is None else self.student.task.command(wanted, memory)
        taught = torch.arange(self.env.n)[:, None] < share * self.env.n
        return {name: torch.where(taught, theirs[name], value) for name, value in own.items()}


def distill(teacher: PolicyGraph, student: PolicyGraph, config: DistillConfig, seed: int = 0) -> Distilled:
    """Teach ``student``, which is trained in place, what ``teacher`` commands at its own task.

    On one thread: such small layers end before a second thread has begun, and are slower with it.
    """
    lessons, losses, threads = Distillation(teacher, student, config, seed), [], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with Progress("distilling", config.updates) as progress:
            for k in range(config.updates):
                losses.append(lessons.update())
                progress.update(k + 1, f"error {losses[-1] ** 0.5:.4f}")
    finally:
        torch.set_num_threads(threads)
    student.requires_grad_(False).eval()
    return Distilled(config.updates * config.environments, losses)


def _remembered(policy: PolicyGraph, signals: dict[str, Tensor], commands: dict[str, Tensor], state: Tensor) -> Tensor:
    """The state of a policy after these commands were given, by whomever."""
    return policy.pack(policy.task.remember(policy.unpack(state), signals, commands))


class _Lesson(NamedTuple):
    """Some moments (n, …): what the student saw and remembered, and what it should have done."""

    observed: dict[str, Tensor]
    """By group; those that are no vector in half precision, which is finer than what is measured."""
    state: Tensor
    expected: Tensor
    """(n, k): actions, or commands in units of their range."""

    def finite(self) -> _Lesson:
        """Those whose numbers are all finite."""
        parts = [*self.observed.values(), self.state, self.expected]
        good = torch.stack([part.flatten(1).isfinite().all(1) for part in parts]).all(0)
        if good.all():
            return self
        observed = {name: value[good] for name, value in self.observed.items()}
        return _Lesson(observed, self.state[good], self.expected[good])


def _lesson(
    teacher: PolicyGraph, student: PolicyGraph, signals: dict[str, Tensor], states: Sequence[Tensor]
) -> _Lesson:
    with torch.no_grad():
        theirs, own = (
            policy.task.observe(signals, policy.unpack(state))
            for policy, state in zip((teacher, student), states, strict=True)
        )
        groups = own if isinstance(own, dict) else {VECTOR: own}
        kept = {name: value.clone() if name == VECTOR else value.half() for name, value in groups.items()}
        commands = _commands(teacher, theirs, states[0])
        memory = student.unpack(states[1])
        limited = {name: teacher._limit(name, value) for name, value in commands.items()}
        wanted = student.task.imitated(limited, signals, memory)
        expected = _scaled(teacher, commands) if wanted is None else wanted
        return _Lesson(kept, states[1].clone(), expected)


def _commands(policy: PolicyGraph, observed: Any, state: Tensor) -> dict[str, Tensor]:
    """Before their limits."""
    return policy.task.command(policy.network(policy.features(observed)), policy.unpack(state))


def _scaled(policy: PolicyGraph, commands: dict[str, Tensor]) -> Tensor:
    """The commands, (n, k), in units of their range."""
    parts = []
    for name, value in commands.items():
        lower, upper = policy.get_buffer(f"{name}_limits").unbind(0)
        parts.append((value - lower) / (upper - lower))
    return torch.cat(parts, -1)


def _by_actions(student: PolicyGraph) -> bool:
    """Whether its task tells which actions it should have taken."""
    return type(student.task).imitated is not Task.imitated


def _done(student: PolicyGraph, observed: dict[str, Tensor], state: Tensor) -> Tensor:
    """What the student does, as a lesson's ``expected`` has it."""
    groups = {name: value.float() for name, value in observed.items()}
    if _by_actions(student):
        return student.network(student.features(groups))
    return _scaled(student, _commands(student, groups if student.encoders else groups[VECTOR], state))


def _update(
    student: PolicyGraph, past: deque[_Lesson], mixed: int, optimizer: torch.optim.Optimizer
) -> tuple[float, bool]:
    """One step towards what the teacher did, now and at a few moments of the past, if its gradient is finite; returns
    the error squared, and whether it was."""
    chosen = [past[i] for i in [*torch.randint(len(past), (mixed,)).tolist(), -1]]
    observed = {name: torch.cat([lesson.observed[name] for lesson in chosen]) for name in chosen[0].observed}
    state, expected = (torch.cat([getattr(lesson, part) for lesson in chosen]) for part in ("state", "expected"))
    done = _done(student, observed, state)
    if _by_actions(student):  # what can't be known yet, where something is that isn't in view, must not outweigh
        loss = functional.smooth_l1_loss(done, expected, beta=KNEE)
    else:
        loss = (done - expected).square().mean()
    optimizer.zero_grad()
    loss.backward()
    good = stepped(optimizer, gradient_norm(student.parameters()))
    return float((done.detach() - expected).square().mean()), good
