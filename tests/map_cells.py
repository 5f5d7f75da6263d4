"""Where the cells of robots' maps lie in their rooms, by plain geometry."""

from __future__ import annotations

import torch
from torch import Tensor

from robo_rl.sim.scenes.rooms import Rooms
from robo_rl.sim.tasks.mobile_base.seen_map import ACROSS, ALONG, Frame


def places(memory: dict[str, Tensor], cell: float) -> Tensor:
    """(n, ALONG, ACROSS, 2) m, in the room: the middles of the cells."""
    frame = Frame(*(part[:, :, None] for part in memory["map_frame"][:, 1:].split(1, -1)))
    along = (torch.arange(ALONG)[:, None] - 0.5 * (ALONG - 1)) * cell
    across = (torch.arange(ACROSS) - 0.5 * (ACROSS - 1)) * cell
    x = frame.x + frame.cosine * along - frame.sine * across
    return torch.stack([x, frame.y + frame.sine * along + frame.cosine * across], -1)


def filled_near(rooms: Rooms, where: Tensor) -> tuple[Tensor, Tensor]:
    """(n, ALONG, ACROSS) each: whether a cell of the room at these places, or one beside it, is filled, and whether
    they are inside the room.
    """
    filled = torch.nn.functional.max_pool2d(rooms.cells[:, None].clamp(max=1).float(), 3, 1, 1)[:, 0]
    column, row = (where / rooms.cell).floor().long().unbind(-1)
    inside = (column >= 0) & (column < filled.shape[2]) & (row >= 0) & (row < filled.shape[1])
    index = (row.clamp(0, filled.shape[1] - 1) * filled.shape[2] + column.clamp(0, filled.shape[2] - 1)).flatten(1)
    return filled.flatten(1).gather(1, index).view_as(column), inside
