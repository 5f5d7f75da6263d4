"""The chain of joints from an arm's base to its tool, read off the arm's model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from robo_rl.controllers.arm.chain import Chain, Link
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.linkages import loose_joints
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import require

if TYPE_CHECKING:
    from robo_rl.sim.robots.arm import ArmCard


def read_chain(card: ArmCard) -> Chain:
    """At joint positions of zero: each link's frame is turned so that its joint's axis is z. Lengths in m, x, y, z, w.

    CardError if the card's joints are not those from base to tool, in order.
    """
    from scipy.spatial.transform import Rotation  # a tenth of what the list of tasks takes to import

    model = assemble(card.mechanism, Physics())
    sites = [model.site(i).name for i in range(model.nsite)]
    require(card.tool in sites, str(card.model), "tool", card.tool, "a site of the model")
    base, site = model.body(card.base).id, model.site(card.tool).id
    above: list[int] = []
    body = int(model.site_bodyid[site])
    while body != base:
        require(body > 0, str(card.model), "tool", card.tool, f"a site of a body that hangs on the base '{card.base}'")
        joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
        above = [int(joint) for joint in joints] + above
        body = int(model.body_parentid[body])
    names = tuple(model.joint(joint).name for joint in above)
    expected = f"those from base to tool, {names}, or in the table [held] those that stay where they are"
    branches = {name for name in card.joint_names if name not in names}
    if branches:
        from robo_rl.sim.robots.arm import ONE_ARM

        expected = f"{expected}. {ONE_ARM}"
    require(names == card.joint_names, str(card.model), "joints", card.joint_names, expected)
    _require_still_base(model, card, base)
    _require_all_moved(model, card, base, hand=int(model.jnt_bodyid[above[-1]]))
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    data.qpos[model.jnt_qposadr[above]] = 0.0
    mujoco.mj_kinematics(model, data)
    frames = [(data.xanchor[joint], _facing(data.xaxis[joint])) for joint in above]
    frames.append((data.site_xpos[site], Rotation.from_matrix(data.site_xmat[site].reshape(3, 3))))
    links, place, turn = [], np.zeros(3), Rotation.identity()
    for (point, facing), slides in zip(frames, (*(joint.slides for joint in card.joints), False), strict=True):
        offset, relative = turn.inv().apply(point - place), (turn.inv() * facing).as_quat()
        links.append(Link(tuple(map(float, offset.round(12))), tuple(map(float, relative.round(12))), slides))  # type: ignore[arg-type]
        place, turn = point, facing
    return Chain(tuple(links[:-1]), links[-1])


def _require_still_base(model: mujoco.MjModel, card: ArmCard, base: int) -> None:
    """CardError where a joint of the file moves the base, and nobody says how."""
    moving, body = [], base
    while body > 0:
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        moving += [name for k in range(first, first + count) if (name := model.joint(k).name) not in card.carriers]
        body = int(model.body_parentid[body])
    expected = "none: make them fixed in the model, or name them in the table [held] with the position where they stay"
    require(not moving, str(card.model), f"what moves the base '{card.base}'", moving, expected)


def _require_all_moved(model: mujoco.MjModel, card: ArmCard, base: int, hand: int) -> None:
    """CardError where a joint that hangs on the base has neither a drive nor a spring, and no equality moves it.

    Those of fingers on the ``hand`` may hang loose where the card uses no gripper.
    """
    below = {base}
    for body in range(1, model.nbody):  # parents come first
        parent = model.body_parentid[body]
        if parent in below and (parent != hand or card.fingers is not None):
            below.add(body)
    loose = loose_joints(model, card.mechanism, below - {base})
    expected = "each in joints, as the gripper's, or in the table [held] with the position where it stays"
    require(not loose, str(card.model), "what no motor moves", loose, expected)


def _facing(axis: Any) -> Any:
    """The rotation that turns z by the smallest angle to ``axis`` (3,)."""
    from scipy.spatial.transform import Rotation

    about = np.cross([0.0, 0.0, 1.0], axis)
    sine, cosine = float(np.linalg.norm(about)), float(axis[2])
    if sine < 1e-12:
        return Rotation.identity() if cosine > 0 else Rotation.from_rotvec([math.pi, 0.0, 0.0])
    return Rotation.from_rotvec(about / sine * math.atan2(sine, cosine))
