"""What a change of lanes would gain, as MOBIL reckons: accelerations by IDM after it, less those before.

For loops over single numbers and tensors alike; ``robo_rl.controllers.car.traffic`` has both models with their
sources, and a test
compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from robo_rl.controllers.car.traffic import EMERGENCY, LENGTH, Idm, Mobil
from robo_rl.sim.scenes.lanes import FAR, VEHICLE, WIDE
from robo_rl.sim.scenes.lanes.around import IN_WAY, across_of

USUAL, MOBIL = Idm(), Mobil()
LEAST, MOST = -4.0, 4.0  # m/s²; the least gain also stands for a change that is not possible or not safe
LEFT_AND_RIGHT = (1.0, -1.0)


class Lane(NamedTuple):
    """Who is nearest in a lane, (n, 1) each: gaps between bumpers, m, ``FAR`` without anybody; speeds, m/s."""

    gap: Any
    leader: Any
    behind: Any
    follower: Any


def lanes_of(signals: Mapping[str, Any], speed: Any, front: float) -> list[Lane]:
    """Of the neighbours that are seen: the car's lane, that to the left, and that to the right."""
    x, across = signals["neighbour_position"][:, :, 0], across_of(signals)[0]
    along = torch.clamp(signals["neighbour_velocity"][:, :, 0] + speed, min=0.0)
    valid = signals["neighbour_valid"] > 0.5
    found = []
    for lane in (0.0, *LEFT_AND_RIGHT):
        there = valid & (abs(across - lane * WIDE) < IN_WAY)
        figures = []
        for sign in (1.0, -1.0):
            gaps = torch.where(there & (sign * x > 0.0), sign * x - front - 0.5 * VEHICLE[0], FAR)
            gap = gaps.amin(1, keepdim=True)
            theirs = torch.where(gaps <= gap, along, -1.0).amax(1, keepdim=True)
            figures += [gap, torch.where(gap < FAR, theirs, speed)]
        found.append(Lane(*figures))
    return found


def acceleration(speed: Any, gap: Any, leader: Any, desired: Any, headway: Any = USUAL.headway) -> Any:
    """(n, 1) m/s², by IDM."""
    approach = speed * (speed - leader) / (2.0 * (USUAL.acceleration * USUAL.braking) ** 0.5)
    close = USUAL.standstill + torch.clamp(speed * headway + approach, min=0.0)
    part = (speed / desired).square()
    ratio = close / torch.clamp(gap, min=0.1)
    return torch.clamp(USUAL.acceleration * (1.0 - part * part - ratio.square()), min=-EMERGENCY)


def gains(lanes: Sequence[Lane], room: Any, speed: Any, desired: Any, headway: Any) -> Any:
    """(n, 2) m/s², of a change to the left and to the right, where ``room`` (n, 2) tells how many lanes there are.

    ``desired`` (m/s) and ``headway`` (s), (n, 1), are the driver's; others are taken to want as much speed.
    """
    own, *beside = lanes
    now = acceleration(speed, own.gap, own.leader, desired, headway)
    found = []
    for k, lane in enumerate(beside):
        after = acceleration(speed, lane.gap, lane.leader, desired, headway)
        follows = acceleration(lane.follower, lane.behind, speed, desired)
        whole = torch.clamp(lane.behind + lane.gap + LENGTH, max=FAR)
        followed = acceleration(lane.follower, whole, lane.leader, desired)
        lost = torch.where(lane.behind < FAR, follows - followed, 0.0)
        gain = torch.clamp(after - now + MOBIL.politeness * lost, LEAST, MOST)
        safe = (follows >= -MOBIL.safe_braking) | (lane.behind >= FAR)
        clear = (lane.gap > USUAL.standstill) & (lane.behind > USUAL.standstill)
        found.append(torch.where(safe & clear & (room[:, k : k + 1] > 0.5), gain, LEAST))
    return torch.cat(found, -1)
