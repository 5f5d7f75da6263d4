"""Where an arm works: a box in front of it, poses of the arm in it, and how far its gripper closes on a cube."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from torch import Tensor

from robo_rl.controllers.arm import inverse
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.indices import find_indices, follow
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.figures import CardError

POSES = 512
LOW = 128
"""Of the poses that are as low as where a cube on the ground is grasped."""
GRASPING = 0.02
"""m above the lower face of the box, up to which that is."""
HIGH = 0.4
"""Part of the box's height above which an arm that has nothing in its hand begins."""
MISSED = 1e-3
"""m, by which inverse kinematics may miss a place in the box."""
LIFTED = 0.04
"""m, by which an object is lifted at least."""
BEYOND = 0.08
"""m around the box that an object may be in."""


@dataclass(frozen=True)
class Workspace:
    """A box in the base frame, its lower face on the ground, and the poses in which an arm's tool is in it."""

    lower: tuple[float, float, float]
    """m."""
    upper: tuple[float, float, float]
    angles: Tensor
    """(p, J) rad, of slides m: joint positions with the tool pointing down, lowest first."""
    places: Tensor
    """(p, 3) m, where the tool is then."""
    first_high: int
    """The first of the poses that is so high that a hand with nothing in it may begin there."""
    first_middle: int
    """The first of the poses that is higher than where a cube on the ground is grasped."""
    shoulder: tuple[float, float] | None
    """m, the axis about which the tool's yaw follows the arm; None where it stays the same everywhere."""
    closed: tuple[float, float] | None
    """The gripper's position on a cube of half edge h (m): the first number and h times the second.
    None without a gripper."""

    @property
    def origin(self) -> Tensor:
        """(1, 3) m, its centre."""
        return 0.5 * (torch.tensor([self.lower]) + torch.tensor([self.upper]))

    def on_ground(self, part: Tensor) -> Tensor:
        """(…, 2) m, a place for numbers (…, 2) from 0 to 1."""
        low, high = torch.tensor(self.lower[:2]), torch.tensor(self.upper[:2])
        return low + (high - low) * part

    def yaw(self, place: Tensor) -> Tensor:
        """(m,) rad, how a gripper is turned about the vertical when it is at ``place`` (m, 3)."""
        if self.shoulder is None:
            return torch.zeros(len(place))
        return torch.atan2(place[:, 1] - self.shoulder[1], place[:, 0] - self.shoulder[0])

    def outside(self, place: Tensor) -> Tensor:
        """(m,) whether places (m, 3) m are beyond the box, on its sides or below."""
        out = place[:, 2] < -0.01
        for k in range(2):
            out = out | (place[:, k] < self.lower[k] - BEYOND) | (place[:, k] > self.upper[k] + BEYOND)
        return out

    def closed_on(self, half: Tensor) -> Tensor:
        """(m,) the gripper's position when its pads touch a cube of half edge ``half`` (m,) m."""
        assert self.closed is not None, "an arm with a gripper"
        return self.closed[0] + self.closed[1] * half


def workspace(card: ArmCard) -> Workspace:
    """An arm's. CardError where it can't reach all of its box with its tool pointing down."""
    lower, upper = card.workspace
    random = np.random.default_rng(0)
    box, turned = np.array([lower, upper]), card.turned
    wanted = box[0] + random.uniform(size=(POSES, 3)) * (box[1] - box[0])
    wanted[:LOW, 2] = box[0, 2] + random.uniform(size=LOW) * GRASPING
    corners = np.array(np.meshgrid(*zip(lower, upper, strict=True))).reshape(3, -1).T
    wanted = np.concatenate([corners, wanted[np.argsort(wanted[:, 2])]])
    stops = [j.lower for j in card.joints], [j.upper for j in card.joints]
    angles, missed = inverse(card.chain, wanted, np.array(card.home), turned, *stops)
    if missed.max() > MISSED:
        where = wanted[missed.argmax()].round(3)
        raise CardError(
            f"robot '{card.name}': its tool stays {1000 * missed.max():.3g} mm from {where.tolist()} m with its "
            f"gripper turned as at home; expected a workspace that is all in its reach, to {1000 * MISSED:g} mm"
        )
    angles, wanted = angles[len(corners) :], wanted[len(corners) :]
    shoulder = None if turned else _shoulder(card)
    high = lower[2] + HIGH * (upper[2] - lower[2])
    return Workspace(
        lower, upper, torch.from_numpy(angles).float(), torch.from_numpy(wanted).float(),
        int((wanted[:, 2] < high).sum()), int((wanted[:, 2] < lower[2] + GRASPING).sum()), shoulder,
        _closed(card) if card.fingers else None,
    )  # fmt: skip


def _shoulder(card: ArmCard) -> tuple[float, float] | None:
    """m, where the axis of the first hinge is at home."""
    first = next((k for k, joint in enumerate(card.joints) if not joint.slides), None)
    if first is None:
        return None
    x, y, _ = card.chain.pose([float(angle) for angle in card.home]).origins[first]
    return float(x), float(y)


def _closed(card: ArmCard) -> tuple[float, float]:
    """The straight line through the gripper's positions on cubes around the card's, found by the pads' distance."""
    model = assemble(card.mechanism, Physics())
    data, gripper, mechanism = mujoco.MjData(model), card.gripper, card.mechanism
    pads = [model.geom(name).id for name in gripper.pads]
    at, indices = model.joint(gripper.joint.name).qposadr[0], find_indices(model, mechanism)

    def gap(position: float) -> float:
        data.qpos[at] = position
        follow(data.qpos[None], model, indices)
        mujoco.mj_kinematics(model, data)
        return mujoco.mj_geomDistance(model, data, *pads, 1.0, None)

    edges = (0.85 * card.grasp.size, 1.1 * card.grasp.size)
    limits = gripper.joint.lower, gripper.joint.upper
    if abs(gap(limits[0]) - gap(limits[1])) < 1e-3:
        raise CardError(
            f"robot '{card.name}': its pads stay {gap(limits[0]):.4f} m apart while '{gripper.joint.name}' moves "
            f"from {limits[0]:g} to {limits[1]:g}; expected to move them apart. Of a follower that moves the other "
            "way gripper.followers has the ratio, { NAME = -1.0 }"
        )
    if gap(limits[0]) > gap(limits[1]):
        raise CardError(
            f"robot '{card.name}': its gripper is closed at {limits[1]:g} and open at {limits[0]:g}, the greatest and "
            "the least of gripper.range; expected one that opens as its joint's position grows. Turn the <axis> of its "
            "joints round in the model, and give limits and range the other sign"
        )
    for edge in (*edges, *(card.grasp.size * part for part in card.grasp.edges)):
        if not gap(limits[0]) < edge < gap(limits[1]):
            raise CardError(
                f"robot '{card.name}': its pads are {gap(limits[0]):.4f} m apart when closed, {gap(limits[1]):.4f} m "
                f"when open; expected room for a cube of {edge:.4f} m"
            )
    from scipy.optimize import brentq  # takes half a second to load

    first, second = (brentq(lambda position, edge=edge: gap(position) - edge, *limits) for edge in edges)
    slope = 2.0 * (second - first) / (edges[1] - edges[0])
    return float(first - slope * 0.5 * edges[0]), float(slope)
