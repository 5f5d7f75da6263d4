"""How a robot on any number of legs is built: its legs, its other joints, and which of them are mirror images.

All is found in the model as the robot stands. A leg is the chain of joints between the base and a foot, however many
these are; joints of waist, arms or a tail move no foot. A robot is taken to be alike on both sides of the base's plane
of x (forward) and z (up): each joint has a mirror image, which is itself in that plane. Where a joint's axis is the
mirror image of its partner's, both turn by the same angle in mirrored poses, otherwise by opposite ones. The mirror
turns an axis around, as it does a screw: (x, y, z) becomes (-x, y, -z).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.indices import ModelIndices, find_indices, standing_height
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import LeggedCard

OFF = 0.02
"""m, by which a joint or foot may be off the mirror image of its partner; models are rounded."""
ALIGNED = 0.99  # cosine between an axis and the mirror image of its partner's
ASKEW = 1e-6  # rad, by which standing angles may differ from the mirror image's


class Limbs(NamedTuple):
    """Of a robot that stands. Joints are numbers in the card's order, feet likewise."""

    legs: tuple[tuple[int, ...], ...]
    """For each foot, the joints that move it, from the base on."""
    others: tuple[int, ...]
    """The joints that move no foot: waist, arms."""
    opposite: tuple[int, ...]
    """(J,) the mirror image of each joint."""
    signs: tuple[float, ...]
    """(J,) 1 where the mirror image turns by the same angle, -1 where by the opposite one."""
    opposite_foot: tuple[int, ...]
    """(F,) the mirror image of each foot."""
    feet: tuple[tuple[float, float, float], ...]
    """(F,) m, places of the feet in the base frame."""
    height: float
    """m, of the base above level ground."""
    mass: float
    """kg, of the robot."""


def find_limbs(card: LeggedCard) -> Limbs:
    """The limbs of the robot of ``card``. CardError where a foot hangs on no joint, or the sides are not alike."""
    model, data, indices = standing(card)
    joints = [model.joint(name).id for name in card.joint_names]
    legs = tuple(_chain(model, card, joints, foot) for foot in card.feet)
    feet = np.array([foot_pose(model, data, foot)[0] for foot in card.feet])
    opposite, signs = _mirrored_joints(card, data.xanchor[joints], data.xaxis[joints])
    return Limbs(
        legs=legs,
        others=tuple(sorted(set(range(len(joints))) - {joint for leg in legs for joint in leg})),
        opposite=opposite,
        signs=signs,
        opposite_foot=tuple(_nearest(card, f"foot '{foot}'", feet, i) for i, foot in enumerate(card.feet)),
        feet=tuple(map(tuple, feet.tolist())),
        height=standing_height(model, card.mechanism),
        mass=float(model.body_subtreemass[indices.base]),
    )


def leg_joints(card: LeggedCard) -> tuple[tuple[int, ...], ...]:
    """For each foot, the joints that move it, from the base on: places in the card's order. CardError for none."""
    model = assemble(card.mechanism, Physics())
    joints = [model.joint(name).id for name in card.joint_names]
    return tuple(_chain(model, card, joints, foot) for foot in card.feet)


def standing(card: LeggedCard) -> tuple[mujoco.MjModel, Any, ModelIndices]:
    """Its model, with the base at the world's origin and joints as the robot stands, and where the model has them."""
    model = assemble(card.mechanism, Physics())
    indices, data = find_indices(model, card.mechanism), mujoco.MjData(model)
    data.qpos[indices.free_position :][:7] = [0, 0, 0, 1, 0, 0, 0]
    data.qpos[indices.position] = [joint.stand for joint in card.joints]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return model, data, indices


def foot_pose(model: mujoco.MjModel, data: Any, foot: str) -> tuple[np.ndarray, np.ndarray]:
    """Where a foot is, (3,) m and (3, 3), in the world: a shape, or a site at its sole."""
    shape = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot)
    if shape >= 0:
        return data.geom_xpos[shape].copy(), data.geom_xmat[shape].reshape(3, 3).copy()
    site = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, foot)
    return data.site_xpos[site].copy(), data.site_xmat[site].reshape(3, 3).copy()


def foot_body(model: mujoco.MjModel, foot: str) -> int:
    """The body that a foot is a part of."""
    shape = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot)
    return int(model.geom_bodyid[shape] if shape >= 0 else model.site(foot).bodyid[0])


def _chain(model: mujoco.MjModel, card: LeggedCard, joints: list[int], foot: str) -> tuple[int, ...]:
    """The joints between base and foot."""
    body, base = foot_body(model, foot), model.body(card.base).id
    found: list[int] = []
    while body not in (0, base):
        first = int(model.body_jntadr[body])
        found = [*range(first, first + int(model.body_jntnum[body])), *found]
        body = int(model.body_parentid[body])
    if not found:
        raise CardError(f"{card.model}: foot '{foot}' hangs on no joint; expected the end of a leg that motors drive")
    return tuple(joints.index(joint) for joint in found)


def _mirrored_joints(
    card: LeggedCard, anchors: np.ndarray, axes: np.ndarray
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """For each joint its mirror image, and whether that turns the same way."""
    opposite, signs = [], []
    turned = axes * [-1.0, 1.0, -1.0]
    along = turned @ axes.T
    distance = np.linalg.norm((anchors * [1.0, -1.0, 1.0])[:, None] - anchors[None], axis=-1)
    for i, joint in enumerate(card.joints):
        fits = (distance[i] < OFF) & (abs(along[i]) > ALIGNED)
        if not fits.any():
            raise CardError(
                f"{card.model}: joint '{joint.name}' at {anchors[i].round(3).tolist()} in the base frame has no mirror "
                f"image on the other side; expected a robot that is alike on both sides as it stands"
            )
        k = int(np.where(fits, distance[i], np.inf).argmin())
        sign = float(np.sign(along[i, k]))
        if abs(card.joints[k].stand - sign * joint.stand) > ASKEW:
            raise CardError(
                f"{card.model}: joints '{joint.name}' and '{card.joints[k].name}' are mirror images, but stand at "
                f"{joint.stand} and {card.joints[k].stand} rad; expected {sign * joint.stand} for the latter"
            )
        opposite.append(k)
        signs.append(sign)
    return tuple(opposite), tuple(signs)


def _nearest(card: LeggedCard, what: str, places: np.ndarray, i: int) -> int:
    """The place (m) that is the mirror image of number i."""
    distance = np.linalg.norm(places * [1.0, -1.0, 1.0] - places[i], axis=-1)
    if distance.min() > OFF:
        raise CardError(f"{card.model}: {what} at {places[i].round(3).tolist()} has no mirror image on the other side")
    return int(distance.argmin())
