"""What a person can set while robots are under way: ranges of the task, and what its operator sends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from robo_rl.sim.tasks import Task

NARROW = 0.5
"""Half the width of a slider for what training never varied from 0, in the quantity's unit."""
SAMPLES, MOMENTS = 64, 9
BEGINNING = "initial/"
"""Ranges of where episodes begin: they hold from the next episode on, and only within what training drew."""


@dataclass(frozen=True)
class Knob:
    """One number, the same for all robots."""

    name: str
    unit: str
    low: float
    high: float
    trained: tuple[float, float]
    """What training drew."""
    value: float | None = None
    """None: the task's value."""

    @property
    def label(self) -> str:
        """Name and unit, for people."""
        name = self.name.rpartition("/")[2].replace("_", " ")
        return f"{name}, {self.unit}" if self.unit else name

    def accepted(self, value: Any) -> float:
        """A number from a page, clipped to the knob's limits; ValueError if it is not a number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{self.name} is {str(value)[:40]}; expected a number from {self.low:g} to {self.high:g}")
        return min(max(float(value), self.low), self.high)


def range_knobs(task: Task, fixed: Mapping[str, float]) -> dict[str, Knob]:
    """A knob for every range of the task; those of ``fixed`` begin there, also where that is far away.

    A range of several numbers is set as a whole, as by ``robo-rl evaluate --fixed``.
    """
    found = {}
    for name, range_ in task.spec.ranges.items():
        low, high = widened(*range_.end) if not name.startswith(BEGINNING) else range_.end
        least, most = range_.possible
        low, high = max(low, least), min(high, most)
        if name in fixed:
            low, high = min(low, fixed[name]), max(high, fixed[name])
        found[name] = Knob(name, range_.unit, low, high, range_.end, fixed.get(name))
    return {name: knob for name, knob in found.items() if knob.low < knob.high}


def widened(low: float, high: float) -> tuple[float, float]:
    """Bounds as far again as (low, high) on both sides; what is never negative, or never 0, stays so."""
    more = high - low or (3 * abs(high) if high else NARROW)
    below = low - more
    if low > 0:
        below = max(below, 0.25 * low)
    elif low == 0 < high:
        below = 0.0
    return below, high + more


def operator_knobs(task: Task) -> dict[str, Knob]:
    """A knob for every number of the vectors that the operator sends: "linear_velocity_command/x"."""
    sent = [s for s in task.spec.signals if s.source == "operator" and s.shape is None and s.kind == "vector"]
    if not sent:
        return {}
    seen = _references(task)
    found = {}
    for signal in sent:
        for i, element in enumerate(signal.elements):
            values = seen[signal.name][:, i]
            trained = float(values.min()), float(values.max())
            half = max(0.5 * (trained[1] - trained[0]), NARROW)
            low, high = max(trained[0] - half, signal.bounds[0][i]), min(trained[1] + half, signal.bounds[1][i])
            name = f"{signal.name}/{element}"
            found[name] = Knob(name, signal.unit, float(low), float(high), trained)
    return found


def _references(task: Task) -> dict[str, Any]:
    """Set-points, (samples, k) by name, at moments of episodes drawn from the ranges' ends."""
    generator = torch.Generator().manual_seed(0)
    drawn = {}
    for name, range_ in task.spec.ranges.items():
        shape = (SAMPLES,) if range_.count is None else (SAMPLES, range_.count)
        low, high = range_.end
        drawn[name] = low + (high - low) * torch.rand(shape, generator=generator)
    goal = task.goal(drawn).repeat(MOMENTS, 1)
    time = torch.linspace(0.0, task.spec.episode_length, MOMENTS).repeat_interleave(SAMPLES)
    return task.reference(time, goal)
