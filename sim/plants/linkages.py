"""Joints that no motor moves, and where a linkage has them: closed loops (<connect>, <weld>) and equalities of joints.

A gripper's linkage follows one motor, so that its joints are functions of one position. They are found by Newton's
method on the constraints of MuJoCo's model, over the whole way of the motor, and then read from tables; so robots can
be put into any pose by the thousand. Joints of loops with several motors are found once, for the robot at home.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import mujoco
import numpy as np

from robo_rl.contract.gravity import GRAVITY
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import Mechanism

POINTS = 129
"""Of a table."""
STEP = 0.2
"""rad or m, of one iteration at most."""
ITERATIONS = 60
CLOSED, OPEN = 1e-10, 1e-3
"""m and rad: a loop is solved below the one, and does not close above the other."""
SAG, SLIDE = 1.0, 0.1
"""rad and m by which what hangs on a joint may sag on a spring that holds it."""
LEVER = 1e-3
"""m, at least, from a hinge to the middle of what hangs on it."""
LOOPS = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)


class Curve(NamedTuple):
    """Where a joint is for a position of the one that moves it."""

    joint: int
    leader: int
    lower: float
    """Of the leader's way, rad or m; its points are evenly spaced."""
    upper: float
    values: np.ndarray
    """(POINTS,) rad or m."""

    def at(self, position: Any) -> Any:
        """(m,) for positions (m,) of the leader, of numpy or torch."""
        if isinstance(position, np.ndarray):
            return np.interp(position, np.linspace(self.lower, self.upper, len(self.values)), self.values)
        import torch

        values = torch.as_tensor(self.values, dtype=position.dtype, device=position.device)
        along = (position - self.lower) / (self.upper - self.lower) * (len(self.values) - 1)
        first = along.floor().clamp(0, len(self.values) - 2)
        part, index = (along - first).clamp(0.0, 1.0), first.long()
        return values[index] + part * (values[index + 1] - values[index])

    def slope(self, position: Any) -> Any:
        """(m,) change of the joint over that of the leader."""
        step = (self.upper - self.lower) / (len(self.values) - 1)
        return (self.at(position + 0.5 * step) - self.at(position - 0.5 * step)) / step


def has_linkages(model: mujoco.MjModel, mechanism: Mechanism) -> bool:
    """Whether anything but the mechanism's couplings moves joints that no motor does."""
    return bool(_passive(model, mechanism)) and model.neq > 0


def has_loops(model: mujoco.MjModel) -> bool:
    """Whether bodies are held to each other besides by joints."""
    return any(mujoco.mjtEq(kind) in LOOPS for kind in model.eq_type)


def linkage_curves(model: mujoco.MjModel, mechanism: Mechanism) -> tuple[Curve, ...]:
    """Of all joints that one motor moves through a linkage. CardError where a loop can't close on its way."""
    if not has_linkages(model, mechanism):
        return ()
    leaders = {name: c.leader for c in mechanism.couplings for name, _ in c.followers}
    stops = {joint.name: (joint.lower, joint.upper) for joint in mechanism.joints}
    passive, found = _passive(model, mechanism), []
    for group in _groups(model):
        own = [joint for joint in group if joint in passive]
        names = {model.joint(joint).name for joint in group if joint not in passive}
        movers = sorted({leaders.get(name, name) for name in names})
        if own and len(movers) == 1 and np.isfinite(stops[movers[0]]).all():
            found += _curves(model, mechanism, movers[0], stops[movers[0]], own)
    return tuple(found)


def close_loops(model: mujoco.MjModel, mechanism: Mechanism, qpos: np.ndarray, joints: list[int] | None = None) -> None:
    """Move what no motor moves, or these of it, in ``qpos`` (nq,), so that its loops are closed. CardError if not."""
    joints = _passive(model, mechanism) if joints is None else joints
    if not joints or not model.neq:
        return
    alone = copy.copy(model)
    alone.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS"):
        alone.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    data, dofs, places = mujoco.MjData(alone), alone.jnt_dofadr[joints], alone.jnt_qposadr[joints]
    off = 0.0
    for _ in range(ITERATIONS):
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(alone, data)
        jacobian, error = data.efc_J.reshape(-1, alone.nv)[: data.ne, dofs], data.efc_pos[: data.ne]
        off = float(np.abs(error[np.abs(jacobian).any(1)]).max(initial=0.0))
        if off < CLOSED:
            return
        step = -np.linalg.lstsq(jacobian, error, rcond=1e-9)[0]
        qpos[places] += step * min(1.0, STEP / np.abs(step).max(initial=1e-12))
    if off > OPEN:
        raise CardError(
            f"{mechanism.model}: the linkage of the joints {[model.joint(joint).name for joint in joints]} stays open "
            f"by {off:.2g} m or rad where the card's joints are at home, or on the gripper's way; expected angles, and "
            "a range of the gripper, with which it closes"
        )


