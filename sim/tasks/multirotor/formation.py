"""Eight small multirotors keep a formation while it moves through a room with columns, and hit nothing.

All is as in swarm-swap: plant, messages, policy, baselines. But goals move: a ring of eight places crosses the room, in
whose middle columns stand, also where places of the ring pass. So each leaves its place where it must, and comes back.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.multirotor import MultirotorCard
from robo_rl.sim.tasks import Measure, Tensors
from robo_rl.sim.tasks.multirotor.room import (
    CELL,
    COLUMNS,
    MOST_COLUMNS,
    SIDE,
    TEAM,
    counted,
    laid_out,
)
from robo_rl.sim.tasks.multirotor.swarm import SwarmSwap

ROWS = 3  # of cells across the middle of the room, in which columns may stand
CENTRE, RADIUS, HEIGHT, STAGGER = 1.35, 0.45, 1.0, 0.2
"""m: how far from the room's middle the ring's centre begins and ends, the ring's radius and height, and how far every
second place is above that, and the others below."""
OFF, SPEED = 3.0, 0.5
"""s, when the formation sets off, by when each hovers at its place, and has found what its rotors and mass are like;
and m/s, of the centre."""
LEFT = 0.6
"""m, from a robot's place beside the others, from which on it has left the formation: the radii of a column and of a
robot, and what a robot keeps from columns, are 0.3 m."""


class SwarmFormation(SwarmSwap):
    """See the module's text."""

    name = "swarm-formation"
    summary = "eight Crazyflies keep a formation that moves through columns"
    goal_size = COLUMNS.stop + 1
    seconds = 9.5
    measures = (*SwarmSwap.measures, Measure("formation", "m", "mean", OFF, failed=1.0))
    """And how far robots are from their places beside the others, on average from when the formation sets off on."""

    def __init__(self, card: MultirotorCard | None = None) -> None:
        super().__init__(card)
        left_out = ("goal/swap", "goal/heights")
        ranges = {name: drawn for name, drawn in self.spec.ranges.items() if name not in left_out}
        ranges["goal/cells"] = Range.fixed(0.0, 1.0, count=ROWS * SIDE // TEAM)
        ranges["goal/turn"] = Range.fixed(0.0, 1.0)
        self.spec = dataclasses.replace(self.spec, ranges=ranges)

    def facts(self) -> dict[str, Any]:
        own = super().facts()
        return {**own, "success": {**own["success"], "within_formation_m": LEFT, "formation_after_s": OFF}}

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 34): as in swarm-swap, and 1 after having left the formation.

        Drawn in a room that is crossed along x, which is turned by a number of right angles.
        """
        order = drawn["goal/cells"].reshape(-1, ROWS * SIDE).argsort(-1)[:, :MOST_COLUMNS]
        cells = torch.stack([order // SIDE - (ROWS - 1) / 2, order % SIDE - (SIDE - 1) / 2], -1) * CELL
        columns = counted(cells, drawn["columns"][::TEAM] * ROWS * SIDE)
        angle = torch.arange(TEAM) * (2 * math.pi / TEAM)
        up = HEIGHT + STAGGER * (1 - 2 * (torch.arange(TEAM) % 2))
        ring = torch.stack([RADIUS * angle.cos(), RADIUS * angle.sin(), up], -1).expand(len(order), -1, -1)
        way, turn = ring.new_tensor([CENTRE, 0.0, 0.0]), drawn["goal/turn"][::TEAM]
        goal, start = turned(ring + way, turn), turned(ring - way, turn)
        return laid_out(goal, start, turned(columns, turn), torch.zeros_like(goal[:, :, :1]))

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        end, start = goal[:, :3], goal[:, 3:6]
        part = torch.clamp((time[:, None] - OFF) * (SPEED / (2 * CENTRE)), 0.0, 1.0)
        centre = torch.cat([0.0 * time[:, None], 0.0 * time[:, None], 0.0 * time[:, None] + HEIGHT], -1)
        return {
            **super().reference(time, goal),
            "position_setpoint": start + part * (end - start),
            "offset": 0.5 * (start + end) - centre,
            "left": goal[:, COLUMNS.stop :],
        }

    def neighbours(self, truth: Tensors) -> dict[str, Any]:
        place = truth["position"]
        return {**super().neighbours(truth), "middle": place.mean(1, keepdim=True).expand_as(place)}

    def astray(self, truth: Tensors) -> Any:
        """(n,) m from its place beside the others, wherever all of them are."""
        off = truth["position"] - truth["middle"] - truth["offset"]
        return torch.sqrt(off.square().sum(-1) + 1e-9)

    def left(self, truth: Tensors) -> Any:
        """(n,) 1 if it has left the formation since that set off."""
        now = (self.astray(truth) > LEFT) & (truth["time"][:, 0] > OFF)
        return torch.where(now, 1.0, truth["left"][:, 0])

    def advance(self, truth: Tensors, goal: Any) -> Any:
        return torch.cat([super().advance(truth, goal)[:, : COLUMNS.stop], self.left(truth)[:, None]], -1)

    def errors(self, truth: Tensors) -> dict[str, Any]:
        found = super().errors(truth)
        lost = torch.maximum(found["lost"], self.left(truth))
        return {**found, "lost": lost, "formation": self.astray(truth)}

    def _good(self, truth: Tensors) -> Any:
        return super()._good(truth) & (self.left(truth) < 0.5)

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {**super().failures(truth), "left the formation": self._over(truth) & (self.left(truth) > 0.5)}


def turned(places: Tensor, turn: Tensor) -> Tensor:
    """``places`` (teams, k, 2 or 3) about z by 0 to 3 right angles, by ``turn`` (teams,) from 0 to 1."""
    x, y = places[:, :, 0], places[:, :, 1]
    quarter = torch.clamp((4 * turn).floor(), max=3.0)[:, None]
    ways = ((x, y), (-y, x), (-x, -y), (y, -x))
    found = torch.stack(ways[0], -1)
    for k, way in enumerate(ways):
        found = torch.where((quarter == k)[:, :, None], torch.stack(way, -1), found)
    return torch.cat([found, places[:, :, 2:]], -1)
