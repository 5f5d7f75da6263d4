"""Ranges and the rules that move them: domain randomization, command and terrain curricula in one mechanism.

A range is a uniform draw that widens from ``start`` to ``end`` as its level goes from 0 to 1. Levels belong to
environments: a rule raises the level of an environment that did well in the episode that it just finished and
lowers it where it did badly, so a batch holds easy and hard cases at once and finds its own pace. With no
rule, a range stands at its end from the first step.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path

import torch
from torch import Tensor


@dataclass(frozen=True)
class Range:
    """Bounds (low, high) of a uniform draw at level 0 and at level 1, in the unit of what is drawn.

    ``count`` independent numbers are drawn per environment; None means a single one, of shape (). ``unit`` is for
    people; "×" is a factor on the robot's own figure.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    count: int | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        for name, (low, high) in (("start", self.start), ("end", self.end)):
            if not low <= high:
                raise ValueError(f"range {name} is {(low, high)}; expected (low, high) with low <= high")

    @classmethod
    def fixed(cls, low: float, high: float, count: int | None = None, unit: str = "") -> Range:
        """The same bounds at every level."""
        return cls((low, high), (low, high), count, unit)


@dataclass(frozen=True)
class Rule:
    """Move the level of all ranges whose name matches ``pattern`` (shell style) by ``step`` per episode.

    The level of an environment rises where its episode's ``metric`` is at least ``up``, and falls where it is
    below ``down``. Metrics are the task's, averaged over the episode; "survived" is 1 for an episode that did
    not fail, else 0.
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
        self.names = list(ranges)
        self.rules = list(rules)
        self._counts = [1 if r.count is None else r.count for r in ranges.values()]
        self._single = [r.count is None for r in ranges.values()]
        bounds = [(*r.start, *r.end) for r in ranges.values()]
        self._bounds = torch.tensor(bounds, device=device).repeat_interleave(
            torch.tensor(self._counts, device=device), 0
        )
        self._column = torch.arange(len(self.names), device=device).repeat_interleave(
            torch.tensor(self._counts, device=device)
        )
        self.level = torch.ones(n, len(self.names), device=device)
        self._last = torch.zeros(n, len(self._column), device=device)
        self._fixed: dict[str, Tensor] = {}
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

    def fix(self, name: str, value: float | Tensor) -> None:
        """Every later draw of ``name`` is ``value``: one number, or one per environment (n,), where NaN fixes none."""
        if name not in self.names:
            raise ValueError(f"there is no range '{name}'; the task has {self.names}")
        numbers = torch.as_tensor(value, dtype=self.level.dtype, device=self.level.device)
        self._fixed[name] = numbers.expand(len(self.level))

    def release(self, name: str) -> None:
        """Draw ``name`` again from its range, from the next draw on."""
        self._fixed.pop(name, None)

    def draw(self, ids: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        """A draw from every range for the environments ``ids`` (m,): shape (m,), or (m, count), by name."""
        level = self.level[ids][:, self._column]
        low0, high0, low1, high1 = self._bounds.unbind(-1)
        low, high = low0 + (low1 - low0) * level, high0 + (high1 - high0) * level
        drawn = low + (high - low) * torch.rand(low.shape, generator=generator, device=ids.device)
        for name, value in self._fixed.items():
            columns, wanted = self._column == self.names.index(name), value[ids, None]
            drawn[:, columns] = torch.where(wanted.isnan(), drawn[:, columns], wanted)
        self._last[ids] = drawn
        return self._named(drawn)

    @property
    def last(self) -> dict[str, Tensor]:
        """Live views of the last draw from every range, (n,) or (n, count) by name."""
        return self._named(self._last)

    def _named(self, drawn: Tensor) -> dict[str, Tensor]:
        parts = drawn.split(self._counts, 1)
        return {
            name: part[:, 0] if single else part
            for name, part, single in zip(self.names, parts, self._single, strict=True)
        }

    def update(self, ids: Tensor, metrics: Mapping[str, Tensor]) -> None:
        """Apply the rules to environments whose episode ended; ``metrics`` have shape (len(ids),)."""
        for rule, columns in zip(self.rules, self._moved, strict=True):
            if rule.metric not in metrics:
                raise ValueError(f"rule '{rule.pattern}' needs metric '{rule.metric}'; there are {sorted(metrics)}")
            metric = metrics[rule.metric]
            change = rule.step * ((metric >= rule.up).float() - (metric < rule.down).float())
            for column in columns:
                self.level[ids, column] = (self.level[ids, column] + change).clamp(0.0, 1.0)

    def mean(self) -> dict[str, float]:
        """Mean level of every range that a rule moves."""
        moved = sorted({column for columns in self._moved for column in columns})
        return {self.names[column]: float(self.level[:, column].mean()) for column in moved}


def write_ranges(path: Path, task: str, bounds: Mapping[str, tuple[float, float]], source: str) -> None:
    """Write bounds by name as a TOML file that ``read_ranges`` reads."""
    lines = [f"# {source}", f'task = "{task}"', "", "[ranges]"]
    lines += [f'"{name}" = [{low:.6g}, {high:.6g}]' for name, (low, high) in bounds.items()]
    path.write_text("\n".join(lines) + "\n")


def read_ranges(path: str | Path, task: str, known: Mapping[str, Range]) -> dict[str, tuple[float, float]]:
    """Bounds (low, high) of some of a task's ranges, from a TOML file; ValueError where they can't be that."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file; expected a TOML file with [ranges]")
    try:
        data = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}; expected TOML") from None
    unknown = sorted(set(data) - {"task", "ranges"})
    if unknown:
        raise ValueError(f"{path}: {unknown[0]} is an unknown field; expected task and [ranges]")
    if data.get("task", task) != task:
        raise ValueError(f"{path}: task is '{data['task']}'; expected '{task}', or none")
    found = data.get("ranges")
    if not isinstance(found, dict) or not found:
        raise ValueError(f"{path}: ranges is {found}; expected a table with at least one range")
    for name, bounds in found.items():
        if name not in known:
            raise ValueError(f"{path}: ranges: there is no range '{name}'; task '{task}' has {list(known)}")
        good = isinstance(bounds, list) and len(bounds) == 2
        good = good and all(isinstance(x, int | float) and not isinstance(x, bool) and isfinite(x) for x in bounds)
        if not good or bounds[0] > bounds[1]:
            raise ValueError(f"{path}: ranges: {name} is {bounds}; expected two finite numbers, the lower one first")
    return {name: (float(low), float(high)) for name, (low, high) in found.items()}


def replaced(ranges: Mapping[str, Range], bounds: Mapping[str, Sequence[float]]) -> dict[str, Range]:
    """The ranges with the bounds of some of them changed, at every level."""
    fixed = {
        name: Range.fixed(low, high, ranges[name].count, ranges[name].unit) for name, (low, high) in bounds.items()
    }
    return {**ranges, **fixed}
