"""Where episodes with a cube begin: from anywhere, near a grasp, with the cube in the hand, or with it at its place.

Whoever learns from episodes that all begin far from success meets success by chance, which is rare; who begins in all
states that lie on the way knows early what is worth reaching (Florensa et al. 2017, Reverse Curriculum Generation;
OmniReset 2025). States on the way are drawn here, and need no demonstration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.tasks.arm.workspace import Workspace

SHARE = 0.6  # of the episodes that begin on the way at first
NEAR, HELD = 0.3, 0.7  # of those: up to the first near a grasp, up to the second in the hand, the others at the place
APART = 0.1  # m, the least way from a cube on the ground to its place
DIAGONAL = 1.35  # half edges, of a cube that is turned by as much as ``initial/yaw``, and some more
TRIES = 6  # of drawing a place that is so far away


class Start(NamedTuple):
    """Of m episodes."""

    pose: Tensor
    """(m,) number of the arm's pose in the workspace's."""
    gripper: Tensor
    """(m,) its position."""
    cube: Tensor
    """(m, 3) m."""
    yaw: Tensor
    """(m,) rad, of the cube."""
    place: Tensor
    """(m, 3) m, where the cube is to be."""
    lifted: Tensor
    """(m,) 1 where the cube counts as lifted already."""


def ranges() -> dict[str, Range]:
    """What ``start`` draws from."""
    return {
        "initial/family": Range((0.0, 1.0), (SHARE, 1.0)),
        "initial/kind": Range.fixed(0.0, 1.0),
        "initial/pose": Range.fixed(0.0, 1.0),
        "initial/grip": Range.fixed(0.6, 1.0, unit="× open"),
        "initial/cube": Range.fixed(0.0, 1.0, count=2, unit="× workspace"),
        "initial/yaw": Range.fixed(-0.4, 0.4, unit="rad"),
        "initial/held": Range.fixed(-0.3, 0.3, count=2, unit="× half edge"),
        "goal/place": Range.fixed(0.0, 1.0, count=2 * TRIES, unit="× workspace"),
        "goal/way": Range.fixed(0.0, 1.0, unit="×"),
    }


def start(card: ArmCard, space: Workspace, half: Tensor, drawn: Mapping[str, Tensor]) -> Start:
    """Episodes with cubes of half edge ``half`` (m,) m, given draws from ``ranges``."""
    on_the_way, kind = drawn["initial/family"] < SHARE, drawn["initial/kind"]
    near = on_the_way & (kind < NEAR)
    held = on_the_way & (kind >= NEAR) & (kind < HELD)
    there = on_the_way & (kind >= HELD)
    low, count = space.first_high, len(space.places)
    first = torch.where(on_the_way, 0, low)
    last = torch.where(near | there, space.first_middle, count)
    pose = (first + drawn["initial/pose"] * (last - first)).long().clamp(max=count - 1)
    tool = space.places[pose]
    offset = half[:, None] * drawn["initial/held"]
    in_hand = torch.stack([tool[:, 0], tool[:, 1], tool[:, 2] + offset[:, 1]], -1)
    in_hand[:, 0] += torch.where(near, 0.0, offset[:, 0])
    in_hand[:, 2] = torch.where(near, half, torch.maximum(in_hand[:, 2], half))
    on_ground = torch.cat([space.on_ground(drawn["initial/cube"]), half[:, None]], -1)
    cube = torch.where(on_the_way[:, None], in_hand, on_ground)
    jaw = card.gripper.joint
    open_to = jaw.lower + (jaw.upper - jaw.lower) * drawn["initial/grip"]
    gripped = held | there
    free = space.closed_on(DIAGONAL * half).clamp(max=jaw.upper)
    return Start(
        pose=pose,
        gripper=torch.where(gripped, space.closed_on(half), torch.where(near, torch.maximum(open_to, free), open_to)),
        cube=cube,
        yaw=space.yaw(cube) + torch.where(gripped, 0.0, drawn["initial/yaw"]),
        place=torch.cat([_place(space, cube[:, :2], held, there, drawn), half[:, None]], -1),
        lifted=gripped.float(),
    )


def far_enough(tries: Tensor, start: Tensor, corners: Tensor) -> Tensor:
    """(m, 2) m: the first of ``tries`` (m, k, 2) that is far from ``start`` (m, 2); without one, the farthest corner.

    ``corners`` (2, 2) are the lower and the upper one, all in m.
    """
    far = (tries - start[:, None]).norm(dim=-1) > APART
    first = far.float().argmax(1)
    opposite = torch.where(start < corners.mean(0), corners[1], corners[0])
    return torch.where(far.any(1)[:, None], tries[torch.arange(len(tries)), first], opposite)


def _place(space: Workspace, cube: Tensor, held: Tensor, there: Tensor, drawn: Mapping[str, Tensor]) -> Tensor:
    """(m, 2) m: the first of some places that is far enough from the cube; nearer to one that is in the hand."""
    tries = space.on_ground(drawn["goal/place"].unflatten(-1, (TRIES, 2)))
    place = far_enough(tries, cube, torch.tensor([space.lower[:2], space.upper[:2]]))
    part = torch.where(held, drawn["goal/way"], 1.0)
    way = place - cube
    part = torch.where(there, 0.015 * drawn["goal/way"] / way.norm(dim=-1), part)
    return cube + part[:, None] * way
