"""Rough ground as data: a grid of heights, made of patches in rows of difficulty and columns of kinds.

Every patch has a level platform in the middle, where robots begin, and level ground of height 0 along its edges, so
that neighbours fit together. Walking outwards is climbing, or descending, whatever the direction. Slopes are plane
between the nodes of the grid; all else is stepped: level around each node, with upright risers halfway between nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.scenes.solids import Solids, add_solids, joined, mound, pit, terraces

CELL = 0.05  # m between nodes
PATCH = 160  # cells along a side of a patch: 8 m
PLATFORM = 12  # cells from a patch's middle to the edge of its platform: 0.6 m
TREAD = 6  # cells: 0.3 m, of usual stairs
STEPS = 10  # treads, from platform to edge
BORDER = 160  # cells of level ground around all patches
ROWS = 6  # of difficulty
RISER = 0.12  # m, of the hardest stairs and blocks
SLOPE = math.radians(24.0)  # of the hardest slope
GAP = 4  # cells, of the hardest gap
DEPTH = 0.2  # m, of the hardest gap
TILE = 12  # cells along a side of a block
FAR = 1000.0  # m, from the middle to the end of level ground
SEAM = 0.02  # m, that boxes which can be seen reach below the lowest ground beside them
HAIR = 2e-4  # m, that slopes are shown above what is as high
DEEPEST = -2.0  # m, to which the ground reaches down, far below the lowest of it


@dataclass(frozen=True)
class Ground:
    """Heights of the ground at the nodes of a grid around the origin; level beyond it."""

    heights: np.ndarray
    """(rows, columns) m, float32; rows go along y, columns along x."""
    cell: float
    """m between nodes."""
    stepped: np.ndarray
    """(rows - 1, columns - 1), whether a cell is level around each of its nodes; else it is plane between them."""
    solids: Solids
    """What the same ground is made of."""
    starts: np.ndarray
    """(rows of difficulty, kinds, 2) m, x and y of the patches' middles."""
    kinds: tuple[str, ...]

    @property
    def reach(self) -> tuple[float, float]:
        """m from the middle to the edges along x and y."""
        rows, columns = self.heights.shape
        return 0.5 * self.cell * (columns - 1), 0.5 * self.cell * (rows - 1)

    @cached_property
    def _on(self) -> dict[torch.device, tuple[Tensor, Tensor]]:
        return {}

    def _grid(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Heights of the nodes, and which cells are stepped, each flat and with as many columns."""
        if device not in self._on:
            stepped = np.pad(self.stepped, ((0, 1), (0, 1)))
            self._on[device] = (
                torch.from_numpy(self.heights).to(device).flatten(),
                torch.from_numpy(stepped).to(device).flatten(),
            )
        return self._on[device]

    def height(self, x: Tensor, y: Tensor) -> Tensor:
        """Height (m) of the ground at places of the world (m), tensors of one shape; of the middle for no place."""
        rows, columns = self.heights.shape
        (nodes, stepped), (reach_x, reach_y) = self._grid(x.device), self.reach
        u = ((x.nan_to_num() + reach_x) / self.cell).clamp(0.0, columns - 1.001)
        v = ((y.nan_to_num() + reach_y) / self.cell).clamp(0.0, rows - 1.001)
        column, row = u.long(), v.long()
        u, v, first = u - column, v - row, row * columns + column
        level = stepped[first]
        u, v = torch.where(level, u.round(), u), torch.where(level, v.round(), v)
        low, right, ahead, far = (nodes[first + k] for k in (0, 1, columns, columns + 1))
        right_half = low + u * (right - low) + v * (far - right)
        left_half = low + v * (ahead - low) + u * (far - ahead)
        return torch.where(u > v, right_half, left_half)

    def start(self, difficulty: Tensor, kind: Tensor) -> Tensor:
        """(m, 3) m, the middles of the patches for draws (m,) between 0 and 1 of difficulty and kind.

        From 1 on the kinds start again.
        """
        rows, kinds, _ = self.starts.shape
        row = (difficulty * rows).long().clamp(0, rows - 1)
        column = (kind * kinds).long() % kinds
        place = torch.from_numpy(self.starts).to(difficulty)[row, column]
        return torch.cat([place, self.height(place[:, :1], place[:, 1:])], 1)


def _outwards() -> np.ndarray:
    """(nodes, nodes) cells from a patch's middle, along x or y, whichever is more."""
    away = np.abs(np.arange(PATCH + 1) - PATCH // 2)
    return np.maximum(away[:, None], away[None, :])


def _flat(difficulty: float, random: np.random.Generator) -> np.ndarray:
    return np.zeros((PATCH + 1, PATCH + 1))


def _slope_down(difficulty: float, random: np.random.Generator) -> np.ndarray:
    left = TREAD * STEPS - (_outwards() - PLATFORM).clip(0, TREAD * STEPS)
    return CELL * math.tan(SLOPE * difficulty) * left


def _stairs_down(difficulty: float, random: np.random.Generator) -> np.ndarray:
    stair = ((_outwards() - PLATFORM - 1) // TREAD + 1).clip(0, STEPS)
    return RISER * difficulty * (STEPS - stair)


def _slope_up(difficulty: float, random: np.random.Generator) -> np.ndarray:
    return -_slope_down(difficulty, random)


def _stairs_up(difficulty: float, random: np.random.Generator) -> np.ndarray:
    return -_stairs_down(difficulty, random)


def _blocks(difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Square blocks side by side, each at a height of its own."""
    tiles = random.choice([0.0, 0.5, 1.0], (PATCH // TILE + 1,) * 2) * RISER * difficulty
    heights = tiles.repeat(TILE, 0).repeat(TILE, 1)[: PATCH + 1, : PATCH + 1]
    away = _outwards()
    return np.where((away > PLATFORM) & (away <= PLATFORM + TREAD * STEPS), heights, 0.0)


def _gaps(difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Trenches around the platform, three treads apart."""
    beyond = _outwards() - PLATFORM - TREAD
    trench = (beyond % (3 * TREAD) < math.ceil(GAP * difficulty)) & (beyond >= 0) & (beyond < TREAD * (STEPS - 1))
    return np.where(trench, -DEPTH * difficulty, 0.0)


KINDS: Mapping[str, Callable[[float, np.random.Generator], np.ndarray]] = {
    "stairs up": _stairs_up,
    "flat": _flat,
    "slope up": _slope_up,
    "slope down": _slope_down,
    "stairs down": _stairs_down,
    "blocks": _blocks,
    "gaps": _gaps,
}
"""From a difficulty up to 1 to the heights (m) of a patch's nodes, what lies outwards of its middle."""

SIDES = {"slope up": pit, "slope down": mound}
"""Of the kinds that are not stepped, what their slopes are."""


def described(kind: str, difficulty: float) -> str:
    """How hard a patch is, for people: "10 cm" (of stairs, blocks; the width of gaps), "20°" (of slopes), or ""."""
    if kind.startswith("slope"):
        return f"{math.degrees(SLOPE * difficulty):.0f}°"
    metres = {"flat": 0.0, "gaps": CELL * math.ceil(GAP * difficulty)}.get(kind, RISER * difficulty)
    return f"{100 * metres:.0f} cm" if metres else ""


def rough_ground(rows: int = ROWS, seed: int = 0) -> Ground:
    """Patches of all kinds; those of row k have difficulty (k + 1) / rows."""
    random = np.random.default_rng(seed)
    shape = rows * PATCH + 2 * BORDER + 1, len(KINDS) * PATCH + 2 * BORDER + 1
    heights, stepped = np.zeros(shape, np.float32), np.ones((shape[0] - 1, shape[1] - 1), bool)
    starts = np.zeros((rows, len(KINDS), 2))
    middle = CELL * (np.array(shape[::-1]) - 1) / 2
    solids = [_surroundings(middle - CELL * BORDER)]
    for row in range(rows):
        for column, (kind, make) in enumerate(KINDS.items()):
            top, left = BORDER + row * PATCH, BORDER + column * PATCH
            patch = make((row + 1) / rows, random)
            heights[top : top + PATCH + 1, left : left + PATCH + 1] = patch
            stepped[top : top + PATCH, left : left + PATCH] = kind not in SIDES
            starts[row, column] = CELL * (np.array([left, top]) + PATCH // 2) - middle
            solids.append(_solids(kind, patch).moved(np.array([*starts[row, column], 0.0])))
    return Ground(heights, CELL, stepped, joined(solids), starts, tuple(KINDS))


def visible_solids(ground: Ground) -> Solids:
    """What can be seen of a ground of patches: boxes side by side, which hide less of each other, and no deeper."""
    solids = [_surroundings(np.array(ground.reach) - CELL * BORDER)]
    for row in range(len(ground.starts)):
        for column, kind in enumerate(ground.kinds):
            top, left = BORDER + row * PATCH, BORDER + column * PATCH
            patch = ground.heights[top : top + PATCH + 1, left : left + PATCH + 1].astype(float)
            deep = float(patch.min()) - SEAM
            if kind in SIDES:
                boxes, wedges = _solids(kind, patch)
                shown = Solids(boxes, tuple(wedge + np.array([0.0, 0.0, HAIR]) for wedge in wedges))
            else:
                shown = terraces(patch, CELL, deep, apart=True)
            solids.append(shown.moved(np.array([*ground.starts[row, column], 0.0])))
    return joined(solids)


def _solids(kind: str, patch: np.ndarray) -> Solids:
    """What the ground of a patch is made of, around its middle."""
    if kind not in SIDES:
        return terraces(patch, CELL, DEEPEST)
    inner, outer = PLATFORM, PLATFORM + TREAD * STEPS
    rise = float(np.abs(patch).max())
    base = terraces(np.where(_outwards() <= outer, patch.min(), 0.0), CELL, DEEPEST)
    return joined([base, SIDES[kind](CELL * inner, CELL * outer, rise, DEEPEST)])


def _surroundings(reach: np.ndarray) -> Solids:
    """Level ground around all patches, which go as far as ``reach`` (2,) m along x and y."""
    x, y = reach
    sides = ((-FAR, -FAR, -x, FAR), (x, -FAR, FAR, FAR), (-FAR, -FAR, FAR, -y), (-FAR, y, FAR, FAR))
    return Solids(np.array([[[left, low, DEEPEST], [right, high, 0.0]] for left, low, right, high in sides]))


def add_ground(spec: Any, ground: Ground | None) -> list[Any]:
    """The ground as shapes in MuJoCo's ``spec`` (an MjSpec), "ground 0", …: a plane where there is no ``ground``."""
    import mujoco

    from robo_rl.sim.drawing import UNPAINTED

    if ground is None:
        plane = spec.worldbody.add_geom(name="ground 0", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        plane.rgba = UNPAINTED  # whatever colour the robot's file has by default
        return [plane]
    return add_solids(spec, ground.solids)
