"""The space that settings of trainings are chosen from: ranges and choices, in a sweep's file.

[space]
"apg.learning-rate" = { low = 0.001, high = 0.1, log = true }
"apg.horizon" = { low = 8, high = 64 }          # integers, as both ends are
"apg.hidden" = [[32, 32], [64, 64]]             # one of these
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robo_rl.sweeps.sweep_file import Description, option, require

FACTORS = (0.8, 1.2)
RESAMPLED = 0.25
"""Of Jaderberg et al. 2017, Population Based Training of Neural Networks, section 4.1.1: a setting is perturbed by one
of the factors, or drawn again with this probability."""


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both possible; equally likely, or their logarithms are."""

    low: float
    high: float
    log: bool
    whole: bool
    """Integers only."""

    def draw(self, generator: np.random.Generator) -> float:
        if self.whole and not self.log:
            return int(generator.integers(int(self.low), int(self.high), endpoint=True))
        if self.log:
            return self.within(math.exp(generator.uniform(math.log(self.low), math.log(self.high))))
        return self.within(generator.uniform(self.low, self.high))

    def within(self, x: float) -> float:
        """The nearest number of the range."""
        x = min(self.high, max(self.low, x))
        return round(x) if self.whole else x

    def perturbed(self, x: float, generator: np.random.Generator) -> float:
        """A number near ``x``: times one of the factors; of integers at least the next one."""
        factor = FACTORS[int(generator.integers(2))]
        new = self.within(x * factor)
        return self.within(x + math.copysign(1.0, factor - 1.0)) if self.whole and new == x else new


@dataclass(frozen=True)
class Choice:
    """One of several words after an option."""

    values: tuple[Any, ...]

    def draw(self, generator: np.random.Generator) -> Any:
        return self.values[int(generator.integers(len(self.values)))]

    def perturbed(self, x: Any, generator: np.random.Generator) -> Any:
        return x


Space = Mapping[str, Range | Choice]
"""By option of 'robo-rl train'."""


def read_space(description: Description) -> Space:
    """The table [space] of a sweep's file. ValueError names the file and the field."""
    file, table = description.file, description.tables["space"]
    require(bool(table), file, "space", table, "one option of train or more")
    space: dict[str, Range | Choice] = {}
    for name, told in table.items():
        field = f"space.{name}"
        if isinstance(told, list):
            require(bool(told), file, field, told, "a list of values")
            for value in told:
                option(value, file, field)
            space[name] = Choice(tuple(told))
            continue
        good = isinstance(told, dict) and {"low", "high"} <= told.keys() <= {"low", "high", "log"}
        require(good, file, field, told, "{ low = …, high = … }, with log = true if wanted, or a list of values")
        low, high, log = told["low"], told["high"], told.get("log", False)
        numbers = all(type(x) in (int, float) and math.isfinite(x) for x in (low, high))
        require(numbers and low < high, file, field, told, "low and high, finite numbers, the lower one first")
        require(isinstance(log, bool) and not (log and low <= 0), file, field, told, "log = true only of positive ones")
        space[name] = Range(low, high, log, type(low) is int and type(high) is int)
    return space


def draw(space: Space, generator: np.random.Generator) -> dict[str, Any]:
    """A value of each dimension."""
    return {name: dimension.draw(generator) for name, dimension in space.items()}


def perturbed(space: Space, values: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    """Values near ``values``, or drawn again."""
    again = {name: generator.random() < RESAMPLED for name in space}
    return {
        name: dimension.draw(generator) if again[name] else dimension.perturbed(values[name], generator)
        for name, dimension in space.items()
    }


def words(description: Description, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Options of a training with these values, besides those that all have."""
    (fixed,) = description.settings
    return fixed | {name: option(value, description.file, name) for name, value in values.items()}
