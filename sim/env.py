"""The environment: many robots at one task, stepped together.

``VecEnv`` owns time, sensors, randomization, failures and resets. It speaks the language of a robot: signals
out, commands in, both in SI units. What a policy makes of the signals is the policy's affair, so the same
environment serves learning, a classical controller and an exported file.

Finished environments restart within the same step. Their last signals come beside the new ones, so that a
time-out can be bootstrapped from the true final observation.

Every environment has random numbers of its own (``sim.fuse.random``): its future depends on its own state alone,
whatever the number of environments and threads, and ``state`` and ``set_state`` carry it anywhere. A plant that is a
pure function (``dynamics``) is stepped in one native loop together with sensors, reward and bookkeeping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sim.env_state import EnvState, named, plant_state, set_plant_state
from sim.fuse import empty_block, fuse, streams
from sim.fuse.bound import Bound
from sim.fuse.random import LIMIT
from sim.fuse.structure import flatten
from sim.fused_reset import FusedReset, fused_reset
from sim.large_signals import LargeSignals
from sim.ranges import Levels
from sim.sensors import LARGE, Sensors
from sim.tasks import Task, Tensors
from sim.transition import (
    Draws,
    Ended,
    EpisodeState,
    Judged,
    first_moment,
    judge,
    privileged_observation,
    transition,
)


class Step(NamedTuple):
    """What ``VecEnv.step`` returns. Finished environments have begun again; ``ids`` tells which they are.

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
    """(m, p): what a critic saw then; (m, 0) if nobody ever asked for ``privileged``."""


