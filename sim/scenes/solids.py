"""What of rough ground can be touched: boxes with upright sides for everything stepped, wedges for slopes.

Stairs have treads and upright risers, as real ones do. A height field would make ramps of the risers, and hold a foot
whose centre is pressed into it by the walls between its cells (google-deepmind/mujoco#2883). Boxes reach deep, and
overlap where they can, so that the side by which a foot leaves one soonest is a side that can be seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

RIM = 0.05  # m, of level ground around a pit


class Solids(NamedTuple):
    """Convex bodies in the world whose upper sides are the ground."""

    boxes: np.ndarray
    """(B, 2, 3) m, lowest and highest corner of each."""
    wedges: tuple[np.ndarray, ...] = ()
    """(corners, 3) m each."""

    def moved(self, way: np.ndarray) -> Solids:
        """All, ``way`` (3,) m further."""
        return Solids(self.boxes + way, tuple(wedge + way for wedge in self.wedges))

    def near(self, place: np.ndarray, reach: float) -> Solids:
        """Those that are within ``reach`` (m) of a place (2,) m along x and y."""

        def touches(low: np.ndarray, high: np.ndarray) -> bool:
            return bool((low[:2] < place + reach).all() and (high[:2] > place - reach).all())

        boxes = [box for box in self.boxes if touches(*box)]
        wedges = tuple(wedge for wedge in self.wedges if touches(wedge.min(0), wedge.max(0)))
        return Solids(np.array(boxes).reshape(-1, 2, 3), wedges)


def joined(parts: list[Solids]) -> Solids:
    """All of them."""
    return Solids(np.concatenate([part.boxes for part in parts]), sum((part.wedges for part in parts), ()))


def terraces(heights: np.ndarray, cell: float, deep: float, apart: bool = False) -> Solids:
    """Boxes under level terraces: around every node of the grid the ground is as high as there.

    ``heights`` (n, n) m, rows along y, around the origin, ``cell`` (m) apart; all reach down to ``deep`` (m). They
    overlap, or stand ``apart``, side by side.
    """
    boxes = []
    middle = 0.5 * (heights.shape[0] - 1)
    levels = heights.round(6)
    for level in np.unique(levels):
        for top, left, bottom, right in rectangles(levels == level if apart else levels >= level, apart):
            low = cell * (np.array([left, top]) - middle - 0.5)
            high = cell * (np.array([right, bottom]) - middle + 0.5)
            boxes.append([[*low, deep], [*high, level]])
    return Solids(np.array(boxes))


def rectangles(region: np.ndarray, apart: bool = False) -> list[tuple[int, int, int, int]]:
    """Rectangles that together are the ``region`` (rows, columns), bool; each as large as it can be.

    First row, first column, last row and last column of each. They overlap, unless they shall be ``apart``.
    """
    left, found = region.copy(), []
    while left.any():
        row, column = divmod(int(left.argmax()), left.shape[1])
        free = left if apart else region
        wide, high = _grown(free, row, column), _grown(free.T, column, row)
        high = (high[1], high[0], high[3], high[2])
        best = max(wide, high, key=lambda r: (r[2] - r[0] + 1) * (r[3] - r[1] + 1))
        left[best[0] : best[2] + 1, best[1] : best[3] + 1] = False
        found.append(best)
    return found


def _grown(region: np.ndarray, row: int, column: int) -> tuple[int, int, int, int]:
    """From one place as far as the region goes along its row, then along columns as far as all of that goes."""
    left, right = _run(region[row], column)
    top, bottom = _run(np.asarray(region[:, left : right + 1].all(1)), row)
    return top, left, bottom, right


def _run(line: np.ndarray, at: int) -> tuple[int, int]:
    """First and last index of the places around ``at`` that are all in."""
    out = np.flatnonzero(~line)
    before, after = out[out < at], out[out > at]
    return (int(before[-1]) + 1 if len(before) else 0), (int(after[0]) - 1 if len(after) else len(line) - 1)


def mound(inner: float, outer: float, height: float, deep: float) -> Solids:
    """A square hill of ``height`` (m) whose sides fall from ``inner`` to ``outer`` (m from its middle)."""
    corners = np.array([[x, y] for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    rings = ((inner, height), (outer, 0.0), (outer, deep))
    return Solids(np.empty((0, 2, 3)), (np.concatenate([np.c_[reach * corners, [z] * 4] for reach, z in rings]),))


def pit(inner: float, outer: float, depth: float, deep: float) -> Solids:
    """The four sides of a square pit that rise from ``-depth`` (m) at ``inner`` to 0 at ``outer`` (m), and a rim."""
    rim = outer + RIM
    section = ((inner, -depth), (outer, 0.0), (rim, 0.0), (rim, deep), (inner, deep))
    side = np.array([[x, y, z] for x, z in section for y in (-rim, rim)])
    turns = [np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    return Solids(np.empty((0, 2, 3)), tuple(side @ turn.T for turn in turns))


def add_solids(spec: Any, solids: Solids) -> list[Any]:
    """The solids as shapes "ground 0", … of the world in MuJoCo's ``spec`` (an MjSpec)."""
    import mujoco

    shapes = []
    for low, high in solids.boxes:
        size, place = 0.5 * (high - low), 0.5 * (high + low)
        shapes.append(spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=place))
    for number, wedge in enumerate(solids.wedges):
        middle = wedge.mean(0)
        spec.add_mesh(name=f"ground {number}", uservert=(wedge - middle).ravel())
        mesh = {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": f"ground {number}"}
        shapes.append(spec.worldbody.add_geom(**mesh, pos=middle))
    for number, shape in enumerate(shapes):
        shape.name = f"ground {number}"
    return shapes
