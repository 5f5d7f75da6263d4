"""The base of a robot: the body that carries all others, free at the top of the model, or at the world's origin.

Makers' files have an empty link above the trunk (ROS wants a root link without inertia), or let an arm stand on a
pedestal, or turned. The card's base is what counts: a free one is moved to the top of the tree, and the world of a
fixed one is moved so that the base is at its origin, not turned.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import Mechanism

ALIGNED = 1e-9
"""m and sine of half an angle, by which a base may be off the origin."""
UPRIGHT = 1e-6
"""Of the base's z axis, in the world's x and y."""


def free_base(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """Let the base move freely. CardError where it hangs on a body that is more than an empty frame."""
    base = spec.body(mechanism.base)
    above = _above(spec, base)
    for body in above:
        own = [part for part in body.joints if part.type != mujoco.mjtJoint.mjJNT_FREE]
        if own or _weighs(body) or body.geoms or body.sites or len(body.bodies) > 1:
            raise CardError(
                f"{mechanism.model}: base '{mechanism.base}' hangs on the body '{body.name}', which has a mass, a "
                f'shape, a joint or other bodies on it; expected the uppermost one: base = "{above[-1].name}"'
            )
    for body in above:
        for exclusion in [x for x in spec.excludes if body.name in (x.bodyname1, x.bodyname2)]:
            spec.delete(exclusion)
        for joint in list(body.joints):
            spec.delete(joint)
    for body in reversed(above):
        body.to_frame()
    base = spec.body(mechanism.base)
    for joint in list(base.joints):
        if joint.type != mujoco.mjtJoint.mjJNT_FREE:
            kind = joint.type.name.partition("_")[2].lower()
            raise CardError(
                f"{mechanism.model}: joint '{joint.name}' of type {kind} moves the base '{mechanism.base}', which is "
                "free; expected none: take it out of the model, or make it fixed or floating in a URDF"
            )
        spec.delete(joint)  # with its damping, friction and inertia
    base.add_freejoint()


def fix_base(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """Put the base at the world's origin, where it stays, and all else of the file around it."""
    base = spec.body(mechanism.base)
    for body in (base, *_above(spec, base)):
        for joint in [joint for joint in body.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]:
            spec.delete(joint)
    place, turn = _pose(spec, mechanism)
    if np.abs(place).max() < ALIGNED and np.abs(turn[1:]).max() < ALIGNED:
        return
    up = np.zeros(3)
    mujoco.mju_rotVecQuat(up, np.array([0.0, 0.0, 1.0]), turn)
    if np.abs(up[:2]).max() > UPRIGHT or up[2] < 0:
        raise CardError(
            f"{mechanism.model}: base '{mechanism.base}' has its z axis along {up.round(3).tolist()} of the world; "
            "expected one that stands upright, z up"
        )
    back, way = np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(back, turn)
    mujoco.mju_rotVecQuat(way, -place, back)
    world = spec.worldbody
    parts = [*world.bodies, *world.geoms, *world.sites, *world.cameras, *world.lights, *world.frames]
    frame = world.add_frame(pos=way, quat=back)
    for part in parts:
        if part.frame is None:
            part.set_frame(frame)


def _above(spec: mujoco.MjSpec, body: Any) -> list[Any]:
    """The bodies that a body hangs on, without the world."""
    found = []
    while body.parent != spec.worldbody:
        body = body.parent
        found.append(body)
    return found


def _weighs(body: Any) -> bool:
    return bool(body.explicitinertial and body.mass > 0)


def _pose(spec: mujoco.MjSpec, mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Of the base in the world of the file: m, and a quaternion w, x, y, z."""
    above = [spec.body(mechanism.base), *_above(spec, spec.body(mechanism.base))]
    plain = mujoco.mjtOrientation.mjORIENTATION_QUAT
    if all(not b.pos.any() and not b.quat[1:].any() and b.alt.type == plain and b.frame is None for b in above):
        return np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    model = spec.copy().compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    number = model.body(mechanism.base).id
    return data.xpos[number].copy(), data.xquat[number].copy()