def _curves(
    model: mujoco.MjModel, mechanism: Mechanism, leader: str, stops: tuple[float, float], joints: list[int]
) -> list[Curve]:
    number = model.joint(leader).id
    at = model.jnt_qposadr[number]
    coupled = [c for c in mechanism.couplings if c.leader == leader]
    zero = min(max(float(model.qpos0[at]), stops[0]), stops[1])
    positions = np.linspace(*stops, POINTS)
    first = int(np.abs(positions - zero).argmin())  # from the pose of the file, both ways
    values = np.zeros((POINTS, len(joints)))
    for way in (range(first, POINTS), range(first, -1, -1)):
        qpos = model.qpos0.copy()
        for k in way:
            qpos[at] = positions[k]
            for coupling in coupled:
                for name, ratio in coupling.followers:
                    mine = model.jnt_qposadr[model.joint(name).id]
                    qpos[mine] = model.qpos0[mine] + ratio * (positions[k] - model.qpos0[at])
            close_loops(model, mechanism, qpos, joints)
            values[k] = qpos[model.jnt_qposadr[joints]]
    return [Curve(joint, number, stops[0], stops[1], values[:, i].copy()) for i, joint in enumerate(joints)]


def _passive(model: mujoco.MjModel, mechanism: Mechanism) -> list[int]:
    """Hinges and slides that the mechanism does not name."""
    named = {*mechanism.joint_names, *(name for c in mechanism.couplings for name, _ in c.followers)}
    simple = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    kinds = [mujoco.mjtJoint(kind) for kind in model.jnt_type]
    return [k for k, kind in enumerate(kinds) if kind in simple and model.joint(k).name not in named]


def moved_by_loops(model: mujoco.MjModel) -> set[int]:
    """Joints in closed loops, and in equalities with others."""
    return set().union(*_groups(model))


def _groups(model: mujoco.MjModel) -> list[set[int]]:
    """Joints that equalities let move only together."""
    found: list[set[int]] = []
    for k in range(model.neq):
        kind, first, second = mujoco.mjtEq(model.eq_type[k]), int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        if kind == mujoco.mjtEq.mjEQ_JOINT:
            joints = {first, second} - {-1}
        elif kind in LOOPS:
            site = mujoco.mjtObj(model.eq_objtype[k]) == mujoco.mjtObj.mjOBJ_SITE
            bodies = [int(model.site_bodyid[x]) if site else x for x in (first, second)]
            joints = _chain(model, bodies[0]) ^ _chain(model, bodies[1])
        else:
            continue
        common = [group for group in found if group & joints]
        found = [group for group in found if not group & joints] + [joints.union(*common)]
    return found


def _chain(model: mujoco.MjModel, body: int) -> set[int]:
    """Joints between a body and the world."""
    found: set[int] = set()
    while body > 0:
        first = int(model.body_jntadr[body])
        found |= set(range(first, first + int(model.body_jntnum[body])))
        body = int(model.body_parentid[body])
    return found


def _weak_springs(model: mujoco.MjModel) -> np.ndarray:
    """(njnt,) whether no spring holds a joint: what hangs on it would turn by more than ``SAG`` or slide by more than
    ``SLIDE`` where it lies on its side.
    """
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)
    bodies = model.jnt_bodyid
    weight = model.body_subtreemass[bodies] * GRAVITY
    lever = np.linalg.norm(data.subtree_com[bodies] - data.xanchor, axis=1)
    slides = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
    least = np.where(slides, weight / SLIDE, weight * np.maximum(lever, LEVER) / SAG)
    return np.asarray(model.jnt_stiffness < least)


def loose_joints(model: mujoco.MjModel, mechanism: Mechanism, below: set[int] | None = None) -> list[str]:
    """Joints that have neither a drive nor a spring that holds them, and that no linkage moves.

    ``below``: of these bodies alone.
    """
    held, weak = moved_by_loops(model), _weak_springs(model)
    balls = [k for k in range(model.njnt) if mujoco.mjtJoint(model.jnt_type[k]) == mujoco.mjtJoint.mjJNT_BALL]
    return [
        model.joint(joint).name
        for joint in sorted([*_passive(model, mechanism), *balls])
        if joint not in held and weak[joint] and (below is None or int(model.jnt_bodyid[joint]) in below)
    ]