class _Kept(NamedTuple):
    """What a new episode sets and a step goes on from."""

    episode: EpisodeState
    draws: Draws
    sums: Any


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
        """Environments that were ended because their state was no longer finite."""
        self._first_number = first * self.team
        self._allocate(seed)
        self._reset: FusedReset | None = None
        if self.fused and self._large is None and self.device.type == "cpu":
            self._reset = fused_reset(self)
        self.reset()

    def _allocate(self, seed: int) -> None:
        """Blocks hold all that steps write: what resets draw, what episodes go on from, and the newest signals."""
        n, task, device = self.n, self.task, self.device
        levels, commands = self.levels.level.shape[1], task.spec.commands
        self._book, (self.stream, level, self.drawn_block) = empty_block(
            n, [(4,), (levels,), (self.levels.size,)], device
        )
        level.copy_(self.levels.level)
        self.levels.level = level
        self.seed(seed)
        _, sent = empty_block(n, [(command.size,) for command in commands], device)
        self._commands = {command.name: part for command, part in zip(commands, sent, strict=True)}
        self._limits = {
            command.name: torch.tensor([command.lower, command.upper], device=device)[:, None].unbind(0)
            for command in commands
        }
        self._idle = task.command(torch.zeros(1, task.action_size, device=device), task.first_memory(1, device))
        self._limit = torch.tensor([float(self.episode_steps)], device=device)
        self._large = LargeSignals(self.sensors, n, device) if self.sensors.apart else None
        self._large_now: dict[str, Tensor] = {}
        self._neighbours: dict[str, Tensor] = {}
        if self.team > 1:
            found = self._related(self.plant.truth())
            _, parts = empty_block(n, [value.shape[1:] for value in found.values()], device)
            self._neighbours = dict(zip(found, parts, strict=True))
        _, (goal,) = empty_block(n, [(task.goal_size,)], device)
        _, (lost, won) = empty_block(n, [(), ()], device)
        self._marks = lost, won
        self._over = torch.zeros(1, device=device)
        """1 where the episodes that are over are to be judged by the rules, 0 where they are broken off."""
        self._turn, self._first = fuse(self.turned), fuse(self.started)
        given = (_without_large(self._true()), goal, self.drawn_block, self.stream)
        (block,), ((kept, signals),) = self._first.results(*given)
        every: list[Tensor] = []
        flatten(kept, every)
        self._rows = sum(part[0].numel() for part in every)
        self._kept, self._latest = block[: self._rows], block[self._rows :]
        self.kept: _Kept = kept
        self.episode, self.draws, self._sums = kept
        self._shapes = {name: value.shape[1:] for name, value in signals.items()}
        self._sizes = [shape.numel() for shape in self._shapes.values()]
        self._step_function = fuse(self._control_step if self.fused else self._judged)
        self._bound: tuple[Any, Bound] | None = None
        self._watch: tuple[Any, Bound] | None = None
        self._privileged = torch.zeros(n, 0, device=device)

    # --- the fused functions -------------------------------------------------------------------------------------

    def turning(self) -> tuple[Any, ...]:
        """What ``turned`` wants to know, (n, …) each."""
        known = self.stream, self.levels.level, self.levels.fixed, self.episode.step, self._sums
        return *known, *self._marks, self._over

    def turned(
        self, stream: Any, level: Any, fixed: Any, step: Any, sums: Any, lost: Any, won: Any, over: Any
    ) -> tuple[Any, Any, Any]:
        """Stream, levels and draws of new episodes; the levels after ``over`` was applied the rules."""
        terms = sums / torch.clamp(step, min=1.0)[:, None]
        metrics = {name: terms[:, i] for i, name in enumerate(self.task.spec.reward)}
        moved = self.levels.moved(level, {**metrics, "survived": 1.0 - lost, "success": won})
        level = torch.where(over[:, None] > 0.5, moved, level)
        episode = stream[:, 3:] + 1.0
        stream = torch.cat([stream[:, :3], torch.where(episode < LIMIT, episode, 0.0)], -1)
        return stream, level, self.levels.draw(level, stream, fixed)

    def started(self, truth: Tensors, goal: Any, drawn: Any, stream: Any) -> tuple[_Kept, dict[str, Any]]:
        """All that new episodes begin with, and their first signals."""
        given = self.levels.named(drawn)
        draws = Draws(goal, *self.sensors.draws(given))
        full = {**truth, **self.task.reference(0.0 * stream[:, 0], goal)}
        phases = self.sensors.phases(given)
        episode, signals = first_moment(self.task, self.sensors, full, self._idle, draws, phases, stream)
        sums = torch.stack([0.0 * episode.step for _ in self.task.spec.reward], -1)
        return _Kept(episode, draws, sums), signals

    def _judged(self, truth: Tensors, commands: Tensors, kept: _Kept, stream: Any, limit: Any) -> Judged:
        chance = self.sensors.chance(stream, kept.episode.step + 1.0)
        outcome = transition(self.task, self.sensors, truth, commands, kept.episode, kept.draws, chance)
        return judge(outcome, kept.sums, limit)

    def _control_step(
        self, current: Any, parameters: Any, commands: Tensors, kept: _Kept, stream: Any, limit: Any
    ) -> tuple[Any, Judged]:
        """Plant and environment at once."""
        given = {name: torch.clamp(value, *self._limits[name]) for name, value in commands.items()}
        current = self.plant.dynamics(current, given, parameters)
        return current, self._judged(current._asdict(), given, kept, stream, limit)

    # --- episodes ------------------------------------------------------------------------------------------------

    @property
    def time(self) -> Tensor:
        """(n,) s since the episodes began."""
        return self.episode.step * self.task.spec.control_period

    @property
    def drawn(self) -> dict[str, Tensor]:
        """The last draw from every range, (n,) or (n, k) by name."""
        return self.levels.named(self.drawn_block)

    def seed(self, seed: int) -> None:
        """From the next ``reset`` on, be as an environment that was made with this seed; levels start again."""
        self.stream.copy_(streams(seed, self.n, self._first_number, self.device))
        self.levels.restart()

    def reset(self, ids: Tensor | None = None) -> dict[str, Tensor]:
        """Begin new episodes in the environments ``ids`` (m,), or in all; returns their signals, (m, …) each.

        ``ids`` are rows: of teams, all robots of each.
        """
        ids = torch.arange(self.n, device=self.device) if ids is None else ids
        self._own_signals()
        self._over.fill_(0.0)
        self._restart(ids)
        return self._rows_of(ids, self._latest, self._large_now)

    def end(self, ids: Tensor, failed: Tensor, succeeded: Tensor | None = None) -> dict[str, Tensor]:
        """End the episodes of ``ids`` (m,): apply the rules of the ranges to their metrics, and begin new ones."""
        self._own_signals()
        self._mark(ids, failed, succeeded)
        self._restart(ids)
        return self._rows_of(ids, self._latest, self._large_now)

    def _mark(self, ids: Tensor, failed: Tensor, succeeded: Tensor | None) -> None:
        lost, won = self._marks
        lost[ids] = failed.float()
        won[ids] = (~failed if succeeded is None else succeeded).float()
        self._over.fill_(1.0)

    def _restart(self, ids: Tensor) -> None:
        """Begin new episodes of ``ids`` (m,), and write their signals beside the newest of the others."""
        if self._reset is None:
            self.restart_by_tensors(ids)
        else:
            self._reset(ids, self._cut(self._latest))

    def restart_by_tensors(self, ids: Tensor, fused: bool = True) -> None:
        """As any plant and any task can; ``fused``: what is a pure function in any case is native code."""
        task, n = self.task, self.n
        stream, level, limits, *known, over = self.turning()
        fixed = {name: value[ids] for name, value in limits.items()}
        given = stream[ids], level[ids], fixed, *[value[ids] for value in known], over
        rows = self._turn.block(*given) if fused else _stacked(self.turned(*given), len(ids))
        self._book[:, ids] = rows
        drawn, stream = rows[-self.levels.size :].mT, rows[:4].mT
        by_name = self.levels.named(drawn)
        goal = task.goal(by_name)
        task.randomize(self.plant, ids, by_name)
        task.place(self.plant, ids, by_name, goal)
        truth = {name: value[ids] for name, value in self.plant.truth().items()}
        if self.team > 1:
            for name, value in self._related(truth).items():
                self._neighbours[name][ids] = truth[name] = value
        begun = _without_large(truth), goal, drawn, stream
        block = self._first.block(*begun) if fused else _stacked(self.started(*begun), len(ids))
        self._kept[:, ids], self._latest[:, ids] = block[: self._rows], block[self._rows :]
        if self._large is not None:
            draws = Draws(goal, *self.sensors.draws(by_name)).sensors
            full = {**truth, **task.reference(0.0 * stream[:, 0], goal)}
            for name, value in self._large.begin(ids, full, by_name, draws, stream).items():
                if name not in self._large_now:
                    self._large_now[name] = torch.zeros(n, *value.shape[1:], device=self.device)
                self._large_now[name][ids] = value

    # --- what can be seen ----------------------------------------------------------------------------------------

    def truth(self, ids: Tensor) -> dict[str, Tensor]:
        """Copies of every true quantity of the environments ``ids``, set-points included."""
        states = {name: value[ids] for name, value in self._true().items()}
        return {**states, **self.task.reference(self.time[ids], self.draws.goal[ids])}

    def _true(self) -> dict[str, Tensor]:
        return {**self.plant.truth(), **self._neighbours}

    def _related(self, truth: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What the robots of teams have to do with each other, a row each."""
        teams = {name: value.unflatten(0, (-1, self.team)) for name, value in truth.items()}
        return {name: value.flatten(0, 1) for name, value in self.task.neighbours(teams).items()}

    def signals(self) -> dict[str, Tensor]:
        """The newest signals. No later step writes into them."""
        return self._ordered(self._cut(self._latest), self._large_now)

    def _cut(self, block: Tensor) -> dict[str, Tensor]:
        """Signals by name, (m, …) each, of a block (numbers, m)."""
        parts = block.mT.split_with_sizes(self._sizes, 1)
        shapes = self._shapes.items()
        return {
            name: part if len(shape) == 1 else part.unflatten(1, shape)
            for (name, shape), part in zip(shapes, parts, strict=True)
        }

    def _ordered(self, signals: dict[str, Tensor], large: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if self._large is None:
            return signals
        return {s.name: signals[s.name] if s.name in signals else large[s.name] for s in self.task.spec.signals}

    def _own_signals(self) -> None:
        """What was given to others stays as it is when episodes begin between steps."""
        self._latest = self._latest.clone()
        self._large_now = {name: value.clone() for name, value in self._large_now.items()}

    def privileged(self) -> Tensor:
        """(n, p) what a critic may see."""
        parameters = self.plant.parameters
        if self._watch is None or self._watch[0] is not parameters:
            self._watch = parameters, self._bind_privileged()
        for place, copy in self._copies.items():
            copy.copy_(parameters[place])
        block = torch.empty(self._privileged.shape[1], self.n, device=self.device)
        self._privileged = block.mT
        self._watch[1].redirect(0, self._privileged)
        self._watch[1]()
        return self._privileged

    def _bind_privileged(self) -> Bound:
        """Room for float32 copies of the parameters that ``privileged_observation`` reads, where they are not."""
        period, parameters = self.task.spec.control_period, self.plant.parameters

        def observe(truth: Tensors, step: Any, goal: Any, parameters: Any) -> Any:
            return privileged_observation(self.task, truth, step * period, goal, parameters)

        _, room = empty_block(self.n, [value.shape[1:] for value in parameters], self.device)
        fused, known = fuse(observe), (_without_large(self._true()), self.episode.step, self.draws.goal)
        read = fused.reads(*known, type(parameters)(*room))[-len(room) :]
        usable = [value.dtype == torch.float32 and len(value) == self.n for value in parameters]
        usable = [ok and _neighbouring(value) for ok, value in zip(usable, parameters, strict=True)]
        self._copies = {i: part for i, part in enumerate(room) if read[i] and not usable[i]}
        given = [value if ok else part for value, part, ok in zip(parameters, room, usable, strict=True)]
        arguments = (*known, type(parameters)(*given))
        _, (self._privileged,) = fused.results(*arguments)
        return fused.bind(*arguments, out=self._privileged)

    # --- stepping ------------------------------------------------------------------------------------------------

    def step(self, commands: Mapping[str, Tensor]) -> Step:
        """One control period under ``commands``, tensors (n, k) in SI units, clamped to their limits.

        A state that is no longer finite ends its episode as a failure with reward 0, and is counted.
        """
        for command, buffer in zip(self.task.spec.commands, self._commands.values(), strict=True):
            buffer.copy_(commands[command.name])
        if type(self.task).disturb is not Task.disturb:
            for name, value in self.task.disturb(self.time, self.draws.goal).items():
                self.plant.param(name).copy_(value)
        if not self.fused:
            for name, buffer in self._commands.items():
                torch.clamp(buffer, *self._limits[name], out=buffer)
            self.plant.step(self._commands)
            for name, value in self._related(self.plant.truth()).items() if self.team > 1 else ():
                self._neighbours[name].copy_(value)
        before, large_before = self._latest, self._large_now
        reward, ended = self._run()
        if self._large is not None:
            full = {**self._true(), **self.task.reference(self.time, self.draws.goal)}
            self._large_now = self._large.measure(full, self.draws.sensors, self.stream, self.episode.step)
        if self.team > 1:
            ended = self._together(ended)
        ids = ended.any.nonzero()[:, 0]
        final_signals = self._rows_of(ids, self._latest, self._large_now)
        final_privileged = self._privileged[ids]
        if len(ids):
            lost = ~ended.finite[ids]
            if lost.any():
                self.diverged += int(lost.sum())
                for name, value in self._rows_of(ids[lost], before, large_before).items():
                    final_signals[name][lost] = value
            if self._watch is not None:
                final_privileged = self.privileged()[ids]
            if self.team > 1:
                self._mark(ids, ended.failed[ids], None if self._never else ended.succeeded[ids])
            self._over.fill_(1.0)
            self._restart(ids)
        return Step(
            self.signals(), reward, ended.failed, ended.succeeded, ended.timeout, ids, final_signals, final_privileged
        )

    def _rows_of(self, ids: Tensor, block: Tensor, large: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copies of the rows ``ids`` of signals."""
        return self._ordered(self._cut(block[:, ids]), {name: value[ids] for name, value in large.items()})

    def _run(self) -> tuple[Tensor, Ended]:
        """Step, or only judge, with results in new memory where others may keep them."""
        parameters = self.plant.parameters if self.fused else None
        if self._bound is None or self._bound[0] is not parameters:
            self._bound = parameters, self._bind()
        call = self._bound[1]
        block = torch.empty(len(self._latest) + 1, self.n, device=self.device)
        flags = torch.empty(len(self._flags), self.n, dtype=torch.bool, device=self.device).unbind(0)
        self._latest, reward = block[:-1], block[-1]
        for place, target in enumerate([*self._cut(self._latest).values(), reward, *flags], self._fresh):
            call.redirect(place, target)
        call()
        found = dict(zip(self._flags, flags, strict=True))
        return reward, Ended(*[found.get(name, self._nobody) for name in Ended._fields])

    def _bind(self) -> Bound:
        kept = _Kept(self.episode, self.draws, self._sums)
        arguments: tuple[Any, ...] = (self._commands, kept, self.stream, self._limit)
        if self.fused:
            arguments = (self.plant.current, self.plant.parameters, *arguments)
        else:
            arguments = (_without_large(self._true()), *arguments)
        _, (room,) = self._step_function.results(*arguments)
        judged: Judged = room[1] if self.fused else room
        self._never = isinstance(judged.ended.succeeded, tuple)
        """Whether no episode of this task ever succeeds."""
        self._flags = [name for name in Ended._fields if not isinstance(getattr(judged.ended, name), tuple)]
        self._nobody = torch.zeros(self.n, dtype=torch.bool, device=self.device)
        goal = () if isinstance(judged.goal, tuple) else self.draws.goal
        written = (self.episode, goal, self._sums, self._marks)
        mine = judged._replace(episode=self.episode, goal=goal, sums=self._sums, marks=self._marks)
        first: list[Tensor] = []
        flatten((self.plant.current, *written) if self.fused else written, first)
        self._fresh = len(first)
        return self._step_function.bind(*arguments, out=(self.plant.current, mine) if self.fused else mine)

    def _together(self, ended: Ended) -> Ended:
        """Robots of a team end together."""
        finite, time_is_over = (getattr(ended, name).unflatten(0, (-1, self.team)) for name in ("finite", "timeout"))
        failed = ended.failed.unflatten(0, (-1, self.team))
        broken = ~finite.all(1)
        failed = self.task.team_failed(failed) | broken
        succeeded = ended.succeeded.unflatten(0, (-1, self.team))
        succeeded = self.task.team_succeeded(succeeded) & ~failed
        late = self.episode.step.unflatten(0, (-1, self.team))[:, 0] >= self._limit
        timeout = late & ~failed & ~succeeded
        del time_is_over
        whole = (failed, succeeded, timeout, ~broken, failed | succeeded | timeout)
        failed, succeeded, timeout, _, any_of = (value.repeat_interleave(self.team) for value in whole)
        return Ended(failed, succeeded, timeout, ended.finite, any_of)

    # --- going on elsewhere --------------------------------------------------------------------------------------

    def continue_from(self, current: Any, episode: EpisodeState, goal: Any, terms: Tensor) -> None:
        """Go on from a state that was computed outside, in which ``terms`` (n, t) were earned since the last one."""
        mine: list[Tensor] = []
        given: list[Tensor] = []
        flatten((self.plant.current, self.episode), mine)
        flatten((current, episode), given)
        for target, value in zip(mine, given, strict=True):
            target.copy_(value)
        if not isinstance(goal, tuple):
            self.draws.goal.copy_(goal)
        self._sums += terms

    def state(self, ids: Tensor) -> EnvState:
        """All that the future of the environments ``ids`` (m,) depends on, but for what their ranges are fixed to."""
        parts = {"stream": self.stream, "level": self.levels.level, "drawn": self.drawn_block}
        parts |= named(_Kept(self.episode, self.draws, self._sums)) | named(self._cut(self._latest), "signal/")
        parts |= named(self._neighbours, "neighbours/") | named(self._large_now, "signal/")
        tensors = {name: value[ids] for name, value in parts.items()}
        if self._large is not None:
            tensors |= named(self._large.state(ids), "large/")
        return EnvState({**tensors, **plant_state(self.plant, ids)})

    def set_state(self, ids: Tensor, state: EnvState) -> None:
        """Put the environments ``ids`` (m,) into states (m) that environments of this task have been in.

        Under the same commands they repeat what followed, bit by bit.
        """
        self._own_signals()
        parts = {"stream": self.stream, "level": self.levels.level, "drawn": self.drawn_block}
        parts |= named(_Kept(self.episode, self.draws, self._sums)) | named(self._cut(self._latest), "signal/")
        parts |= named(self._neighbours, "neighbours/") | named(self._large_now, "signal/")
        state.require({**parts, **named(self._large.state(ids[:0]), "large/")} if self._large is not None else parts)
        for name, value in parts.items():
            value[ids] = state[name].to(self.device)
        if self._large is not None:
            self._large.set_state(ids, state.part("large/"))
        set_plant_state(self.plant, ids, state)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        large = self._large.state(torch.arange(self.n, device=self.device)) if self._large is not None else {}
        return {
            "book": self._book,
            "levels": self.levels.level,
            "kept": self._kept,
            "signals": self._latest,
            **{f"plant/{name}": value for name, value in self.plant.save().items()},
            **named(self._neighbours, "neighbours/"),
            **named(self._large_now, "now/"),
            **named(large, "large/"),
        }

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        self._book.copy_(saved["book"])
        self._kept.copy_(saved["kept"])
        self._latest = saved["signals"].to(self.device, copy=True)
        self.plant.load(EnvState(dict(saved)).part("plant/"))
        for prefix, mine in (("neighbours/", self._neighbours), ("now/", self._large_now)):
            for name, value in mine.items():
                value.copy_(saved[prefix + name])
        if self._large is not None:
            self._large.set_state(torch.arange(self.n, device=self.device), EnvState(dict(saved)).part("large/"))


def _stacked(value: Any, m: int) -> Tensor:
    """(numbers, m): all tensors of a structure, one below the other."""
    tensors: list[Tensor] = []
    flatten(value, tensors)
    return torch.cat([tensor.reshape(len(tensor), -1).mT.expand(-1, m) for tensor in tensors])


def _without_large(truth: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a loop over single numbers can hold: see ``sim.sensors``."""
    return {name: value for name, value in truth.items() if value.shape[1:].numel() <= LARGE}


def _neighbouring(value: Tensor) -> bool:
    """Whether the environments of a tensor (n, …) are neighbours in memory, as in ``empty_block``."""
    return value.movedim(0, -1).is_contiguous()
