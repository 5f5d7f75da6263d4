"""A plant on rough ground that also tells how high the ground is: what only a simulation knows.

Heights follow from the newest state, so they are as old as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.controllers.rotation import heading
from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.plants import Articulated
from robo_rl.sim.plants.around import Around
from robo_rl.sim.scenes.terrain import Ground


class Heights(NamedTuple):
    """How far above the ground n robots are."""

    base_height: Tensor
    """(n, 1) m, of the base above the ground under it."""
    foot_height: Tensor
    """(n, F) m, of the feet's centres above the ground under them."""
    height_scan: Tensor
    """(n, P) m, of the base above the ground at points around it, fixed in its heading frame."""


class HeightScan(Around):
    """A plant with a free base and contact points "foot", and the quantities of ``Heights``."""

    def __init__(self, plant: Articulated, ground: Ground, points: Sequence[tuple[float, float]]) -> None:
        """``points`` (P) m: forward and to the left of the base, seen from above."""
        super().__init__(plant)
        self.ground = ground
        truth = plant.truth()
        device, feet = truth["position"].device, truth["foot_position"].shape[1] // 3
        self._points = torch.tensor(points, device=device)
        _, parts = empty_block(plant.n, [(1,), (feet,), (len(points),)], device)
        self._heights = Heights(*parts)
        self.look()

    def look(self, ids: Tensor | None = None) -> None:
        """Write the heights of all robots."""
        truth, (base, feet, scan) = self.inner.truth(), self._heights
        x, y, z = (truth["position"][:, i : i + 1] for i in range(3))
        base.copy_(z - self.ground.height(x, y))
        places = truth["foot_position"]
        feet.copy_(places[:, 2::3] - self.ground.height(places[:, 0::3], places[:, 1::3]))
        cosine, sine = (part[:, None] for part in heading(truth["orientation"].unbind(-1)))
        ahead, left = self._points.unbind(-1)
        scan.copy_(z - self.ground.height(x + cosine * ahead - sine * left, y + sine * ahead + cosine * left))

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return {**super().truth(), **self._heights._asdict()}

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """As the inner plant's."""
        super().step(commands)
        self.look()

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        super().load(saved)
        self.look()
