"""What drives a robot's joints and tools, as actuators of MuJoCo.

A joint's drive computes its torque k (target − q) − d q̇, or d (target − q̇), or what it is told, at every physics
step, as a real robot's motor does, and implicitly in the velocity. The torque is limited to the drive's effort and,
of a DC motor, to the straight line from the effort at standstill to nothing at its greatest speed, on which it moves
at full voltage (MuJoCo's ``dcmotor``). Targets may reach the drives late.

Impedances are six forces and torques on the site of a tool. The damping is the actuator's own, implicit in the
velocity; the spring's force, which has to be cut, comes from the plant at every physics step
(``robo_rl.sim.plants.impedance``). MuJoCo's orientation actuator would do for the rotation too, but Warp doesn't
have it.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.plants.physics import LONGEST_DELAY, Physics
from robo_rl.sim.plants.replaced import set_stops
from robo_rl.sim.robots.mechanism import Coupling, DrivenJoint, Impedance, JointGroup, Mechanism

INPUTS = {
    "position": mujoco.mjtCtrlInput.mjINPUT_POS,
    "velocity": mujoco.mjtCtrlInput.mjINPUT_VEL,
    "torque": mujoco.mjtCtrlInput.mjINPUT_FF,
}


def add_drives(spec: mujoco.MjSpec, mechanism: Mechanism, physics: Physics) -> None:
    """Stops, friction and drives of all joints, in the robot's order, then the impedances."""
    stops = {joint.name: (joint.lower, joint.upper) for joint in mechanism.joints}
    tendons = {c.leader: _couple(spec, c, stops[c.leader]) for c in mechanism.couplings}
    for group in mechanism.groups:
        for joint in group.joints:
            driven = spec.joint(joint.name)
            set_stops(driven, joint.lower, joint.upper)
            driven.frictionloss = joint.friction
            if group.law == "none":
                driven.armature = joint.armature
            else:
                _drive(spec, joint, group, tendons.get(joint.name), physics)
    for impedance in mechanism.impedances:
        _pull(spec, impedance, impedance.relative_to or mechanism.base)
    if mechanism.weightless:
        for body in spec.bodies:
            body.gravcomp = 1.0


def _drive(spec: mujoco.MjSpec, joint: DrivenJoint, group: JointGroup, tendon: str | None, physics: Physics) -> None:
    transmission = mujoco.mjtTrn.mjTRN_TENDON if tendon else mujoco.mjtTrn.mjTRN_JOINT
    actuator = spec.add_actuator(name=joint.name, target=tendon or joint.name, trntype=transmission)
    stiffness = joint.stiffness if group.law == "position" else 0.0
    damping = joint.damping if group.law != "torque" else 0.0
    line: dict[str, Any] = {"motorconst": [1, 0], "resistance": 1}
    if group.dc_motor:
        line = {
            "motorconst": [0, 0],
            "resistance": 0,
            "nominal": [joint.velocity, joint.effort, joint.velocity],  # V, N m, rad/s: a constant of 1 N m/A
        }
    actuator.set_to_dcmotor(
        **line,
        saturation=[joint.effort if math.isfinite(joint.effort) else 0.0, 0, 0],
        controller=[stiffness, 0, damping, 0, 0, joint.velocity if group.dc_motor else 0.0],
        ctrlspec=int(INPUTS[group.law]),
    )
    actuator.armature = joint.armature
    actuator.nsample = round(LONGEST_DELAY / physics.timestep) + 1
    actuator.delay = physics.timestep  # keeps the samples; plants write the delay that they want


def _couple(spec: mujoco.MjSpec, coupling: Coupling, stops: tuple[float, float]) -> str:
    """Hold followers to their leader; returns the tendon by which a drive moves them all.

    ``stops``, rad or m, are the leader's: a follower that has some of its own in the file goes as far. The tendon's
    length is the leader's position: the coefficients are ratios over the sum of their squares.
    """
    ratios = {coupling.leader: 1.0, **dict(coupling.followers)}
    total = sum(ratio * ratio for ratio in ratios.values())
    tendon = spec.add_tendon(name=f"{coupling.leader} coupling")
    for name, ratio in ratios.items():
        tendon.wrap_joint(name, ratio / total)
    for name, ratio in coupling.followers:
        follower = spec.joint(name)
        follower.frictionloss = 0.0  # the leader's drive has all that the card tells
        if follower.limited != mujoco.mjtLimited.mjLIMITED_FALSE and np.ptp(follower.range) > 0:
            set_stops(follower, *sorted((ratio * stops[0], ratio * stops[1])))
        held = spec.add_equality(name=f"{name} coupling", type=mujoco.mjtEq.mjEQ_JOINT)
        held.objtype, held.name1, held.name2 = mujoco.mjtObj.mjOBJ_JOINT, name, coupling.leader
        held.data[:2] = [0.0, ratio]
    return tendon.name


def _pull(spec: mujoco.MjSpec, impedance: Impedance, relative_to: str) -> None:
    """Force (N) along and torque (N m) about the axes of the reference, on the tool's site."""
    reference = spec.body(relative_to).add_site(name=f"{impedance.name} reference")
    for axis in range(6):
        actuator = spec.add_actuator(
            name=f"{impedance.name} {axis}",
            trntype=mujoco.mjtTrn.mjTRN_SITE,
            target=impedance.at,
            refsite=reference.name,
            gear=[float(axis == k) for k in range(6)],
        )
        actuator.gaintype, actuator.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        actuator.gainprm[0], actuator.biasprm[2] = 1.0, -impedance.damping[axis // 3]
