"""Search what a graph may be given for what no flight shows: commands that jump, memory that grows, parts that sleep.

The rows that are tried begin at what flights have shown and go over the whole of the contract's ranges: single
elements and pairs of them along lines, all at once, corners. Memory has no ranges, so what flights have shown of it is
widened. A line whose commands change most between two neighbours is halved until the change is a jump or is not one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from robo_rl.contract import Contract, Signal

Signals = dict[str, np.ndarray]
Run = Callable[[Signals, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(signals (n, *dimensions), state (n, S)) -> commands (n, K) from 0 (lower limit) to 1 (upper), and the next state."""

ROWS = 100_000
"""Tried all over the ranges."""
NUMBERS = 40_000_000
"""Of all of them together, which makes the rows of large signals fewer."""
AXES, BASES, POINTS, PAIRS = 128, 8, 49, 512
"""Lines: elements at most, rows that each goes through, places on a line; and how many lines have two elements."""
CLOSE = 24
"""Gaps that are halved."""
NARROW = 1e-4
"""Of an element's range: across so little, a change of the commands is a jump."""
JUMP = 0.25
"""Of a command's range."""
BEYOND = 4.0
"""What flights have shown of memory is widened to both sides by so many times its width."""
REPEATS = 8
"""Times that what flights have shown is gone through again, to see what memory does in the long run."""
LATEST = 1e6
"""Times what flights have shown of memory that grows: an episode of ten seconds becomes four months."""


@dataclass(frozen=True)
class Rows:
    """What a graph is asked with."""

    signals: Signals
    """(n, *dimensions) by name."""
    state: np.ndarray
    """(n, S)."""

    def __len__(self) -> int:
        return len(self.state)

    def take(self, index: np.ndarray) -> Rows:
        """Some of them, copied."""
        return Rows({name: value[index] for name, value in self.signals.items()}, self.state[index])

    def parts(self) -> list[Rows]:
        """All of them, some thousand at once."""
        return [self.take(np.arange(k, min(k + 4096, len(self)))) for k in range(0, len(self), 4096)]

    @staticmethod
    def joined(parts: list[Rows]) -> Rows:
        """One after the other."""
        names = parts[0].signals
        return Rows(
            {name: np.concatenate([part.signals[name] for part in parts]) for name in names},
            np.concatenate([part.state for part in parts]),
        )


@dataclass(frozen=True)
class Jump:
    """The greatest change of a command, in units of its range, across ``NARROW`` of an element's range."""

    size: float
    where: str
    """Elements with what they are there: "position_setpoint x = 5"."""
    ends: Rows
    """The two rows."""


