"""Joints of a model that don't move: a torso's lift, a head, another arm. They leave the model, their bodies stay."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import Mechanism


def hold_joints(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """Fix each joint of ``mechanism.held`` at its position (rad or m). CardError where it is driven."""
    driven = {*mechanism.joint_names, *(name for c in mechanism.couplings for name, _ in c.followers)}
    for name, position in mechanism.held:
        joint = spec.joint(name)
        where = f"{mechanism.model}: held joint '{name}'"
        if name in driven:
            raise CardError(f"{where} is driven too; expected it in held, or among joints and the gripper's")
        if joint.type not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            raise CardError(f"{where} is of type {joint.type.name[6:].lower()}; expected a hinge or a slide")
        if joint.parent.joints[0].name != name:
            raise CardError(
                f"{where} moves after others of body '{joint.parent.name}'; expected these in held before it"
            )
        _require_within(joint, position, where)
        _move(spec, joint, position)
        for equality in spec.equalities:
            if equality.type == mujoco.mjtEq.mjEQ_JOINT and name in (equality.name1, equality.name2):
                spec.delete(equality)
        spec.delete(joint)


def _require_within(joint: mujoco.MjsJoint, position: float, where: str) -> None:
    """CardError where it can't be held there for its stops."""
    low, high = (float(x) for x in joint.range)
    turns = joint.type == mujoco.mjtJoint.mjJNT_HINGE
    if low >= high or joint.limited == mujoco.mjtLimited.mjLIMITED_FALSE:
        return
    if turns and joint.compiler.degree:
        low, high = math.radians(low), math.radians(high)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    if not low - slack <= position <= high + slack:
        unit = "rad" if turns else "m"
        raise CardError(f"{where} is at {position:g} {unit}; expected a place within its stops, {low:g} to {high:g}")


def _move(spec: mujoco.MjSpec, joint: mujoco.MjsJoint, position: float) -> None:
    """Put the joint's body where the joint at ``position`` has it."""
    body, axis = joint.parent, np.array(joint.axis) / np.linalg.norm(joint.axis)
    if body.alt.type != mujoco.mjtOrientation.mjORIENTATION_QUAT:
        body.quat = spec.resolve_orientation(body.compiler.degree, body.compiler.eulerseq, body.alt)
        body.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    turn, way, quat = np.zeros(4), np.zeros(3), np.array(body.quat) / np.linalg.norm(body.quat)
    if joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
        mujoco.mju_rotVecQuat(way, axis * (position - float(joint.ref)), quat)
        body.pos = np.array(body.pos) + way
        return
    reference = math.radians(joint.ref) if joint.compiler.degree else float(joint.ref)
    mujoco.mju_axisAngle2Quat(turn, axis, position - reference)
    turned, moved = np.zeros(3), np.zeros(4)
    mujoco.mju_rotVecQuat(turned, np.array(joint.pos), turn)
    mujoco.mju_rotVecQuat(way, np.array(joint.pos) - turned, quat)
    mujoco.mju_mulQuat(moved, quat, turn)
    body.pos, body.quat = np.array(body.pos) + way, moved
