"""How episodes begin, go on and end: what one control step comes to, as pure functions of tensors.

An environment fuses them into native loops; a differentiable step and a simulated robot share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.random import LIMIT
from robo_rl.sim.ranges import Levels
from robo_rl.sim.sensors import Chance, SensorDraws, Sensors, SensorState
from robo_rl.sim.tasks import Task, Tensors

LARGEST = 1e6
"""Euclidean norm of all numbers of a state, of rewards, signals or observations, in SI units, beyond which they have
diverged. The largest quantity in any unit of contracts is an atmosphere, 1.01e5 Pa (ISO 2533); of the tasks here,
1,081 ranges of a lidar (6e2), a quadrotor's rotor speeds (4e3) and a robot's contact forces (7e2)."""


class EpisodeState(NamedTuple):
    """What the environment keeps from step to step besides the plant's state."""

    step: Any
    """(n,) control steps since the episode began, a whole number."""
    sensors: SensorState
    """What sensors keep."""
    previous: dict[str, Any]
    """The last commands."""


class Draws(NamedTuple):
    """What is drawn at the start of an episode and holds through it, besides the plant's parameters.

    All but the goal are the sensors': see ``SensorDraws``; () where the task has none.
    """

    goal: Any
    """(n, k) of the set-points. It changes where the task's goals advance."""
    delay: Any
    """(n, k) s, latencies of sensors."""
    noise: Any
    """(n,) factor on the sensors' noise."""
    bias: Any
    """(n, elements) constant errors of sensors."""
    dropout: Any
    """(n, k) probabilities that measurements drop out."""

    @property
    def sensors(self) -> SensorDraws:
        """Those of sensors."""
        return SensorDraws(*self[1:])


class Outcome(NamedTuple):
    """What ``transition`` makes of one step."""

    episode: EpisodeState
    goal: Any
    """() where goals don't advance."""
    signals: dict[str, Any]
    reward: Any
    failed: Any
    """(n,) truth values, as are the next."""
    succeeded: Any
    """() where the task knows no success."""
    finite: Any
    """Whether state, rewards and signals are within ``LARGEST``."""
    terms: Any
    """(n, t) weighted rewards, in the task's order."""


class Kept(NamedTuple):
    """What a new episode sets and its steps go on from."""

    episode: EpisodeState
    draws: Draws
    sums: Any
    """(n, t) what the weighted terms of the reward add up to."""


class Past(NamedTuple):
    """What new episodes follow from."""

    stream: Any
    """(n, 4) random numbers: see ``robo_rl.sim.accelerate.fuse.random``."""
    level: Any
    """(n, ranges)."""
    fixed: Mapping[str, Any]
    """(n,) by range: see ``Levels.fixed``."""
    step: Any
    """(n,) that the last episodes had."""
    sums: Any
    """(n, t) of their rewards."""
    marks: tuple[Any, Any]
    """(n,) each, 1 or 0: whether they failed, and whether they succeeded."""
    over: Any
    """(1,) 1 where they came to an end, and rules move their levels; 0 where they were broken off."""

    def rows(self, ids: Tensor) -> Past:
        """Those of some environments (m,)."""
        fixed = {name: value[ids] for name, value in self.fixed.items()}
        lost, won = (mark[ids] for mark in self.marks)
        stream, level, step, sums = (value[ids] for value in (self.stream, self.level, self.step, self.sums))
        return Past(stream, level, fixed, step, sums, (lost, won), self.over)


class Ended(NamedTuple):
    """Whether episodes end with a step, (n,) truth values each."""

    failed: Any
    succeeded: Any
    """() where the task knows no success."""
    timeout: Any
    finite: Any
    any: Any

    def complete(self) -> Ended:
        """With truth values for ``succeeded`` in any case."""
        return self._replace(succeeded=torch.zeros_like(self.failed)) if isinstance(self.succeeded, tuple) else self


