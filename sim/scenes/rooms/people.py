"""People who walk through rooms, as circles: they turn where something is in their way, and wait for a robot there.

A person walks straight ahead at a speed of its own. Where the next step would touch a filled cell, it turns on the spot
by the golden angle instead, until a way is free. Where a robot is closer ahead than GAP, it stands still; after WAITED
it turns away. So a person never walks into a robot that it faces, while a robot can drive into a person.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.scenes.rooms import COLUMNS, ROWS

GOLDEN = math.pi * (3.0 - math.sqrt(5.0))  # rad
GAP = 0.1  # m between the robot and a person who stands still for it
WAITED = 1.5  # s
FEELERS = (-0.8, 0.0, 0.8)
"""rad from the direction of a step: there the rim of the circle has to be free."""


class People(NamedTuple):
    """m people in each of n rooms."""

    place: Tensor
    """(n, m, 2) m."""
    heading: Tensor
    """(n, m) rad."""
    waited: Tensor
    """(n, m) s since a robot came in the way."""


def walk(
    people: People, speed: Tensor, radius: float, cells: Tensor, cell: float, robot: Tensor, reach: float, period: float
) -> People:
    """A ``period`` (s) later, at ``speed`` (n, m) m/s, in rooms of filled ``cells`` (n, ROWS, COLUMNS) of ``cell`` m.

    ``radius`` (m) of a person; ``robot`` (n, 2) m with a radius of ``reach`` m.
    """
    ahead = torch.stack([torch.cos(people.heading), torch.sin(people.heading)], -1)
    place = people.place + (period * speed)[..., None] * ahead
    turns = people.heading[..., None] + torch.tensor(FEELERS)
    rim = place[..., None, :] + radius * torch.stack([torch.cos(turns), torch.sin(turns)], -1)  # (n, m, 3, 2)
    index = (rim / cell).long()
    column, row = index[..., 0].clamp(0, COLUMNS - 1), index[..., 1].clamp(0, ROWS - 1)
    flat = (row * COLUMNS + column).flatten(1)
    walled = cells.flatten(1).gather(1, flat).view(rim.shape[:-1]).bool().any(-1)
    away = robot[:, None] - place
    faced = (away.square().sum(-1) < (radius + reach + GAP) ** 2) & ((away * ahead).sum(-1) > 0.0)
    waited = torch.where(faced, people.waited + period, torch.zeros_like(people.waited))
    turned = walled | (waited > WAITED)
    return People(
        torch.where((walled | faced)[..., None], people.place, place),
        torch.where(turned, torch.remainder(people.heading + GOLDEN, 2 * math.pi), people.heading),
        torch.where(waited > WAITED, torch.zeros_like(waited), waited),
    )


def nearest(place: Tensor, radius: float, origin: Tensor, directions: Tensor) -> Tensor:
    """(n, b) m: how far rays from ``origin`` (n, 2) m go before they meet a circle about ``place`` (n, m, 2) m.

    ``directions`` (n, b, 2) are of unit length. inf where a ray meets none.
    """
    off = place - origin[:, None]  # (n, m, 2)
    along = off @ directions.mT  # (n, m, b)
    inside = radius**2 - (off.square().sum(-1, keepdim=True) - along.square())
    met = (inside > 0.0) & (along > 0.0)
    way = torch.where(met, along - inside.clamp(min=0.0).sqrt(), torch.full_like(along, torch.inf))
    return way.amin(1).clamp(min=0.0)
