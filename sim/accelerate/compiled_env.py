"""The environment as native code: the functions of ``VecEnv``, fused, on memory that stays where it is.

All that one step needs and the next one goes on from lies in blocks, a row per number over all environments, which
native loops read and write in place. A plant that is a pure function (``dynamics``) is stepped in one loop with
sensors, reward and bookkeeping; where a task's resets can be traced, they are one loop too (``fused_reset``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block, fuse, spaced
from robo_rl.sim.accelerate.fuse.bound import Bound
from robo_rl.sim.accelerate.fuse.structure import flatten
from robo_rl.sim.accelerate.fused_reset import FusedReset, fused_reset
from robo_rl.sim.accelerate.privileged import Privileged
from robo_rl.sim.env import VecEnv
from robo_rl.sim.episode import Ended, EpisodeState, Judged, Kept
from robo_rl.sim.sensors import without_large
from robo_rl.sim.tasks import Tensors


class CompiledEnv(VecEnv):
    """n robots at a task; see ``VecEnv``."""

    def _allocate(self) -> None:
        n, device, commands = self.n, self.device, self.task.spec.commands
        self.fused = self.plant.dynamics is not None and self.team == 1
        shapes = [(4,), (self.levels.level.shape[1],), (self.levels.size,)]
        self._book, (self.stream, level, self.drawn_block) = empty_block(n, shapes, device, packed=False)
        self.levels.level = level.copy_(self.levels.level)
        _, sent = empty_block(n, [(command.size,) for command in commands], device, packed=False)
        self._commands = {command.name: part for command, part in zip(commands, sent, strict=True)}
        _, (goal, *marks) = empty_block(n, [(self.task.goal_size,), (), ()], device, packed=False)
        self._marks = marks[0], marks[1]
        self._fused_turn, self._fused_start = fuse(self.functions.turn), fuse(self.functions.start)
        begun = without_large(self.true()), goal, self.drawn_block, self.stream
        (block,), ((self.kept, signals),) = self._fused_start.results(*begun)
        every: list[Tensor] = []
        flatten(self.kept, every)
        rows = sum(part[0].numel() for part in every)
        self._block, self.signal_block = block[:rows], block[rows:]
        self._shapes = {name: value.shape[1:] for name, value in signals.items()}
        self._sizes = [shape.numel() for shape in self._shapes.values()]
        self._signals = self.small(self.signal_block)
        self.given_away = False
        """Whether anyone may hold the newest signals, which then may not be written any more."""
        self._step = fuse(self.fused_step if self.fused else self.functions.judge)
        self._bound: Bound | None = None
        self._parameters: Any = None

    def fused_step(
        self, current: Any, parameters: Any, commands: Tensors, kept: Kept, stream: Any, limit: Any, *observe: Any
    ) -> tuple[Any, Judged]:
        """Plant and environment at once, as a pure function; ``observe`` as in ``EpisodeFunctions.judge``."""
        given = self.functions.clamped(commands)
        current = self.plant.dynamics(current, given, parameters)
        return current, self.functions.judge(current._asdict(), given, kept, stream, limit, *observe)

    # --- the newest signals: views of a block, and beside them those that are too large for it --------------------

    def small(self, block: Tensor) -> dict[str, Tensor]:
        """The signals (m, …) that lie in a block (numbers, m)."""
        parts = block.mT.split_with_sizes(self._sizes, 1)
        return {
            name: part if len(shape) == 1 else part.unflatten(1, shape)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def signals(self) -> dict[str, Tensor]:
        """The newest signals, (n, …) by name. No later step writes into them."""
        self.given_away = True
        return super().signals()

    def signals_of(self, ids: Tensor) -> dict[str, Tensor]:
        """Copies of the newest signals of the environments ``ids`` (m,)."""
        small = self.small(self.signal_block[:, ids])
        return {
            s.name: small[s.name] if s.name in small else self._signals[s.name][ids] for s in self.task.spec.signals
        }

    def renew_signals(self) -> None:
        """Go on in other memory: what was handed out is not written any more."""
        large = {name: value.clone() for name, value in self._signals.items() if name not in self._shapes}
        self.signal_block = spaced(*self.signal_block.shape, device=self.device).copy_(self.signal_block)
        self._signals, self.given_away = {**self.small(self.signal_block), **large}, False

    # --- episodes ------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _fused_reset(self) -> FusedReset | None:
        native = self.fused and not self.large and self.device.type == "cpu"
        return fused_reset(self) if native else None

    def fix(self, name: str, value: float | None) -> None:
        """As ``VecEnv.fix``. Episodes then begin by tensors: the loop has the ranges that were fixed before."""
        self._fused_reset = None
        super().fix(name, value)

    def begin_again(self, ids: Tensor) -> None:
        """New episodes for ``ids`` (m,), which ended with the newest step; their signals are the newest."""
        self._restart(ids, over=True)

    def _begin(self, ids: Tensor) -> None:
        if self._fused_reset is None:
            super()._begin(ids)
        else:
            self._fused_reset(ids, self._signals)

    def _draw(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        rows = self._fused_turn.block(self.past.rows(ids))
        self._book[:, ids] = rows
        return rows[-self.levels.size :].mT, rows[:4].mT

    def _start(self, ids: Tensor, truth: Tensors, goal: Tensor, block: Tensor, stream: Tensor) -> None:
        rows = self._fused_start.block(truth, goal, block, stream)
        self._block[:, ids], self.signal_block[:, ids] = rows[: len(self._block)], rows[len(self._block) :]

    def privileged(self) -> Tensor:
        """(n, p) what a critic may see."""
        self._privileged = self._look()
        return self._privileged

    @functools.cached_property
    def _look(self) -> Privileged:
        return Privileged(self)

    # --- stepping ------------------------------------------------------------------------------------------------

    def _actuate(self, commands: Mapping[str, Tensor]) -> None:
        for name, buffer in self._commands.items():
            buffer.copy_(commands[name])
        if not self.fused:
            for name, value in self.functions.clamped(self._commands).items():
                self._commands[name].copy_(value)
            self.plant.step(self._commands)

    def _judge(self) -> tuple[Tensor, Ended]:
        """Step the fused plant, and judge; what others may keep comes in new memory."""
        parameters = self.plant.parameters if self.fused else None
        if self._bound is None or self._parameters is not parameters:
            self._parameters, self._bound = parameters, self._bind()
        block = spaced(len(self.signal_block) + 1, self.n, device=self.device)
        flags = torch.empty(len(self._flags), self.n, dtype=torch.bool, device=self.device).unbind(0)
        self.signal_block, reward = block[:-1], block[-1]
        small = self.small(self.signal_block)
        for place, target in enumerate([*small.values(), reward, *flags], self._place):
            self._bound.redirect(place, target)
        self._bound()
        self._signals = {**self._signals, **small}
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
        self._nobody = torch.zeros(self.n, dtype=torch.bool, device=self.device)
        goal = self.draws.goal if isinstance(judged.goal, Tensor) else ()
        return judged._replace(episode=self.episode, goal=goal, sums=self.kept.sums, marks=self.past.marks)

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