class Judged(NamedTuple):
    """A step and what it means for the episode."""

    episode: EpisodeState
    goal: Any
    """() where goals don't advance."""
    sums: Any
    marks: tuple[Any, Any]
    """(n,) each, 1 or 0: failed, and succeeded (where a task knows no success: not failed)."""
    signals: dict[str, Any]
    reward: Any
    ended: Ended
    observed: tuple[Any, ...] = ()
    """What a policy and a critic see, where it was asked for."""


class Step(NamedTuple):
    """What ``VecEnv.step`` returns. Finished environments have been reset; ``ids`` are their indices.

    No later step writes into these tensors.
    """

    signals: dict[str, Tensor]
    """Measured signals, (n, …) each; of a new episode where one ended."""
    reward: Tensor
    """(n,)."""
    failed: Tensor
    """(n,) bool: the episode ended in failure."""
    succeeded: Tensor
    """(n,) bool: the episode ended because it has reached its end."""
    timeout: Tensor
    """(n,) bool: the episode ended because its time was over."""
    ids: Tensor
    """(m,) the environments whose episode ended."""
    final_signals: dict[str, Tensor]
    """(m, …) each: the last signals of the episodes that ended."""
    final_privileged: Tensor
    """(m, p): the privileged observation then, zeros where it diverged; (m, 0) if ``privileged`` was never called."""
    diverged: Tensor
    """(m,) bool: the episode ended because a number of it was not finite, or too large; the last signals are then those
    of the step before."""


def within(*values: Any) -> Any:
    """(n,) whether the norm of all numbers of tensors (n, …) is at most ``LARGEST``; false for what is not finite."""
    return sum(value.flatten(1).square().sum(-1) for value in values) <= LARGEST**2


def all_within(*values: Tensor) -> bool:
    """Whether all rows are ``within`` for sure: their norm together is. Costs a fraction of looking at each."""
    return math.hypot(*(float(torch.linalg.vector_norm(value)) for value in values)) <= LARGEST


def transition(
    task: Task, sensors: Sensors, truth: Tensors, commands: Tensors, episode: EpisodeState, draws: Draws, chance: Chance
) -> Outcome:
    """Reward, failure, success and the next signals, after the plant moved to ``truth`` under ``commands``.

    A goal that advances does so after the reward was earned: the signals already tell of the next one.
    """
    step = episode.step + 1.0
    time = step * task.spec.control_period
    full = {**truth, **task.reference(time, draws.goal)}
    terms_by_name = task.reward(full, commands, episode.previous)
    weighted = [weight * terms_by_name[name] for name, weight in task.spec.reward.items()]
    terms = torch.stack(weighted, -1)
    goal = task.advance(full, draws.goal)
    seen = full if goal is None else {**truth, **task.reference(time, goal)}
    signals, state = sensors.measure(seen, episode.sensors, draws.sensors, chance)
    succeeded = task.succeeded(full)
    return Outcome(
        episode=EpisodeState(step, state, dict(commands)),
        goal=() if goal is None else goal,
        signals=signals,
        reward=sum(weighted),
        failed=task.failed(full),
        succeeded=() if succeeded is None else succeeded,
        finite=within(*truth.values(), terms, *signals.values()),
        terms=terms,
    )


def privileged_observation(task: Task, truth: Tensors, time: Any, goal: Any, parameters: Any) -> Any:
    """(n, p) what a critic may see."""
    return task.privileged({**truth, **task.reference(time, goal)}, parameters)


def first_moment(
    sensors: Sensors, truth: Tensors, idle: Tensors, draws: Draws, phases: tuple[Any, ...], stream: Any
) -> tuple[EpisodeState, dict[str, Any]]:
    """The state and the signals of episodes that begin at ``truth``, set-points included, after ``idle`` commands."""
    start = truth[next(iter(truth))].flatten(1)[:, 0] * 0.0
    state = sensors.start(truth, phases)
    signals, state = sensors.measure(truth, state, draws.sensors, sensors.chance(stream, start), first=True)
    return EpisodeState(start, state, dict(idle)), signals


