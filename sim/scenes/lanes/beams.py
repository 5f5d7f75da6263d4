"""Who drives around the car, of a scan: how far it is to the next one ahead and behind in three lanes, and beside.

Hits of beams are put into the lane's frame, which bends as the route does; of those in a lane, the nearest one counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from robo_rl.contract import Scan
from robo_rl.sim.scenes.lanes import VEHICLE, WIDE
from robo_rl.sim.scenes.lanes.around import SIDES

CLEAR = 60.0  # m: a gap where nobody is within the beams
GAPS = 2 * len(SIDES) + 2
IN_LANE = 1.3  # m from the middle of a lane: of a vehicle that drives there, some of its rear is
STEEP = 4.0  # m to the side per m ahead, 76°, at most of a lane: 2.1 are seen in bends of 40 m radius
BESIDE, OVERLAP = 5.0, 4.0  # m: to the side, at most; ahead of and behind the bumpers, what counts as beside


def gaps(scan: Any, layout: Scan, signals: Mapping[str, Any], forward: float, front: float) -> Any:
    """(n, GAPS) m. For the lane to the right, the own, and that to the left: ahead and behind of the bumpers; then how
    far the nearest hit beside the car is from the middle of its lane, to the right and to the left.

    ``scan`` (n, beams) m by a lidar that is ``forward`` m of the car's middle, whose bumper is at ``front`` m.
    """
    angles = [layout.angle_min + layout.angle_increment * k for k in range(scan.shape[1])]
    along, aside = (torch.tensor([f(angle) for angle in angles]) for f in (math.cos, math.sin))
    x, y = forward + scan * along, scan * aside
    met = scan < CLEAR
    across = y - middle_of(signals, x)
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


def middle_of(signals: Mapping[str, Any], x: Any) -> Any:
    """(n, beams) m: y of the middle of the lane at places x (n, beams) m ahead, in straight parts between the route's
    points, none steeper than ``STEEP``. It is else ``around.middle_at`` in few operations on many places.

    It is a sum of kinks. Without the limit, points of no road are terms of 10^5 m that cancel but for rounding. Terms
    are added one after the other, so that runtimes round alike and agree on which hits are within a lane's borders.
    """
    route, begin = signals["route"], -signals["lane_offset"]
    points = torch.cat([torch.stack([0.0 * begin, begin], -1), route], 1)
    apart = points[:, 1:] - points[:, :-1]
    slopes = torch.clamp(apart[:, :, 1] / torch.clamp(apart[:, :, 0], min=0.5), -STEEP, STEEP)
    before = torch.cat([0.0 * begin, slopes[:, :-1]], 1)
    beyond = torch.clamp(x[:, None] - points[:, :-1, :1], min=0.0)  # (n, parts, beams)
    middle = begin - signals["lane_heading"] * torch.clamp(x, max=0.0)
    for kink in ((slopes - before)[:, :, None] * beyond).unbind(1):
        middle = middle + kink
    return middle
