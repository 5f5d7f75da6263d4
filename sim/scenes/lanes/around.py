"""Who drives ahead and behind in the car's lane and in those beside it, of the neighbours that are seen.

For each lane, to the right, its own, to the left, ahead and behind: how near the nearest vehicle is, how fast the gap
closes, and how hard whoever is behind has to brake so that they don't touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from robo_rl.sim.scenes.lanes import REACH, VEHICLE, WIDE

SIDES = (-1.0, 0.0, 1.0)  # lanes to the left
AROUND = 3 * 2 * len(SIDES)
NEAR = 15.0  # m, over which nearness falls to 37 %
IN_WAY, CROSSING = 2.0, 3.3  # m across, within which a vehicle, and one that crosses, is in a lane
TURNED = 0.8  # rad, from which on a vehicle crosses
HARD = 10.0  # m/s², the greatest braking that is told


def across_of(signals: Mapping[str, Any]) -> tuple[Any, Any]:
    """How far neighbours are to the left of the middle of the lane, (n, k) m, and the lane's slope there."""
    place = signals["neighbour_position"]
    middle, slope = middle_at(signals, place[:, :, 0])
    return place[:, :, 1] - middle, slope


def middle_at(signals: Mapping[str, Any], x: Any) -> tuple[Any, Any]:
    """The middle of the lane, which bends as the route does, at places ``x`` (n, k) m ahead: y (n, k) m, and its slope,
    m to the left per m ahead."""
    route, begin = signals["route"], -signals["lane_offset"]
    middle, slope = begin - x * signals["lane_heading"], 0.0 * x - signals["lane_heading"]  # behind
    last_x, last_y = 0.0 * begin, begin
    for k in range(len(REACH)):
        ahead, side = route[:, k, :1], route[:, k, 1:]
        here = (side - last_y) / torch.clamp(ahead - last_x, min=0.5)
        middle = torch.where(x > last_x, last_y + here * (x - last_x), middle)
        slope = torch.where(x > last_x, here, slope)
        last_x, last_y = ahead, side
    return middle, slope


def around(signals: Mapping[str, Any], speed: Any, front: float, foresight: float = 0.0) -> Any:
    """(n, AROUND), at a speed (n, 1) m/s and with ``front`` m from the middle to the bumper.

    A neighbour is in every lane where it is now or will be in ``foresight`` s, as it moves across.
    """
    x = signals["neighbour_position"][:, :, 0]
    across, slope = across_of(signals)
    closing = -signals["neighbour_velocity"][:, :, 0]  # of what is ahead
    crosses = abs(signals["neighbour_heading"]) > TURNED
    half = front + torch.where(crosses, 0.5 * VEHICLE[1], 0.5 * VEHICLE[0])
    wide = torch.where(crosses, CROSSING, IN_WAY)
    valid = signals["neighbour_valid"] > 0.5
    then = across + foresight * (signals["neighbour_velocity"][:, :, 1] - slope * (speed - closing))
    found = []
    for lane in SIDES:
        there = abs(across - lane * WIDE) < wide
        if foresight:
            there = there | (abs(then - lane * WIDE) < wide)
        there = valid & there
        for sign in (1.0, -1.0):
            which = there & (sign * x > 0.0)
            gap = torch.clamp(sign * x - half, min=0.0)
            near = torch.where(which, torch.exp(-gap / NEAR), 0.0)
            nearest = near.amax(1, keepdim=True)
            faster = sign * closing
            chosen = torch.where(which & (near >= nearest), faster, -100.0).amax(1, keepdim=True)
            brake = torch.clamp(faster, min=0.0).square() / (2.0 * torch.clamp(gap - 1.0, min=0.5))
            hardest = torch.where(which, torch.clamp(brake, max=HARD), 0.0).amax(1, keepdim=True)
            found += [nearest, 0.1 * torch.where(nearest > 0.0, chosen, 0.0), 0.3 * hardest]
    return torch.cat(found, -1)
