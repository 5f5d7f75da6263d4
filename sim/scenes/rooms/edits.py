"""What a person changes in a room while a robot is in it: another goal, and obstacles of one cell each.

Ways and pictures follow by ``Rooms.finish``.
"""

from __future__ import annotations

import math

from robo_rl.sim.scenes.rooms import COLUMNS, ROWS, Rooms

DROPPED = 3
"""Of a cell: filled by a person."""
GAP = 0.02
"""m, from an obstacle that is dropped to a robot, at least."""
NO_WAY = 1e5
"""m, beyond which there is no way."""

Place = tuple[float, float]


def cell_at(rooms: Rooms, room: int, place: Place, what: str) -> tuple[int, int]:
    """Row and column of the free cell at a place (m); ValueError where it is filled, or outside."""
    column, row = (math.floor(x / rooms.cell) for x in place)
    if not (0 < row < ROWS - 1 and 0 < column < COLUMNS - 1):
        raise ValueError(f"{what} {_told(place)} is outside the room; expected a place on its floor")
    if rooms.cells[room, row, column]:
        raise ValueError(f"{what} {_told(place)} is inside a wall or an obstacle; expected a place on the free floor")
    return row, column


def drop(rooms: Rooms, room: int, place: Place, robot: Place) -> None:
    """Fill the cell at a place (m); ValueError where that can't be, or where the ``robot`` (m) or its goal is."""
    row, column = cell_at(rooms, room, place, "obstacle")
    corner = (column * rooms.cell, row * rooms.cell)
    x, y = (rooms.goal[room, k].item() for k in range(2))
    for who, where, reach in (("robot", robot, rooms.radius + GAP), ("goal", (x, y), 0.0)):
        off = [max(low - x, 0.0, x - low - rooms.cell) for low, x in zip(corner, where, strict=True)]
        if math.hypot(*off) <= reach:
            raise ValueError(f"obstacle {_told(place)} would be where the {who} is; expected a place beside it")
    rooms.cells[room, row, column] = DROPPED


def clear(rooms: Rooms) -> None:
    """Take away all obstacles that were dropped."""
    rooms.cells[rooms.cells == DROPPED] = 0


def _told(place: Place) -> str:
    return f"({place[0]:.2f}, {place[1]:.2f}) m"
