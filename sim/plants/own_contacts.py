"""Which bodies of a robot can never really touch, though their shapes in the model overlap.

Convex hulls of neighbouring links overlap at their joint, and those of a gripper's linkage everywhere. MuJoCo leaves
out bodies next to each other, except where one is fixed to the world, as an arm's base is. MoveIt's Setup Assistant
leaves out those too ("adjacent"), and whatever touches in the robot's default pose ("default").
"""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.plants.linkages import close_loops
from robo_rl.sim.robots.mechanism import Mechanism

Pair = tuple[int, int]
"""Numbers of two bodies, the lower one first."""


def overlapping(model: mujoco.MjModel, mechanism: Mechanism) -> set[Pair]:
    """Bodies of the robot that touch at home, at whichever position of its coupled joints, and those next to its base.

    Bodies that bear contact points, such as a gripper's pads, go on touching each other.
    """
    own = _bodies(model, mechanism)
    bears = {int(model.geom_bodyid[model.geom(name).id]) for name in mechanism.points if name in _shapes(model)}
    data, found = mujoco.MjData(model), _next_to_base(model, own)
    for qpos in _poses(model, mechanism):
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        bodies = np.sort(model.geom_bodyid[data.contact.geom], axis=1).tolist()
        found |= {(a, b) for a, b in bodies if a in own and b in own and not {a, b} <= bears}
    return found


def _poses(model: mujoco.MjModel, mechanism: Mechanism) -> list[np.ndarray]:
    """Home, with joints that others follow at both ends and in the middle."""
    joints = {joint.name: joint for joint in mechanism.joints}
    at_home = {name: joint.home for name, joint in joints.items()}
    poses = [_pose(model, mechanism, at_home)]
    for coupling in mechanism.couplings:
        leader = joints[coupling.leader]
        if np.isfinite([leader.lower, leader.upper]).all():
            places = np.linspace(leader.lower, leader.upper, 3)
            poses += [_pose(model, mechanism, {**at_home, leader.name: float(place)}) for place in places]
    return poses


def _pose(model: mujoco.MjModel, mechanism: Mechanism, angles: dict[str, float]) -> np.ndarray:
    """(nq,) with joints at ``angles``, and followers where their leaders have them."""
    qpos, at = model.qpos0.copy(), {name: model.jnt_qposadr[model.joint(name).id] for name in angles}
    for name, angle in angles.items():
        qpos[at[name]] = angle
    for coupling in mechanism.couplings:
        moved = qpos[at[coupling.leader]] - model.qpos0[at[coupling.leader]]
        for follower, ratio in coupling.followers:
            mine = model.jnt_qposadr[model.joint(follower).id]
            qpos[mine] = model.qpos0[mine] + ratio * moved
    close_loops(model, mechanism, qpos)
    return qpos


def _bodies(model: mujoco.MjModel, mechanism: Mechanism) -> set[int]:
    """The robot's: its base and all below it."""
    own = {model.body(mechanism.base).id}
    for body in range(1, model.nbody):  # parents come first
        if model.body_parentid[body] in own:
            own.add(body)
    return own


def _shapes(model: mujoco.MjModel) -> set[str]:
    return {model.geom(i).name for i in range(model.ngeom)}


def _next_to_base(model: mujoco.MjModel, own: set[int]) -> set[Pair]:
    """Pairs of a body of a base that does not move, and one that a joint connects with it."""
    still = {body for body in own if model.body_weldid[body] == 0}
    moved = {body for body in own - still if model.body_parentid[model.body_weldid[body]] in still}
    return {(min(a, b), max(a, b)) for a in still for b in moved}
