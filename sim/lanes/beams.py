"""Who drives around the car, of a scan: how far it is to the next one ahead and behind in three lanes, and beside.

Hits of beams are put into the lane's frame, which bends as the route does; of those in a lane, the nearest one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from robo_rl.contract import Scan
from sim.lanes import VEHICLE, WIDE
from sim.lanes.around import SIDES

CLEAR = 60.0  # m: a gap where nobody is within the beams
GAPS = 2 * len(SIDES) + 2
IN_LANE = 1.3  # m from the middle of a lane: of a vehicle that drives there, some of its rear is
BESIDE, OVERLAP = 5.0, 4.0  # m: to the side, at most; ahead of and behind the bumpers, what counts as beside


def gaps(scan: Any, layout: Scan, signals: Mapping[str, Any], forward: float, front: float) -> Any:
    """(n, GAPS) m. For the lane to the right, the own, and that to the left: ahead and behind of the bumpers; then how
    far the nearest hit beside the car is from the middle of its lane, to the right and to the left.

    ``scan`` (n, beams) m by a lidar that is ``forward`` m of the car's middle, whose bumper is at ``front`` m.
    """
    angles = layout.angle_min + layout.angle_increment * torch.arange(scan.shape[1])
    x, y = forward + scan * torch.cos(angles), scan * torch.sin(angles)
    met = scan < CLEAR
    across = y - _middle(signals, x)
    found = []
    for lane in SIDES:
        there = met & (abs(across - lane * WIDE) < IN_LANE)
        for sign in (1.0, -1.0):
            gap = torch.clamp(sign * x - front, min=0.0)
            found.append(torch.where(there & (sign * x > 0.0), gap, CLEAR).amin(1, keepdim=True))
    beside = met & (abs(x) < front + OVERLAP)
    for sign in (-1.0, 1.0):
        side = torch.clamp(sign * across, 0.0, BESIDE)
        found.append(torch.where(beside & (sign * across > 0.5 * VEHICLE[1]), side, BESIDE).amin(1, keepdim=True))
    return torch.cat(found, -1)


def _middle(signals: Mapping[str, Any], x: Any) -> Any:
    """(n, beams) m: y of the middle of the lane at places x (n, beams) m ahead, in straight parts between the route's
    points. It is ``around.middle_at`` in few operations on many places."""
    route, begin = signals["route"], -signals["lane_offset"]
    points = torch.cat([torch.stack([0.0 * begin, begin], -1), route], 1)
    apart = points[:, 1:] - points[:, :-1]
    slopes = apart[:, :, 1] / torch.clamp(apart[:, :, 0], min=0.5)
    before = torch.cat([0.0 * begin, slopes[:, :-1]], 1)
    beyond = torch.clamp(x[:, None] - points[:, :-1, :1], min=0.0)  # (n, parts, beams)
    return begin - signals["lane_heading"] * torch.clamp(x, max=0.0) + ((slopes - before)[:, :, None] * beyond).sum(1)
