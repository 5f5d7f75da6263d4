"""New episodes in one native loop, for plants and tasks that are pure functions.

A task's ``randomize`` and ``place`` write into a plant. Here they write into a plant on paper, which keeps what was
written as symbols, so that draws, goals, parameters, first states and first signals of the environments that begin
are one fused function. A task that can't be traced like that, or gives something else when it is, begins its episodes
by tensor operations.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import fuse
from robo_rl.sim.accelerate.fuse.bound import Bound, Native
from robo_rl.sim.accelerate.fuse.structure import flatten
from robo_rl.sim.accelerate.fuse.symbol import Symbol
from robo_rl.sim.env import VecEnv
from robo_rl.sim.episode import Kept, Past

if TYPE_CHECKING:
    from robo_rl.sim.accelerate.compiled_env import CompiledEnv

COMPARED = 32
"""Environments that begin both ways, to see whether it is the same."""


class _Everyone:
    """The environments that begin, whichever they are."""


EVERYONE = _Everyone()


class _Field:
    """One quantity of a plant on paper."""

    def __init__(self, name: str, shape: torch.Size, written: dict[str, Any]) -> None:
        self._name, self._shape, self._written = name, shape, written

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is not EVERYONE:
            raise TypeError("only whole quantities of the environments that begin can be traced")
        if not isinstance(value, Symbol):
            value = torch.as_tensor(value, dtype=torch.float32)
        self._written[self._name] = value.expand((1, *self._shape))


class PlantOnPaper:
    """Stands for a plant: its constants, and fields that remember what is written into them."""

    def __init__(self, plant: Any) -> None:
        self._plant, self.nominal = plant, plant.nominal
        self.parameters_written: dict[str, Any] = {}
        self.placed: dict[str, Any] = {}
        shapes = {name: value.shape[1:] for name, value in plant.current._asdict().items()}
        fields = [_Field(name, shape, self.placed) for name, shape in shapes.items()]
        self.current = type(plant.current)(*fields)

    def param(self, name: str) -> _Field:
        """A parameter of the plant, to be written."""
        return _Field(name, getattr(self.nominal, name).shape[1:], self.parameters_written)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._plant, name)
        if isinstance(value, Tensor | tuple | Mapping) or callable(value):
            raise TypeError(f"'{name}' of a plant can't be traced")
        return value


class Restarted(NamedTuple):
    """All that begins with an episode."""

    book: tuple[Any, Any, Any]
    parameters: dict[str, Any]
    placed: dict[str, Any]
    kept: Kept
    signals: dict[str, Any]


class FusedReset:
    """Begins episodes of an environment."""

    def __init__(self, env: CompiledEnv) -> None:
        """TypeError and other errors of the task where it can't be traced."""
        self.env = env
        arguments = (env.plant.current, env.past)
        fused = fuse(self._restarted)
        _, (room,) = fused.results(*arguments)
        written = Restarted(
            book=(env.stream, env.levels.level, env.drawn_block),
            parameters={name: env.plant.param(name) for name in room.parameters},
            placed={name: getattr(env.plant.current, name) for name in room.placed},
            kept=env.kept,
            signals=room.signals,
        )
        first: list[Tensor] = []
        flatten(written[:-1], first)
        self._place = len(first)
        self._call: Bound = fused.bind(*arguments, out=written)
        self.native = isinstance(self._call, Native)

    def _restarted(self, current: Any, past: Past) -> Restarted:
        env, plant = self.env, PlantOnPaper(self.env.plant)
        stream, level, drawn = env.functions.turn(past)
        given = env.levels.named(drawn)
        goal = env.task.goal(given)
        env.task.randomize(plant, EVERYONE, given)  # type: ignore[arg-type]
        env.task.place(plant, EVERYONE, given, goal)  # type: ignore[arg-type]
        kept, signals = env.functions.start({**current._asdict(), **plant.placed}, goal, drawn, stream)
        return Restarted((stream, level, drawn), plant.parameters_written, plant.placed, kept, signals)

    def __call__(self, ids: Tensor, signals: Mapping[str, Tensor]) -> None:
        """Begin episodes of ``ids`` (m,) and write their signals into ``signals`` (n, …)."""
        for place, target in enumerate(signals.values(), self._place):
            self._call.redirect(place, target)
        self._call(ids)


def fused_reset(env: CompiledEnv) -> FusedReset | None:
    """The resets of an environment as one loop, where they can be, and where they are what the task's own are.

    A warning says, once for each reason, where they are not: tensor operations take many times as long.
    """
    try:
        reset = FusedReset(env)
    except Exception as error:  # whatever a task does that can't be traced: without tracing it works, or tells why not
        _say_slow(env, f"they can't be traced ({type(error).__name__}: {error})")
        return None
    if not reset.native:  # there is no compiler, as was said
        return None
    if _agrees(env, reset):
        return reset
    _say_slow(env, "traced, they begin otherwise")
    return None


def _say_slow(env: CompiledEnv, reason: str) -> None:
    name = env.task.name
    warnings.warn(f"task '{name}': its episodes begin slowly, by tensor operations: {reason[:500]}", stacklevel=2)


def _agrees(env: CompiledEnv, reset: FusedReset) -> bool:
    """Whether episodes begin alike both ways; leaves the environment as it was."""
    ids = torch.arange(min(env.n, COMPARED), device=env.device)
    before = env.state(ids)
    plain = object.__new__(VecEnv)  # the methods that are plain torch, on the same memory
    plain.__dict__ = env.__dict__
    plain._begin(ids)
    expected = env.state(ids)
    env.set_state(ids, before)
    reset(ids, env.signals())
    found = env.state(ids)
    env.set_state(ids, before)
    pairs = [(found[name], expected[name]) for name in expected]
    return all(torch.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True) for a, b in pairs)
