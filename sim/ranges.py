"""Ranges and the rules that move them: domain randomization, command and terrain curricula in one mechanism.

A range is a uniform draw that widens from ``start`` to ``end`` as its level goes from 0 to 1. Levels belong to
environments: a rule raises the level of an environment that did well in the episode that it just finished and
lowers it where it did badly, so a batch holds easy and hard cases at once and finds its own pace. With no
rule, a range stands at its end from the first step.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.files import write
from robo_rl.files.escaping import printable, toml_string
from robo_rl.files.suggestions import expected_one_of
from robo_rl.files.text import read_toml
from robo_rl.sim.accelerate.fuse.random import uniforms
from robo_rl.sim.robots.figures import is_number

REACH = 1e4
"""Times what is usual for a range: others are mistakes, or meant to take all memory."""
NOT_NEGATIVE, PROBABILITY = (0.0, math.inf), (0.0, 1.0)
"""Limits of what has no other values."""
UNSIGNED = ("×", "s", "kg")
"""Units of ranges with the limits ``NOT_NEGATIVE``, where training has nothing below 0 either."""
FIRST = 1 << 17
"""The number, among those of an episode's step 0, of the first that is drawn for a range."""


@dataclass(frozen=True)
class Range:
    """Bounds (low, high) of a uniform draw at level 0 and at level 1, in the unit of what is drawn.

    ``count`` independent numbers are drawn per environment; None means a single one, of shape (). ``unit`` is for
    people; "×" is a factor on the robot's own figure. ``limits`` are the lowest and the highest value that there can
    be at all, in training or beyond; None: they follow from the unit.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    count: int | None = None
    unit: str = ""
    limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in (("start", self.start), ("end", self.end)):
            if not low <= high:
                raise ValueError(f"range {name} is {(low, high)}; expected (low, high) with low <= high")

    def heading(self, name: str) -> str:
        """Name, unit and bounds of training, for people: "delay, s (trained on 0 to 0.02)"."""
        low, high = self.end
        return f"{name}{f', {self.unit}' if self.unit else ''} (trained on {low:g} to {high:g})"

    @property
    def possible(self) -> tuple[float, float]:
        """The lowest and the highest value that there can be."""
        if self.limits is not None:
            return self.limits
        unsigned = self.unit in UNSIGNED and min(self.start[0], self.end[0]) >= 0.0
        return NOT_NEGATIVE if unsigned else (-math.inf, math.inf)

    def require(self, name: str, low: float, high: float) -> None:
        """ValueError unless values from ``low`` to ``high`` are possible."""
        lowest, highest = self.possible
        if not lowest <= low <= high <= highest:
            unit, found = f" {self.unit}" if self.unit else "", f"{low:g}" if low == high else f"{low:g} to {high:g}"
            wanted = f"at least {lowest:g}" if highest == math.inf else f"{lowest:g} to {highest:g}"
            raise ValueError(f"ranges: {name} is {found}{unit}; expected {wanted}")

    @classmethod
    def fixed(
        cls, low: float, high: float, count: int | None = None, unit: str = "",
        limits: tuple[float, float] | None = None,
    ) -> Range:  # fmt: skip
        """The same bounds at every level."""
        return cls((low, high), (low, high), count, unit, limits)


@dataclass(frozen=True)
class Rule:
    """Move the level of all ranges whose name matches ``pattern`` (shell style) by ``step`` per episode.

    The level of an environment rises where its episode's ``metric`` is at least ``up``, and falls where it is
    below ``down``. Metrics are the task's, averaged over the episode; "survived" is 1 for an episode that did
    not fail, else 0; "success" is 1 for one that succeeded, or that survived where the task knows no success.
    """

    pattern: str
    metric: str
    up: float
    down: float
    step: float


class Levels:
    """The level of every range in every environment, and draws from the ranges."""

    def __init__(
        self, ranges: Mapping[str, Range], rules: Sequence[Rule], n: int, device: str | torch.device = "cpu"
    ) -> None:
        self.names, self._ranges = list(ranges), dict(ranges)
        self.rules = list(rules)
        self._counts = [1 if r.count is None else r.count for r in ranges.values()]
        self._single = [r.count is None for r in ranges.values()]
        self._column = [i for i, count in enumerate(self._counts) for _ in range(count)]
        bounds = [(*r.start, *r.end) for r in ranges.values()]
        self._bounds = torch.tensor([bounds[i] for i in self._column], device=device).reshape(-1, 4).unbind(1)
        self.size = len(self._column)
        """Numbers of a draw from all ranges."""
        self.level = torch.ones(len(self.names), n, device=device).mT
        """(n, ranges)."""
        self.fixed: dict[str, Tensor] = {}
        """What draws are replaced by, (n,) by name; NaN where they are not."""
        self._moved: list[list[int]] = []
        for rule in rules:
            matches = [i for i, name in enumerate(self.names) if fnmatchcase(name, rule.pattern)]
            if not matches:
                raise ValueError(f"rule '{rule.pattern}' matches none of the ranges {self.names}")
            self._moved.append(matches)
        self.restart()

    def restart(self) -> None:
        """Put the levels where they were at first: at 0 where a rule moves them, else at 1."""
        for matches in self._moved:
            self.level[:, matches] = 0.0

    def fix(self, name: str, value: float | Tensor | None, team: int = 1) -> None:
        """Every later draw of ``name`` is ``value``: one number, or one per environment (n,), where NaN fixes none.

        Of ``team`` robots that share an environment, each has the same. None: drawn again, from the next draw on.
        """
        if name not in self.names:
            raise ValueError(f"'{name}' is not one of the task's ranges{expected_one_of(name, self.names)}")
        if value is None:
            self.fixed.pop(name, None)
            return
        numbers = torch.as_tensor(value, dtype=self.level.dtype, device=self.level.device)
        if len(known := numbers[~numbers.isnan()]):
            self._ranges[name].require(name, float(known.min()), float(known.max()))
        if numbers.ndim and len(numbers) * team == len(self.level):
            numbers = numbers.repeat_interleave(team)
        self.fixed[name] = numbers.expand(len(self.level)).contiguous()

    def draw(self, level: Any, stream: Any, fixed: Mapping[str, Any]) -> Any:
        """(m, size) a draw from all ranges, at the levels (m, ranges), of streams (m, 4), with ``fixed`` values (m,).

        Pure, and can be fused.
        """
        level = level[:, self._column]
        low0, high0, low1, high1 = self._bounds
        low, high = low0 + (low1 - low0) * level, high0 + (high1 - high0) * level
        drawn = low + (high - low) * uniforms(stream, 0.0 * stream[:, 0], self.size, FIRST)
        parts = dict(zip(self.names, drawn.split(self._counts, 1), strict=True))
        for name, value in fixed.items():
            parts[name] = torch.where((value == value)[:, None], value[:, None], parts[name])  # NaN is not itself
        return torch.cat(list(parts.values()), 1)

    def named(self, drawn: Tensor) -> dict[str, Tensor]:
        """Draws (m, size) by name: (m,), or (m, count)."""
        parts = drawn.split(self._counts, 1)
        return {
            name: part[:, 0] if single else part
            for name, part, single in zip(self.names, parts, self._single, strict=True)
        }

    def moved(self, level: Any, metrics: Mapping[str, Any]) -> Any:
        """Levels (m, ranges) after episodes of these ``metrics`` (m,), by the rules. Pure, and can be fused."""
        columns = list(level.unbind(1))
        for rule, places in zip(self.rules, self._moved, strict=True):
            if rule.metric not in metrics:
                raise ValueError(f"rule '{rule.pattern}' needs metric '{rule.metric}'; there are {sorted(metrics)}")
            metric = metrics[rule.metric]
            up, down = torch.where(metric >= rule.up, rule.step, 0.0), torch.where(metric < rule.down, rule.step, 0.0)
            for place in places:
                columns[place] = torch.clamp(columns[place] + (up - down), 0.0, 1.0)
        return torch.stack(columns, -1) if columns else level

    def mean(self) -> dict[str, float]:
        """Mean level of every range that a rule moves."""
        moved = sorted({column for columns in self._moved for column in columns})
        return {self.names[column]: float(self.level[:, column].mean()) for column in moved}


def write_ranges(path: Path, task: str, bounds: Mapping[str, tuple[float, float]], *notes: str) -> None:
    """Write bounds by name as a TOML file that ``read_ranges`` reads, after a line of comment for each note."""
    lines = [*(f"# {printable(note)}" for note in notes), f"task = {toml_string(task)}", "", "[ranges]"]
    lines += [f"{toml_string(name)} = [{low:.6g}, {high:.6g}]" for name, (low, high) in bounds.items()]
    write(path, "\n".join(lines) + "\n")


def read_ranges(path: str | Path, task: str, known: Mapping[str, Range]) -> dict[str, tuple[float, float]]:
    """Bounds (low, high) of some of a task's ranges, from a TOML file; ValueError where they can't be that."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: the file does not exist; expected a TOML file with [ranges]")
    data = read_toml(path)
    unknown = sorted(set(data) - {"task", "ranges"})
    if unknown:
        raise ValueError(f"{path}: {unknown[0][:100]} is an unknown field; expected task and [ranges]")
    if data.get("task", task) != task:
        raise ValueError(f"{path}: task is '{str(data['task'])[:100]}'; expected '{task}', or none")
    found = data.get("ranges")
    if not isinstance(found, dict) or not found:
        raise ValueError(f"{path}: ranges is {str(found)[:100]}; expected a table with at least one range")
    for name, bounds in found.items():
        if name not in known:
            raise ValueError(
                f"{path}: ranges: '{name[:100]}' is not one of the ranges of task '{task}'"
                f"{expected_one_of(name, known)}"
            )
        good = isinstance(bounds, list) and len(bounds) == 2
        good = good and all(is_number(x) for x in bounds)
        if not good or bounds[0] > bounds[1]:
            told = str(bounds)[:100]
            raise ValueError(f"{path}: ranges: {name} is {told}; expected two finite numbers, the lower one first")
    return {name: (float(low), float(high)) for name, (low, high) in found.items()}