def spread_rows(contract: Contract, seen: Rows, generator: np.random.Generator) -> Rows:
    """Rows all over the ranges: one signal, two elements or all of them anywhere, and corners; memory too."""
    size = sum(signal.size for signal in contract.signals) + contract.state_size
    count = max(256, min(ROWS, NUMBERS // max(1, size)))
    rows = seen.take(generator.integers(len(seen), size=count))
    kind = generator.integers(4, size=count)
    chosen = generator.integers(len(contract.signals), size=count)
    for i, signal in enumerate(contract.signals):
        low, high = (limit.reshape(signal.dimensions).astype(np.float32) for limit in signal.bounds)
        value = rows.signals[signal.name]
        anywhere = low + (high - low) * generator.random(value.shape, np.float32)
        ends = np.stack([np.broadcast_to(end, value.shape) for end in (low, high, np.clip(0.0, low, high))])
        corner = np.take_along_axis(ends, generator.integers(3, size=(1, *value.shape)), 0)[0]
        pair = generator.random(value.shape) < 2.0 / max(2, size)
        flat = (len(value), *[1] * (value.ndim - 1))
        new = np.select(
            [((kind == 0) & (chosen == i)).reshape(flat), (kind == 1).reshape(flat) & pair,
             (kind == 2).reshape(flat), (kind == 3).reshape(flat)],
            [anywhere, anywhere, anywhere, corner], value,
        )  # fmt: skip
        rows.signals[signal.name] = _proper(signal, new)
    if contract.state_size:
        low, high = memory_range(seen)
        new = low + (high - low) * generator.random(rows.state.shape, np.float32)
        rows.state[:] = np.where(generator.random((count, 1)) < 0.3, new, rows.state)
    return rows


def memory_range(seen: Rows) -> tuple[np.ndarray, np.ndarray]:
    """What memory is tried with, (S,) each: from what flights have shown, ``BEYOND`` times as wide to both sides."""
    low, high = seen.state.min(0), seen.state.max(0)
    return low - BEYOND * (high - low), high + BEYOND * (high - low)


def _proper(signal: Signal, value: np.ndarray) -> np.ndarray:
    """A quaternion has the norm 1."""
    if signal.kind == "quaternion":
        norm = np.linalg.norm(value, axis=-1, keepdims=True)
        value = np.where(norm > 1e-3, value / np.maximum(norm, 1e-3), np.array([0, 0, 0, 1]))
    return np.ascontiguousarray(value, np.float32)


@dataclass(frozen=True)
class _Line:
    """Rows that differ in one or two elements."""

    base: int
    axes: tuple[int, ...]
    """Columns of ``_Columns``."""
    ends: tuple[np.ndarray, np.ndarray]
    """(len(axes),) at its two ends."""


class _Columns:
    """Every element of signals and memory, by its number."""

    def __init__(self, contract: Contract, seen: Rows) -> None:
        self.contract, self.seen = contract, seen
        self.places = [(s, k) for s in contract.signals for k in range(s.size)]
        self.blocks = [(block.name, k) for block in contract.state for k in range(block.size)]
        low, high = memory_range(seen)
        self.low = np.concatenate([*(s.bounds[0] for s in contract.signals), low])
        self.high = np.concatenate([*(s.bounds[1] for s in contract.signals), high])

    def value(self, base: int, column: int) -> float:
        """Of the row ``base`` of what was seen."""
        if column < len(self.places):
            signal, k = self.places[column]
            return float(self.seen.signals[signal.name][base].reshape(-1)[k])
        return float(self.seen.state[base, column - len(self.places)])

    def label(self, column: int) -> str:
        if column < len(self.places):
            signal, k = self.places[column]
            return f"{signal.name} {signal.labels[k]}"
        name, k = self.blocks[column - len(self.places)]
        return f"memory {name}[{k}]"

    def rows(self, lines: list[_Line], at: np.ndarray) -> Rows:
        """(lines · places) rows, at ``at`` (lines, places) from 0 to 1 along each line."""
        places = at.shape[1]
        rows = self.seen.take(np.repeat([line.base for line in lines], places))
        for i, line in enumerate(lines):
            part = slice(i * places, (i + 1) * places)
            for column, begin, end in zip(line.axes, *line.ends, strict=True):
                value = begin + (end - begin) * at[i]
                if column < len(self.places):
                    signal, k = self.places[column]
                    rows.signals[signal.name][part].reshape(places, -1)[:, k] = value
                else:
                    rows.state[part, column - len(self.places)] = value
        return Rows({s.name: _proper(s, rows.signals[s.name]) for s in self.contract.signals}, rows.state)


def find_jump(
    contract: Contract, run: Run, seen: Rows, generator: np.random.Generator, memory: bool = False
) -> Jump:  # fmt: skip
    """The greatest jump along lines through rows that were seen, as signals change, or ``memory`` does."""
    columns = _Columns(contract, seen)
    lines = _lines(columns, generator, memory)
    at = np.tile(np.linspace(0.0, 1.0, POINTS), (len(lines), 1))
    at[:, 1:-1] += generator.uniform(-0.4, 0.4, (len(lines), POINTS - 2)) / (POINTS - 1)
    commands = _commands(run, columns.rows(lines, at)).reshape(len(lines), POINTS, -1)
    change = _change(commands)  # (lines, POINTS - 1)
    best = np.argsort(-change, axis=None)[: 4 * CLOSE]
    rows, gaps = np.unravel_index(best, change.shape)
    _, first = np.unique(rows, return_index=True)  # of each line the greatest
    first = np.sort(first)[:CLOSE]
    rows, gaps = rows[first], gaps[first]
    chosen, low, high = [lines[i] for i in rows], at[rows, gaps], at[rows, gaps + 1]
    while (high - low).max() > NARROW:
        middle = (low + high) / 2
        found = _commands(run, columns.rows(chosen, np.stack([low, middle, high], 1))).reshape(len(chosen), 3, -1)
        left = _change(found)[:, 0] >= _change(found)[:, 1]
        low, high = np.where(left, low, middle), np.where(left, middle, high)
    found = _commands(run, columns.rows(chosen, np.stack([low, high], 1))).reshape(len(chosen), 2, -1)
    sizes = _change(found)[:, 0]
    worst = int(np.argmax(sizes))
    line, place = chosen[worst], (low[worst] + high[worst]) / 2
    values = line.ends[0] + (line.ends[1] - line.ends[0]) * place
    named = ", ".join(f"{columns.label(c)} = {value:.4g}" for c, value in zip(line.axes, values, strict=True))
    return Jump(float(sizes[worst]), named, columns.rows([line], np.array([[low[worst], high[worst]]])))


def _lines(columns: _Columns, generator: np.random.Generator, memory: bool) -> list[_Line]:
    """Along every element, or as many as there is time for, and, of signals, from what was seen to where two end."""
    count = len(columns.places)
    axes = np.arange(count, len(columns.low)) if memory else np.arange(count)
    lines = []
    for column in generator.permutation(axes)[:AXES]:
        ends = (columns.low[[column]], columns.high[[column]])
        lines += [_Line(int(base), (int(column),), ends) for base in generator.integers(len(columns.seen), size=BASES)]
    for _ in range(PAIRS if count > 1 and not memory else 0):
        one, two = map(int, generator.choice(axes, 2, replace=False))
        base = int(generator.integers(len(columns.seen)))
        away = np.where(generator.random(2) < 0.5, columns.low[[one, two]], columns.high[[one, two]])
        here = np.array([columns.value(base, column) for column in (one, two)])
        lines.append(_Line(base, (one, two), (here, away)))
    return lines


def _commands(run: Run, rows: Rows) -> np.ndarray:
    """(n, K), a graph being asked with a few thousand rows at once."""
    return np.concatenate([run(part.signals, part.state)[0] for part in rows.parts()])


def _change(commands: np.ndarray) -> np.ndarray:
    """(lines, places - 1) greatest change of a command between neighbours; infinite where one is not finite."""
    change = np.abs(np.diff(commands, axis=1)).max(-1)
    return np.where(np.isfinite(change), change, np.inf)


def saturated(commands: np.ndarray) -> np.ndarray:
    """(n,) whether all commands are at a limit."""
    return np.all((commands <= 1e-4) | (commands >= 1 - 1e-4), axis=1)


def growing(contract: Contract, run: Run, flight: Rows) -> list[int]:
    """Elements of memory that go on growing while the signals of ``flight`` (steps) come again and again."""
    if not contract.state_size:
        return []
    state, steps, states = contract.initial_state[None], len(flight), []
    for _ in range(REPEATS):
        for k in range(steps):
            _, state = run({name: value[k : k + 1] for name, value in flight.signals.items()}, state)
            states.append(state[0])
    told = np.stack(states).reshape(REPEATS, steps, -1)
    low, high = told.min(1), told.max(1)  # (REPEATS, S)
    up, down = (low[2:] > high[:-2]).all(0), (high[2:] < low[:-2]).all(0)
    return [int(k) for k in np.flatnonzero(up | down)]


def late_jump(contract: Contract, run: Run, seen: Rows, element: int) -> Jump:
    """The greatest jump as an element of memory, which grows, goes on to ``LATEST`` times what flights have shown."""
    names = [f"{block.name}[{k}]" for block in contract.state for k in range(block.size)]
    newest = seen.state[int(np.argmax(np.abs(seen.state[:, element])))]
    sign, largest = np.sign(newest[element]) or 1.0, max(abs(float(newest[element])), 1e-3)
    low, high = np.log(largest), np.log(largest * LATEST)
    bases = np.arange(len(seen))[:: max(1, len(seen) // BASES)][:BASES]
    best = Jump(0.0, "", seen.take(bases[:1]))

    def rows(base: int, places: np.ndarray) -> Rows:
        found = seen.take(np.full(len(places), base))
        found.state[:, element] = sign * np.exp(places)
        return found

    for base in map(int, bases):
        places = np.linspace(low, high, 20 * POINTS)
        while places[-1] - places[0] > NARROW:
            change = _change(_commands(run, rows(base, places))[None])[0]
            k = int(np.argmax(change))
            places = np.linspace(places[k], places[k + 1], 3)
        ends = rows(base, places[[0, -1]])
        size = float(_change(_commands(run, ends)[None])[0, 0])
        if size > best.size:
            best = Jump(size, f"memory {names[element]} = {ends.state[0, element]:.4g}", ends)
    return best


def scaled(contract: Contract, commands: Mapping[str, np.ndarray]) -> np.ndarray:
    """(n, K) all commands, from 0 at their lower to 1 at their upper limit."""
    parts = [
        (commands[c.name] - np.array(c.lower, np.float32))
        / (np.array(c.upper, np.float32) - np.array(c.lower, np.float32))
        for c in contract.commands
    ]
    return np.concatenate(parts, 1)