@dataclass(frozen=True)
class EpisodeFunctions:
    """The functions, for one task."""

    task: Task
    sensors: Sensors
    levels: Levels
    idle: dict[str, Any]
    """Commands (1, k) before the first."""
    limits: dict[str, Any]
    """Lower and upper limits (1, k) of commands."""

    @classmethod
    def of(cls, task: Task, sensors: Sensors, levels: Levels, device: torch.device) -> EpisodeFunctions:
        """For a task's first commands, and the limits of its commands."""
        idle = task.command(torch.zeros(1, task.action_size, device=device), task.first_memory(1, device))
        limits = {
            command.name: torch.tensor([command.lower, command.upper], device=device)[:, None].unbind(0)
            for command in task.spec.commands
        }
        return cls(task, sensors, levels, idle, limits)

    def turn(self, past: Past) -> tuple[Any, Any, Any]:
        """Stream, levels and draws (n, …) of new episodes."""
        terms = past.sums / torch.clamp(past.step, min=1.0)[:, None]
        metrics = {name: terms[:, i] for i, name in enumerate(self.task.spec.reward)}
        lost, won = past.marks
        moved = self.levels.moved(past.level, {**metrics, "survived": 1.0 - lost, "success": won})
        level = torch.where(past.over[:, None] > 0.5, moved, past.level)
        episode = past.stream[:, 3:] + 1.0
        stream = torch.cat([past.stream[:, :3], torch.where(episode < LIMIT, episode, 0.0)], -1)
        return stream, level, self.levels.draw(level, stream, past.fixed)

    def start(self, truth: Tensors, goal: Any, drawn: Any, stream: Any) -> tuple[Kept, dict[str, Any]]:
        """All that new episodes begin with, and their first signals."""
        given = self.levels.named(drawn)
        draws = Draws(goal, *self.sensors.draws(given))
        full = {**truth, **self.task.reference(0.0 * stream[:, 0], goal)}
        phases = self.sensors.phases(given)
        episode, signals = first_moment(self.sensors, full, self.idle, draws, phases, stream)
        sums = torch.stack([0.0 * episode.step for _ in self.task.spec.reward], -1)
        return Kept(episode, draws, sums), signals

    def judge(
        self, truth: Tensors, commands: Tensors, kept: Kept, stream: Any, limit: Any,
        observe: Callable[[Tensors, Outcome], tuple[Any, ...]] = lambda truth, outcome: (),
    ) -> Judged:  # fmt: skip
        """What became of episodes of ``limit`` control steps, after the plant moved to ``truth`` under ``commands``.

        A state that has diverged (``within``) is a failure, and earns nothing. So is a state whose observations, which
        ``observe`` gives, (n, …) each, have diverged.
        """
        chance = self.sensors.chance(stream, kept.episode.step + 1.0)
        outcome = transition(self.task, self.sensors, truth, commands, kept.episode, kept.draws, chance)
        observed, succeeded = observe(truth, outcome), outcome.succeeded
        finite = outcome.finite & within(*observed) if observed else outcome.finite
        failed = outcome.failed | ~finite
        timeout = (outcome.episode.step >= limit) & ~failed
        lost = torch.where(failed, 1.0, 0.0)
        ended, won = failed | timeout, 1.0 - lost
        if not isinstance(succeeded, tuple):
            succeeded = succeeded & ~failed
            timeout, ended, won = timeout & ~succeeded, ended | succeeded, torch.where(succeeded, 1.0, 0.0)
        return Judged(
            episode=outcome.episode,
            goal=outcome.goal,
            sums=kept.sums + torch.where(outcome.finite[:, None], outcome.terms, 0.0),
            marks=(lost, won),
            signals=outcome.signals,
            reward=torch.where(finite, outcome.reward, 0.0),
            ended=Ended(failed, succeeded, timeout, finite, ended),
            observed=observed,
        )

    def clamped(self, commands: Tensors) -> dict[str, Any]:
        """Commands within their limits."""
        return {name: torch.clamp(value, *self.limits[name]) for name, value in commands.items()}
