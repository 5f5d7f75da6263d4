"""Transfer: what is left of a policy's success in engines and under conditions that it was not trained in.

Home is the task's own engine over the ranges of training. All flights have the same seeds, so that engines differ
in nothing but physics. The part that is kept is success there over success at home; the drop, home's less theirs,
has a 95 % interval (Newcombe 1998, Interval estimation for the difference between independent proportions, method 10).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robo_rl.evaluation import Conditions, rollout, sweep
from sim.engines import Engine
from sim.tasks import Measure, Task

Figures = Mapping[str, Any]
STEPS = (1.5, 2.0, 3.0)
"""How many times as far from nominal as in training."""
LEAST = 0.05
"""Of a factor on a physical figure: below, there is hardly a robot left."""
FEWEST = 20
"""Episodes per value, and in a slow engine."""


@dataclass(frozen=True)
class Transfer:
    """What was found. Every row has the flights' figures, kept, drop, drop_low and drop_high."""

    measures: tuple[Measure, ...]
    home: Figures
    engines: list[dict[str, Any]]
    """With engine and summary."""
    perturbations: dict[str, list[dict[str, Any]]]
    """By range, with value."""

    @property
    def least_kept(self) -> float:
        """Of all engines; NaN where none was asked for."""
        return min((row["kept"] for row in self.engines), default=math.nan)


def transfer(
    task: Task, policy: Any, engines: Sequence[Engine], grid: Mapping[str, Sequence[float]], conditions: Conditions
) -> Transfer:
    """Fly at home, in every engine, and under every perturbation of the grid with a quarter of the flights."""
    home = rollout(task, policy, conditions, "home").summary()
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
    """The part of home's success that is left, and the drop with its 95 % interval."""
    drop = home["success"] - there["success"]
    less = math.hypot(home["success"] - home["success_low"], there["success_high"] - there["success"])
    more = math.hypot(home["success_high"] - home["success"], there["success"] - there["success_low"])
    part = there["success"] / home["success"] if home["success"] else math.nan
    return {"kept": part, "drop": drop, "drop_low": drop - less, "drop_high": drop + more}


def beyond(task: Task) -> dict[str, list[float]]:
    """Values outside of what training drew, by range: up to three times as far from nominal."""
    grid: dict[str, list[float]] = {}
    for name in task.perturbed:
        low, high = task.spec.ranges[name].end
        if name == "noise":
            values = [2 * high, 4 * high, 8 * high]
        elif low in (0.0, -high):  # a load, a wind, a latency: nominal is none
            values = [step * high for step in STEPS]
        else:  # a factor: nominal is 1
            values = [1 + step * (end - 1) for end in (low, high) if end != 1.0 for step in STEPS]
        grid[name] = sorted(round(value, 4) for value in values if value >= LEAST or low in (0.0, -high))
    return grid
