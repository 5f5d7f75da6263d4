"""How episodes begin, go on and end, as pure functions that an environment fuses into native loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.random import LIMIT
from robo_rl.sim.ranges import Levels
from robo_rl.sim.sensors import Sensors
from robo_rl.sim.tasks import Task, Tensors
from robo_rl.sim.transition import Draws, EpisodeState, Outcome, first_moment, transition, within


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

        A state that has diverged (``robo_rl.sim.transition.within``) is a failure, and earns nothing; so is one of
        which a
        policy or a critic would see numbers that have: ``observe`` gives what they see, (n, …) each.
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
