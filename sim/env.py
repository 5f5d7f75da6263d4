"""The environment: many robots at one task, stepped together.

``VecEnv`` owns time, sensors, randomization, failures and resets. It speaks the language of a robot: signals
out, commands in, both in SI units. What a policy makes of the signals is the policy's affair, so the same
environment serves learning, a classical controller and an exported file.

Finished environments restart within the same step. Their last signals come beside the new ones, so that a
time-out can be bootstrapped from the true final observation.

Every environment has random numbers of its own (``robo_rl.sim.accelerate.fuse.random``): its future depends on its
own state alone,
whatever the number of environments and threads, and ``state`` and ``set_state`` carry it anywhere. A plant that is a
pure function (``dynamics``) is stepped in one native loop together with sensors, reward and bookkeeping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block, fuse, spaced, streams
from robo_rl.sim.accelerate.fuse.bound import Bound
from robo_rl.sim.accelerate.fuse.random import LIMIT
from robo_rl.sim.accelerate.fuse.structure import flatten
from robo_rl.sim.accelerate.fused_reset import FusedReset, fused_reset
from robo_rl.sim.env_state import EnvState, named, plant_state, set_plant_state
from robo_rl.sim.episode import Ended, EpisodeFunctions, Judged, Kept, Past
from robo_rl.sim.episode_statistics import EpisodeStatistics
from robo_rl.sim.large_signals import LargeSignals
from robo_rl.sim.newest import NewestSignals
from robo_rl.sim.privileged import Privileged
from robo_rl.sim.ranges import Levels
from robo_rl.sim.sensors import Sensors, without_large
from robo_rl.sim.tasks import Task, Tensors
from robo_rl.sim.transition import Draws, EpisodeState


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


class VecEnv:
    """n robots at a task."""

    def __init__(
        self,
        task: Task,
        n: int,
        seed: int = 0,
        device: str | torch.device = "cpu",
        fixed: Mapping[str, float | Tensor] | None = None,
        evaluation: bool = False,
        episode_length: float | None = None,
        make_plant: Callable[[int], Any] | None = None,
        first: int = 0,
    ) -> None:
        """``n`` environments; of a team task, each holds as many robots, one row each, and ``self.n`` counts robots.

        ``fixed`` sets named ranges to one value, or to one per environment (n,), where NaN fixes nothing.
        ``evaluation`` puts all ranges at their end, without rules; ``episode_length`` (s) replaces the task's, and
        ``make_plant`` (of so many robots) its plant, by another one of the same parameters and quantities. An episode
        has whole control steps, below 2²⁴. What an environment draws follows from ``seed`` and its number, counted
        from ``first``: so parts of a large batch can be made one after the other.
        """
        spec, fixed = task.spec, dict(fixed or {})
        self.task, self.team, self.n, self.device = task, spec.team, n * spec.team, torch.device(device)
        self.episode_length = episode_length or spec.episode_length
        self.episode_steps = min(max(1, round(self.episode_length / spec.control_period)), LIMIT - 1)
        self.sensors = Sensors(spec.signals, spec.control_period, spec.ranges, fixed, device)
        rules = () if evaluation else spec.rules
        self.levels = Levels({**spec.ranges, **self.sensors.ranges}, rules, self.n, device)
        for name, value in fixed.items():
            shared = not isinstance(value, Tensor) or value.ndim == 0 or len(value) != n
            self.levels.fix(name, value if shared else value.repeat_interleave(self.team))  # type: ignore[union-attr]
        self.plant: Any = make_plant(self.n) if make_plant else task.make_plant(self.n, device)
        self.fused = getattr(self.plant, "dynamics", None) is not None and self.team == 1
        """Whether plant and environment are one native loop."""
        self.diverged = 0
        """Episodes that were ended because they had diverged (``robo_rl.sim.transition.within``)."""
        self._first = first * self.team
        self._allocate()
        self.seed(seed)
        self._fused_reset: FusedReset | None = None
        if self.fused and not self.large and self.device.type == "cpu":
            self._fused_reset = fused_reset(self)
        self.statistics: EpisodeStatistics | None = None
        self.reset()

    def _allocate(self) -> None:
        """Blocks hold all that steps write: what resets draw, what episodes go on from, and the newest signals."""
        n, task, device, commands = self.n, self.task, self.device, self.task.spec.commands
        shapes = [(4,), (self.levels.level.shape[1],), (self.levels.size,)]
        self._book, (self.stream, level, self.drawn_block) = empty_block(n, shapes, device, packed=False)
        self.levels.level = level.copy_(self.levels.level)
        _, sent = empty_block(n, [(command.size,) for command in commands], device, packed=False)
        self._commands = {command.name: part for command, part in zip(commands, sent, strict=True)}
        limits = {
            command.name: torch.tensor([command.lower, command.upper], device=device)[:, None].unbind(0)
            for command in commands
        }
        idle = task.command(torch.zeros(1, task.action_size, device=device), task.first_memory(1, device))
        self.functions = EpisodeFunctions(task, self.sensors, self.levels, idle, limits)
        self.step_limit = torch.tensor([float(self.episode_steps)], device=device)  # (1,), as native loops read it
        self.large = LargeSignals(self.sensors, n, device) if self.sensors.apart else None
        self._neighbours: dict[str, Tensor] = {}
        if self.team > 1:
            found = self._related(self.plant.truth())
            _, parts = empty_block(n, [value.shape[1:] for value in found.values()], device)
            self._neighbours = dict(zip(found, parts, strict=True))
        self._turn, self._start = fuse(self.functions.turn), fuse(self.functions.start)
        _, (goal, lost, won) = empty_block(n, [(task.goal_size,), (), ()], device, packed=False)
        (block,), ((kept, signals),) = self._start.results(
            without_large(self.true()), goal, self.drawn_block, self.stream
        )
        every: list[Tensor] = []
        flatten(kept, every)
        rows = sum(part[0].numel() for part in every)
        self._block, self.kept = block[:rows], kept
        self.episode, self.draws, sums = self.kept
        over = torch.zeros(1, device=device)
        self.past = Past(self.stream, level, self.levels.fixed, self.episode.step, sums, (lost, won), over)
        shapes_of = {name: value.shape[1:] for name, value in signals.items()}
        self.newest = NewestSignals(task.spec.signals, shapes_of, block[rows:])
        self._step = fuse(self.fused_step if self.fused else self.functions.judge)
        self._bound: Bound | None = None
        self._parameters: Any = None
        self._privileged: Privileged | None = None
        self._seen = torch.zeros(n, 0, device=device)

    def fused_step(
        self, current: Any, parameters: Any, commands: Tensors, kept: Kept, stream: Any, limit: Any, *observe: Any
    ) -> tuple[Any, Judged]:
        """Plant and environment at once, as a pure function; ``observe`` as in ``EpisodeFunctions.judge``."""
        given = self.functions.clamped(commands)
        current = self.plant.dynamics(current, given, parameters)
        return current, self.functions.judge(current._asdict(), given, kept, stream, limit, *observe)

    # --- what can be seen ----------------------------------------------------------------------------------------

    @property
    def time(self) -> Tensor:
        """(n,) s since the episodes began."""
        return self.episode.step * self.task.spec.control_period

    @property
    def drawn(self) -> dict[str, Tensor]:
        """Live views of the last draw from every range, (n,) or (n, k) by name."""
        return self.levels.named(self.drawn_block)

    def apply(self, changes: Mapping[str, float]) -> None:
        """Let all environments be, from now on, as if the ranges ``changes`` had been drawn with these values.

        Where an episode begins is not changed any more. Later draws are not changed: see ``fix``.
        """
        drawn, ids = self.drawn, torch.arange(self.n, device=self.device)
        for name, number in changes.items():
            drawn[name][:] = number
        self.task.randomize(self.plant, ids, drawn)
        if hasattr(self.plant, "refresh"):
            self.plant.refresh(ids)
        mine: list[Tensor] = []
        given: list[Tensor] = []
        flatten(self.draws, mine)
        flatten(Draws(self.task.goal(drawn), *self.sensors.draws(drawn)), given)
        for target, value in zip(mine, given, strict=True):
            target.copy_(value)

    def keep_statistics(self) -> EpisodeStatistics:
        """Record episodes from now on; returns their statistics."""
        if self.statistics is None:
            self.statistics = EpisodeStatistics(self)
        return self.statistics

    def fix(self, name: str, value: float | None) -> None:
        """From the next episode on, the range ``name`` gives ``value``, or, with None, draws again.

        Episodes then begin by tensor operations: the native loop has the ranges that were fixed when it was made.
        """
        self._fused_reset = None
        if value is None:
            self.levels.release(name)
        else:
            self.levels.fix(name, value)

    def signals(self) -> dict[str, Tensor]:
        """The newest signals, (n, …) by name. No later step writes into them."""
        return self.newest.named()

    def truth(self, ids: Tensor | None = None) -> dict[str, Tensor]:
        """Every true quantity of the environments ``ids``, set-points included: copies, or of all, live."""
        if ids is None:
            return {**self.true(), **self.task.reference(self.time, self.draws.goal)}
        states = {name: value[ids] for name, value in self.true().items()}
        return {**states, **self.task.reference(self.time[ids], self.draws.goal[ids])}

    def true(self) -> dict[str, Tensor]:
        """The plant's quantities, live, and what robots of a team have to do with each other."""
        return {**self.plant.truth(), **self._neighbours}

    def _related(self, truth: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What robots of teams have to do with each other, a row each."""
        teams = {name: value.unflatten(0, (-1, self.team)) for name, value in truth.items()}
        return {name: value.flatten(0, 1) for name, value in self.task.neighbours(teams).items()}

    def privileged(self) -> Tensor:
        """(n, p) what a critic may see."""
        if self._privileged is None:
            self._privileged = Privileged(self)
        self._seen = self._privileged()
        return self._seen

    # --- episodes ------------------------------------------------------------------------------------------------

    def seed(self, seed: int) -> None:
        """From the next ``reset`` on, be as an environment that was made with this seed; levels start again."""
        self.stream.copy_(streams(seed, self.n, self._first, self.device))
        self.levels.restart()

    def reset(self, ids: Tensor | None = None) -> dict[str, Tensor]:
        """Begin new episodes in the environments ``ids`` (m,), or in all; returns their signals, (m, …) each.

        ``ids`` are rows: of teams, all robots of each.
        """
        ids = torch.arange(self.n, device=self.device) if ids is None else ids
        self.newest.move()
        self._restart(ids, over=False)
        return self.newest.rows(ids)

    def end(self, ids: Tensor, failed: Tensor, succeeded: Tensor | None = None) -> dict[str, Tensor]:
        """End the episodes of ``ids`` (m,): apply the rules of the ranges to their metrics, and begin new ones."""
        self.newest.move()
        self._mark(ids, failed, succeeded)
        self._restart(ids, over=True)
        return self.newest.rows(ids)

    def _mark(self, ids: Tensor, failed: Tensor, succeeded: Tensor | None) -> None:
        lost, won = self.past.marks
        lost[ids] = failed.float()
        won[ids] = (~failed if succeeded is None else succeeded).float()

    def _restart(self, ids: Tensor, over: bool) -> None:
        """Begin new episodes of ``ids`` (m,), and write their signals beside the newest of the others."""
        if self.statistics is not None:
            self.statistics.record(ids, over)
        self.past.over.fill_(over)
        if self._fused_reset is None:
            self.restart_by_tensors(ids)
        else:
            self._fused_reset(ids, self.newest.small(self.newest.block))

    def restart_by_tensors(self, ids: Tensor, native: bool = True) -> None:
        """As any plant and any task can; with ``native``, what is a pure function in any case is native code."""
        task, plant, past = self.task, self.plant, self.past
        fixed = {name: value[ids] for name, value in past.fixed.items()}
        lost, won = (mark[ids] for mark in past.marks)
        stream, level, step, sums = (value[ids] for value in (past.stream, past.level, past.step, past.sums))
        given = Past(stream, level, fixed, step, sums, (lost, won), past.over)
        rows = self._turn.block(given) if native else _stacked(self.functions.turn(given), len(ids))
        self._book[:, ids] = rows
        block, stream = rows[-self.levels.size :].mT, rows[:4].mT
        drawn = self.levels.named(block)
        goal = task.goal(drawn)
        task.randomize(plant, ids, drawn)
        task.place(plant, ids, drawn, goal)
        truth = {name: value[ids] for name, value in plant.truth().items()}
        if self.team > 1:
            for name, value in self._related(truth).items():
                self._neighbours[name][ids] = truth[name] = value
        begun = without_large(truth), goal, block, stream
        rows = self._start.block(*begun) if native else _stacked(self.functions.start(*begun), len(ids))
        self._block[:, ids], self.newest.block[:, ids] = rows[: len(self._block)], rows[len(self._block) :]
        if self.large:
            full = {**truth, **task.reference(0.0 * stream[:, 0], goal)}
            first = self.large.begin(ids, full, drawn, self.sensors.draws(drawn), stream)
            for name, value in first.items():
                if name not in self.newest.large:
                    self.newest.large[name] = value.new_zeros(self.n, *value.shape[1:])
                self.newest.large[name][ids] = value

    # --- stepping ------------------------------------------------------------------------------------------------

    def step(self, commands: Mapping[str, Tensor]) -> Step:
        """One control period under ``commands``, tensors (n, k) in SI units, clamped to their limits.

        A state, reward or signal that has diverged ends its episode as a failure with reward 0, and is counted.
        """
        for command, buffer in zip(self.task.spec.commands, self._commands.values(), strict=True):
            buffer.copy_(commands[command.name])
        if type(self.task).disturb is not Task.disturb:
            for name, value in self.task.disturb(self.time, self.draws.goal).items():
                self.plant.param(name).copy_(value)
        if not self.fused:
            for buffer, value in zip(
                self._commands.values(), self.functions.clamped(self._commands).values(), strict=True
            ):
                buffer.copy_(value)
            self.plant.step(self._commands)
        if self.team > 1:
            for name, value in self._related(self.plant.truth()).items():
                self._neighbours[name].copy_(value)
        before = self.newest.block, self.newest.large
        reward, ended = self._advance()
        if self.large:
            full = {**self.true(), **self.task.reference(self.time, self.draws.goal)}
            self.newest.large = self.large.measure(full, self.draws.sensors, self.stream, self.episode.step)
        ended = self._together(ended) if self.team > 1 else ended
        ids = ended.any.nonzero()[:, 0]
        final_signals, final_privileged, lost = self.newest.rows(ids), self._seen[ids], ~ended.finite[ids]
        if len(ids):
            if lost.any():
                self.diverged += int(lost.sum())
                for name, value in self.newest.rows(ids[lost], before).items():
                    final_signals[name][lost] = value
            if self._privileged is not None:
                final_privileged = torch.where(lost[:, None], 0.0, self.privileged()[ids])
            if self.team > 1:
                self._mark(ids, ended.failed[ids], ended.succeeded[ids] if self._can_succeed else None)
            self._restart(ids, over=True)
        return Step(
            self.signals(), reward, ended.failed, ended.succeeded, ended.timeout, ids, final_signals, final_privileged,
            lost,
        )  # fmt: skip

    def _advance(self) -> tuple[Tensor, Ended]:
        """Step the fused plant, and judge; what others may keep comes in new memory."""
        parameters = self.plant.parameters if self.fused else None
        if self._bound is None or self._parameters is not parameters:
            self._parameters, self._bound = parameters, self._bind()
        block = spaced(len(self.newest.block) + 1, self.n, device=self.device)
        flags = torch.empty(len(self._flags), self.n, dtype=torch.bool, device=self.device).unbind(0)
        self.newest.block, reward = block[:-1], block[-1]
        fresh = [*self.newest.small(self.newest.block).values(), reward, *flags]
        for place, target in enumerate(fresh, self._place):
            self._bound.redirect(place, target)
        self._bound()
        found = dict(zip(self._flags, flags, strict=True))
        return reward, Ended(*[found.get(name, self._nobody) for name in Ended._fields])

    def _bind(self) -> Bound:
        arguments: tuple[Any, ...] = (self._commands, self.kept, self.stream, self.step_limit)
        before = (self.plant.current, self.plant.parameters) if self.fused else (without_large(self.true()),)
        _, (room,) = self._step.results(*before, *arguments)
        mine = self.place_for(room[1] if self.fused else room)
        written: list[Tensor] = []
        flatten((self.plant.current if self.fused else (), mine[:4]), written)
        self._place = len(written)
        return self._step.bind(*before, *arguments, out=(self.plant.current, mine) if self.fused else mine)

    def place_for(self, judged: Judged) -> Judged:
        """Where a native loop writes what it judges: what goes on to the next step into this environment's memory.

        The rest, signals, reward and ``Ended``, stay where they are in ``judged``.
        """
        self._flags = [name for name in Ended._fields if isinstance(getattr(judged.ended, name), Tensor)]
        self._can_succeed = "succeeded" in self._flags
        self._nobody = torch.zeros(self.n, dtype=torch.bool, device=self.device)
        goal = self.draws.goal if isinstance(judged.goal, Tensor) else ()
        return judged._replace(episode=self.episode, goal=goal, sums=self.kept.sums, marks=self.past.marks)

    def begin_again(self, ids: Tensor) -> None:
        """New episodes for ``ids`` (m,), which ended with the newest step; their signals are the newest."""
        self._restart(ids, over=True)

    def _together(self, ended: Ended) -> Ended:
        """Robots of a team end together."""
        failed, succeeded, timeout, finite, _ = (value.unflatten(0, (-1, self.team)) for value in ended)
        failed = self.task.team_failed(failed) | ~finite.all(1)
        succeeded = self.task.team_succeeded(succeeded) & ~failed
        timeout = (self.episode.step[:: self.team] >= self.step_limit) & ~failed & ~succeeded
        whole = failed, succeeded, timeout, failed | succeeded | timeout
        failed, succeeded, timeout, any_of = (value.repeat_interleave(self.team) for value in whole)
        return Ended(failed, succeeded, timeout, ended.finite, any_of)

    # --- saving and restoring --------------------------------------------------------------------------------------

    def continue_from(self, current: Any, episode: EpisodeState, goal: Any, terms: Tensor) -> None:
        """Go on from a state that was computed outside, in which ``terms`` (n, t) were earned since the last one."""
        mine: list[Tensor] = []
        given: list[Tensor] = []
        flatten((self.plant.current, self.episode), mine)
        flatten((current, episode), given)
        for target, value in zip(mine, given, strict=True):
            target.copy_(value)
        if isinstance(goal, Tensor):
            self.draws.goal.copy_(goal)
        self.kept.sums.add_(terms)

    def _parts(self) -> dict[str, Tensor]:
        """All that changes, (n, …) by name, but for the plant and the large signals' sensors."""
        parts = {"stream": self.stream, "levels": self.levels.level, "drawn": self.drawn_block, **named(self.kept)}
        return {**parts, **named(self.signals(), "signal/"), **named(self._neighbours, "neighbours/")}

    def state(self, ids: Tensor) -> EnvState:
        """The complete state of the environments ``ids`` (m,), to restore it here or in other environments.

        What ranges are fixed to and the length of episodes are not part of it.
        """
        tensors = {name: value[ids] for name, value in self._parts().items()}
        large = self.large.state(ids) if self.large else {}
        return EnvState({**tensors, **named(large, "large/"), **plant_state(self.plant, ids)})

    def set_state(self, ids: Tensor, state: EnvState) -> None:
        """Put the environments ``ids`` (m,) into states (m) that environments of this task have been in.

        Under the same commands they repeat what followed, bit by bit. With the "stream" of another place, they go on
        with that one's random numbers.
        """
        self.newest.move()
        parts = self._parts()
        state.require({**parts, **(named(self.large.state(ids[:0]), "large/") if self.large else {})})
        for name, value in parts.items():
            value[ids] = state[name].to(self.device)
        if self.large:
            self.large.set_state(ids, state.part("large/"))
        set_plant_state(self.plant, ids, state)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        large = self.large.state(torch.arange(self.n, device=self.device)) if self.large else {}
        told = named(self.statistics.save(), "statistics/") if self.statistics else {}
        return {**self._parts(), **named(large, "large/"), **named(self.plant.save(), "plant/"), **told}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        self.newest.move()
        for name, value in self._parts().items():
            value.copy_(saved[name])
        if self.large:
            self.large.set_state(torch.arange(self.n, device=self.device), EnvState(dict(saved)).part("large/"))
        self.plant.load(EnvState(dict(saved)).part("plant/"))
        if self.statistics is not None:
            self.statistics.load(EnvState(dict(saved)).part("statistics/"))


def _stacked(value: Any, m: int) -> Tensor:
    """(numbers, m): all tensors of a structure, one below the other."""
    tensors: list[Tensor] = []
    flatten(value, tensors)
    return torch.cat([tensor.reshape(len(tensor), -1).mT.expand(-1, m) for tensor in tensors])