def parse_bounds(words: Sequence[str], task: str, known: Mapping[str, Range]) -> dict[str, tuple[float, float]]:
    """Bounds by range, of words NAME:LOW:HIGH; ValueError where they can't be that."""
    found = {}
    for word in words:
        name, low, high = [*word.rsplit(":", 2), "", ""][:3]
        if name not in known:
            raise ValueError(
                f"--bounds {word!r}: {name!r} is not one of the ranges of task '{task}'{expected_one_of(name, known)}"
            )
        try:
            pair = float(low), float(high)
        except ValueError:
            pair = math.nan, math.nan
        if not (math.isfinite(pair[0]) and math.isfinite(pair[1]) and pair[0] <= pair[1]):
            raise ValueError(f"--bounds is {word!r}; expected NAME:LOW:HIGH, finite numbers, the lower one first")
        found[name] = pair
    return found


def replaced(ranges: Mapping[str, Range], bounds: Mapping[str, Sequence[float]]) -> dict[str, Range]:
    """The ranges with the bounds of some of them changed, at every level. ValueError for what they can't be."""
    for name, (low, high) in bounds.items():
        if name not in ranges:
            raise ValueError(f"ranges: '{name}' is not one of the task's: {list(ranges)}")
        most = REACH * max(1.0, *map(abs, (*ranges[name].start, *ranges[name].end)))
        if not -most <= low <= high <= most:
            raise ValueError(f"ranges: {name} is {[low, high]}; expected two numbers within ±{most:g}, the lower first")
        ranges[name].require(name, low, high)
    fixed = {
        name: dataclasses.replace(ranges[name], start=(low, high), end=(low, high), limits=ranges[name].possible)
        for name, (low, high) in bounds.items()
    }
    return {**ranges, **fixed}
