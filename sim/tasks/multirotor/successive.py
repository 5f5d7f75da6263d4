"""Eight small multirotors go to three goals in turn, in a room with columns, and hit nothing.

All is as in swarm-swap: plant, messages, policy, baselines. But each robot gets a new goal every 5 s, in a cell that
nobody else has in the whole episode. So ways cross again and again, and who is at its goal is in the way of others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.multirotor import MultirotorCard
from robo_rl.sim.tasks import Tensors
from robo_rl.sim.tasks.multirotor.room import ARRIVED, COLUMNS, GRACE, drawn_cells, laid_out
from robo_rl.sim.tasks.multirotor.swarm import SwarmSwap

GOALS, LEG = 3, 5.0
"""How many in turn, and s for each: the longest way, 4.9 m from corner to corner, takes 4.1 s at ``Pace.fast``."""
MISSED = COLUMNS.stop + 3 * (GOALS - 1)


class SwarmGoals(SwarmSwap):
    """See the module's text."""

    name = "swarm-goals"
    summary = "eight Crazyflies go to three goals in turn in a room with columns"
    goal_size = MISSED + 1
    seconds = GRACE + GOALS * LEG

    def __init__(self, card: MultirotorCard | None = None) -> None:
        super().__init__(card)
        ranges = {name: drawn for name, drawn in self.spec.ranges.items() if name != "goal/swap"}
        ranges["goal/heights"] = Range.fixed(0.5, 1.5, count=1 + GOALS, unit="m")
        self.spec = dataclasses.replace(self.spec, ranges=ranges)

    def facts(self) -> dict[str, Any]:
        own = super().facts()
        return {**own, "success": {**own["success"], "goals": GOALS, "seconds_each": LEG}}

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 40): as in swarm-swap, then the goals after the first, m, and 1 after a goal that was not reached."""
        columns, (start, first, *later) = drawn_cells(drawn, 1 + GOALS)
        return laid_out(first, start, columns, *later, torch.zeros_like(first[:, :, :1]))

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        setpoint = super().reference(time, goal)["position_setpoint"]
        for k in range(1, GOALS):
            begin = COLUMNS.stop + 3 * (k - 1)
            setpoint = torch.where(time[:, None] < GRACE + k * LEG, setpoint, goal[:, begin : begin + 3])
        return {**super().reference(time, goal), "position_setpoint": setpoint, "missed": goal[:, MISSED:]}

    def missed(self, truth: Tensors) -> Any:
        """(n,) 1 if it was not at one of its goals when that was over."""
        time, missed = truth["time"][:, 0], truth["missed"][:, 0]
        away = self.distance(truth) >= ARRIVED
        for k in range(1, GOALS + 1):
            now = (time - (GRACE + k * LEG - self.period)).abs() < 0.5 * self.period
            missed = torch.where(now & away, 1.0, missed)
        return missed

    def advance(self, truth: Tensors, goal: Any) -> Any:
        return torch.cat([super().advance(truth, goal)[:, :MISSED], self.missed(truth)[:, None]], -1)

    def errors(self, truth: Tensors) -> dict[str, Any]:
        found = super().errors(truth)
        return {**found, "lost": torch.maximum(found["lost"], self.missed(truth))}

    def _good(self, truth: Tensors) -> Any:
        return super()._good(truth) & (self.missed(truth) < 0.5)

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {**super().failures(truth), "missed a goal": self._over(truth) & (self.missed(truth) > 0.5)}
