"""The environment: many robots at one task, stepped together.

``VecEnv`` owns time, sensors, randomization, failures and resets. It speaks the language of a robot: signals
out, commands in, both in SI units. What a policy makes of the signals is the policy's affair, so the same
environment serves learning, a classical controller and an exported file.

Finished environments restart within the same step. Their last signals come beside the new ones, so that a
time-out can be bootstrapped from the true final observation.

Every environment has random numbers of its own (``robo_rl.sim.accelerate.fuse.random``): its future depends on its
own state alone, whatever the number of environments and threads, and ``state`` and ``set_state`` carry it anywhere.

Here all of it is plain torch. ``VecEnv(...)`` makes a ``robo_rl.sim.accelerate.compiled_env.CompiledEnv``, which runs
the same functions as native code, unless it is told ``compiled=False``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.random import LIMIT, streams
from robo_rl.sim.env_state import Restorable, copied, write
from robo_rl.sim.episode import Draws, Ended, EpisodeFunctions, Past, Step, privileged_observation
from robo_rl.sim.episode_statistics import EpisodeStatistics
from robo_rl.sim.large_signals import LargeSignals
from robo_rl.sim.plants import completed
from robo_rl.sim.ranges import Levels
from robo_rl.sim.sensors import Sensors, without_large
from robo_rl.sim.tasks import Task
from robo_rl.sim.teams import Teams


class VecEnv(Restorable):
    """n robots at a task."""

    fused = False  # whether plant and environment are one native loop

    def __new__(cls, *args: Any, compiled: bool = True, **kwargs: Any) -> VecEnv:
        """The compiled subclass, as ``pathlib.Path`` makes the subclass of the system that it is on."""
        if cls is VecEnv and compiled:
            from robo_rl.sim.accelerate.compiled_env import CompiledEnv

            cls = CompiledEnv
        return super().__new__(cls)

    def __init__(
        self, task: Task, n: int, seed: int = 0, device: str | torch.device = "cpu",
        fixed: Mapping[str, float | Tensor] | None = None, evaluation: bool = False,
        episode_length: float | None = None, make_plant: Callable[[int], Any] | None = None, first: int = 0,
        compiled: bool = True,
    ) -> None:  # fmt: skip
        """``n`` environments; of a team task, each holds as many robots, one row each, and ``self.n`` counts robots.

        ``fixed`` sets named ranges to one value, or to one per environment (n,), where NaN fixes nothing.
        ``evaluation`` puts all ranges at their end, without rules; ``episode_length`` (s) replaces the task's, and
        ``make_plant`` (of so many robots) its plant, by another one of the same parameters and quantities. An episode
        has whole control steps, below 2²⁴. What an environment draws follows from ``seed`` and its number, counted
        from ``first``: so parts of a large batch can be made one after the other. ``compiled``: see the module.
        """
        spec = task.spec
        self.task, self.team, self.n, self.device = task, spec.team, n * spec.team, torch.device(device)
        self.episode_length = episode_length or spec.episode_length
        self.episode_steps = min(max(1, round(self.episode_length / spec.control_period)), LIMIT - 1)
        self.sensors = Sensors(spec.signals, spec.control_period, spec.ranges, fixed or {}, device)
        ranges = {**spec.ranges, **self.sensors.ranges}
        self.levels = Levels(ranges, () if evaluation else spec.rules, self.n, device)
        for name, value in (fixed or {}).items():
            self.levels.fix(name, value, spec.team)
        self.plant = completed(make_plant(self.n) if make_plant else task.make_plant(self.n, device))
        self.teams = Teams(task, self.plant.truth()) if self.team > 1 else None
        self.large = LargeSignals(self.sensors, self.n, self.device) if self.sensors.apart else None
        self.functions = EpisodeFunctions.of(task, self.sensors, self.levels, self.device)
        self.step_limit = torch.tensor([float(self.episode_steps)], device=device)
        self.diverged = 0
        """Episodes that were ended because they had diverged (``robo_rl.sim.episode.within``)."""
        self.statistics: EpisodeStatistics | None = None
        self._first, self._privileged = first * self.team, torch.zeros(self.n, 0, device=device)
        self._allocate()
        self.episode, self.draws, sums = self.kept
        before = self.stream, self.levels.level, self.levels.fixed, self.episode.step, sums, self._marks
        self.past = Past(*before, over=torch.zeros(1, device=device))
        self.seed(seed)
        self.reset()

    def _allocate(self) -> None:
        """Room for what resets draw, what episodes go on from, how they end, and the newest signals."""
        sizes = [4, self.levels.size, self.task.goal_size, 2]
        self.stream, self.drawn_block, goal, marks = torch.zeros(self.n, sum(sizes), device=self.device).split(sizes, 1)
        self._marks = marks.unbind(1)
        begun = self.functions.start(without_large(self.true()), goal, self.drawn_block, self.stream)
        self.kept, self._signals = copied(begun, self.n)

    @property
    def time(self) -> Tensor:
        """(n,) s since the episodes began."""
        return self.episode.step * self.task.spec.control_period

    @property
    def drawn(self) -> dict[str, Tensor]:
        """Live views of the last draw from every range, (n,) or (n, k) by name."""
        return self.levels.named(self.drawn_block)

    def signals(self) -> dict[str, Tensor]:
        """The newest signals, (n, …) by name. No later step writes into them."""
        return {signal.name: self._signals[signal.name] for signal in self.task.spec.signals}

    def signals_of(self, ids: Tensor) -> dict[str, Tensor]:
        """Copies of the newest signals of the environments ``ids`` (m,)."""
        return {name: value[ids] for name, value in self.signals().items()}

    def renew_signals(self) -> None:
        """Go on in other memory: what was handed out is not written any more."""
        self._signals = copied(self._signals, self.n)

    def true(self) -> dict[str, Tensor]:
        """The plant's quantities, live, and what robots of a team have to do with each other."""
        return {**self.plant.truth(), **(self.teams.neighbours if self.teams else {})}

    def truth(self, ids: Tensor | None = None) -> dict[str, Tensor]:
        """Every true quantity of the environments ``ids``, set-points included: copies, or of all, live."""
        rows = slice(None) if ids is None else ids
        states = self.true() if ids is None else {name: value[ids] for name, value in self.true().items()}
        return {**states, **self.task.reference(self.time[rows], self.draws.goal[rows])}

    def privileged(self) -> Tensor:
        """(n, p) what a critic may see."""
        parameters, truth = copied(self.plant.parameters, self.n), without_large(self.true())
        self._privileged = privileged_observation(self.task, truth, self.time, self.draws.goal, parameters).float()
        return self._privileged

    def keep_statistics(self) -> EpisodeStatistics:
        """Record episodes from now on; returns their statistics."""
        self.statistics = self.statistics or EpisodeStatistics(self)
        return self.statistics

    def seed(self, seed: int) -> None:
        """From the next ``reset`` on, be as an environment that was made with this seed; levels start again."""
        self.stream.copy_(streams(seed, self.n, self._first, self.device))
        self.levels.restart()

    def fix(self, name: str, value: float | None) -> None:
        """From the next episode on, the range ``name`` gives ``value``, or, with None, draws again."""
        self.levels.fix(name, value)

    def apply(self, changes: Mapping[str, float]) -> None:
        """Let all environments go on as if ``changes`` had been drawn, by range. Of later draws, see ``fix``."""
        drawn, ids = self.drawn, torch.arange(self.n, device=self.device)
        for name, number in changes.items():
            drawn[name][:] = number
        self.task.randomize(self.plant, ids, drawn)
        self.plant.refresh(ids)
        write(self.draws, Draws(self.task.goal(drawn), *self.sensors.draws(drawn)))

    def reset(self, ids: Tensor | None = None) -> dict[str, Tensor]:
        """Begin new episodes in the rows ``ids`` (m,), whole teams, or in all; returns their signals, (m, …) each."""
        ids = torch.arange(self.n, device=self.device) if ids is None else ids
        self.renew_signals()
        self._restart(ids, over=False)
        return self.signals_of(ids)

    def end(self, ids: Tensor, failed: Tensor, succeeded: Tensor | None = None) -> dict[str, Tensor]:
        """End the episodes of ``ids`` (m,): apply the rules of the ranges to their metrics, and begin new ones."""
        self.renew_signals()
        self._mark(ids, failed, succeeded)
        self._restart(ids, over=True)
        return self.signals_of(ids)

    def _mark(self, ids: Tensor, failed: Tensor, succeeded: Tensor | None) -> None:
        lost, won = self.past.marks
        lost[ids], won[ids] = failed.float(), (~failed if succeeded is None else succeeded).float()

    def _restart(self, ids: Tensor, over: bool) -> None:
        """Begin new episodes of ``ids`` (m,), and write their signals beside the newest of the others."""
        if self.statistics is not None:
            self.statistics.record(ids, over)
        self.past.over.fill_(over)
        self._begin(ids)

    def _begin(self, ids: Tensor) -> None:
        block, stream = self._draw(ids)
        drawn = self.levels.named(block)
        goal = self.task.goal(drawn)
        self.task.randomize(self.plant, ids, drawn)
        self.task.place(self.plant, ids, drawn, goal)
        truth = {name: value[ids] for name, value in self.plant.truth().items()}
        truth |= self.teams.update(truth, ids) if self.teams else {}
        self._start(ids, without_large(truth), goal, block, stream)
        if self.large:
            full = {**truth, **self.task.reference(0.0 * stream[:, 0], goal)}
            self.large.begin(ids, full, drawn, self.sensors.draws(drawn), stream, self._signals)

    def _draw(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Draws (m, numbers) for new episodes, by the levels that follow from the last ones, and streams (m, 4)."""
        stream, level, block = self.functions.turn(self.past.rows(ids))
        self.stream[ids], self.levels.level[ids], self.drawn_block[ids] = stream, level, block
        return block, stream

    def _start(self, ids: Tensor, truth: dict[str, Tensor], goal: Tensor, block: Tensor, stream: Tensor) -> None:
        """The states of new episodes, and their first signals."""
        write((self.kept, self._signals), self.functions.start(truth, goal, block, stream), ids)

    def step(self, commands: Mapping[str, Tensor]) -> Step:
        """One control period under ``commands``, tensors (n, k) in SI units, clamped to their limits.

        A state, reward or signal that has diverged ends its episode as a failure with reward 0, and is counted.
        """
        if type(self.task).disturb is not Task.disturb:
            for name, value in self.task.disturb(self.time, self.draws.goal).items():
                self.plant.param(name).copy_(value)
        self._actuate(commands)
        if self.teams:
            self.teams.update(self.plant.truth())
        before, (reward, ended) = self._signals, self._judge()
        if self.large:
            full = {**self.true(), **self.task.reference(self.time, self.draws.goal)}
            self._signals |= self.large.measure(full, self.draws.sensors, self.stream, self.episode.step)
        ended = self.teams.ended(ended, self.episode.step, self.step_limit) if self.teams else ended
        ids = ended.any.nonzero()[:, 0]
        final, final_privileged, lost = self.signals_of(ids), self._privileged[ids], ~ended.finite[ids]
        if len(ids):
            if lost.any():
                self.diverged += int(lost.sum())
                for name, value in final.items():
                    value[lost] = before[name][ids[lost]]
            if self._privileged.shape[1]:
                final_privileged = torch.where(lost[:, None], 0.0, self.privileged()[ids])
            if self.teams:
                self._mark(ids, ended.failed[ids], ended.succeeded[ids] if self.task.knows_success else None)
            self._restart(ids, over=True)
        flags = ended.failed, ended.succeeded, ended.timeout
        return Step(self.signals(), reward, *flags, ids, final, final_privileged, lost)

    def _actuate(self, commands: Mapping[str, Tensor]) -> None:
        """Step the plant."""
        given = {c.name: commands[c.name].to(self.device, torch.float32) for c in self.task.spec.commands}
        self._commands = self.functions.clamped(given)
        self.plant.step(self._commands)

    def _judge(self) -> tuple[Tensor, Ended]:
        """What became of the episodes: rewards (n,) and ends. Keeps the signals."""
        given = self._commands, self.kept, self.stream, self.step_limit
        judged = self.functions.judge(without_large(self.true()), *given)
        write((self.episode, self.draws.goal, self.kept.sums, self.past.marks), judged[:4])
        self._signals = copied(judged.signals, self.n)
        return judged.reward, judged.ended.complete()
