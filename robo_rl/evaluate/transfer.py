"""Transfer: the success rate of a policy in other simulators and beyond the ranges of training.

The training simulator ("home" in results) is the task's own engine over the ranges of training. All episodes have the
same seeds, so that simulators differ in nothing but physics. The part that is kept is success there over success in the
training simulator; the drop, its success less theirs, has a 95 % interval (Newcombe 1998, Interval estimation for the
difference between independent proportions, method 10).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robo_rl.evaluate.evaluation import Conditions, nominal, rollout, sweep
from robo_rl.sim.engines import Engine
from robo_rl.sim.tasks import Measure, Task

Figures = Mapping[str, Any]
STEPS = (1.5, 2.0, 3.0)
"""How many times as far from nominal as in training."""
LEAST = 0.05
"""Of a factor on a physical figure: below, there is hardly a robot left."""
FEWEST = 20
"""Episodes per value, and in a slow engine."""


@dataclass(frozen=True)
class Transfer:
    """What was found. Every row has the episodes' figures, kept, drop, drop_low and drop_high."""

    measures: tuple[Measure, ...]
    home: Figures
    engines: list[dict[str, Any]]
    """With engine and summary."""
    perturbations: dict[str, list[dict[str, Any]]]
    """By range, with value."""

    @property
    def least_kept(self) -> float:
        """Of all engines; NaN without any."""
        return min((row["kept"] for row in self.engines), default=math.nan)


def transfer(
    task: Task, policy: Any, engines: Sequence[Engine], grid: Mapping[str, Sequence[float]], conditions: Conditions
) -> Transfer:
    """Run the training simulator, every engine, and every perturbation of the grid with a quarter of the episodes."""
    home = rollout(task, policy, conditions, "training simulator").summary()
    rows = []
    for engine in engines:
        there = dataclasses.replace(
            conditions,
            episodes=min(conditions.episodes, max(FEWEST, round(engine.part * conditions.episodes))),
            make_plant=engine.make_plant,
        )
        figures = rollout(task, policy, there, engine.name).summary()
        rows.append({"engine": engine.name, "summary": engine.summary, **figures, **kept(home, figures)})
    few = dataclasses.replace(conditions, episodes=max(FEWEST, conditions.episodes // 4))
    table = sweep(task, policy, grid, few) if grid else {}
    perturbed = {name: [{**row, **kept(home, row)} for row in column] for name, column in table.items()}
    return Transfer(task.measures, home, rows, perturbed)


def kept(home: Figures, there: Figures) -> dict[str, float]:
    """The part of the training simulator's success that is left, and the drop with its 95 % interval."""
    drop = home["success"] - there["success"]
    less = math.hypot(home["success"] - home["success_low"], there["success_high"] - there["success"])
    more = math.hypot(home["success_high"] - home["success"], there["success"] - there["success_low"])
    part = there["success"] / home["success"] if home["success"] else math.nan
    return {"kept": part, "drop": drop, "drop_low": drop - less, "drop_high": drop + more}


def beyond(task: Task) -> dict[str, list[float]]:
    """Values outside of what training drew, by range: up to three times as far from nominal.

    Of a range that is one number, multiples of it.
    """
    grid: dict[str, list[float]] = {}
    for name in task.perturbed:
        bounds = task.spec.ranges[name]
        (low, high), middle = bounds.end, nominal(bounds)
        if low == high:
            values = [2 * high, 4 * high, 8 * high]
        elif middle == 0.0:
            values = [step * high for step in STEPS]
        else:
            values = [middle + step * (end - middle) for end in (low, high) if end != middle for step in STEPS]
            values = [value for value in values if value >= LEAST * middle or low < 0.0]
        grid[name] = sorted(round(value, 4) for value in values)
    return grid
