"""A model file describes bodies; what the card and the task say replaces what it says of all else, or is refused.

``keep_bodies`` runs before anything is compiled, on MJCF and URDF alike, so that nothing of the file acts unseen:

    replaced   <option>, <size>, <statistic>, actuators, sensors, keyframes, gravcomp, planes of the world, where a
               fixed base stands; of the joints that the card names stops, efforts, rotor inertia, damping, friction;
               of the shapes priority, margin, gap; pairs of shapes (where the task says what touches), exclusions of
               the world
    used       bodies, joints' axes and zeros, shapes; damping, friction, springs and stops of joints that the card does
               not drive; linkages and equalities that move such joints
    refused    springs of driven joints, equalities and tendons that tie or hold them, other bodies that move freely,
               plugins, deformable bodies

docs/own-robot.md has the table for users.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import Mechanism

LOOPS = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
NEGLIGIBLE = 1e-6
"""Part of the strongest drive's effort per rad or m: less is no spring, and is left out."""
UPRIGHT = 1e-6
"""Sine of the angle by which a fixed base may lean."""


def keep_bodies(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """Leave of a model file what no card and no task says. CardError, with file, element and value, for what is
    neither used nor replaced."""
    _require_known(spec, mechanism)
    _reset_options(spec)
    for part in (*spec.actuators, *spec.sensors, *spec.keys):
        spec.delete(part)  # the mechanism says what is driven and sensed, and where home is
    for body in spec.bodies:
        body.gravcomp = 0.0
    for shape in spec.geoms:
        shape.priority, shape.margin, shape.gap, shape.adhesion = 0, 0.0, 0.0, 0.0
        shape.surfacevel = np.zeros(6)
    for shape in list(spec.worldbody.geoms) if mechanism.floor else []:
        if shape.type == mujoco.mjtGeom.mjGEOM_PLANE:
            spec.delete(shape)  # the ground is the task's
    for exclusion in list(spec.excludes):
        if spec.worldbody.name in (exclusion.bodyname1, exclusion.bodyname2):
            spec.delete(exclusion)
    _set_joints(spec, mechanism)
    _sort_equalities(spec, mechanism)
    _sort_tendons(spec, mechanism)


def set_stops(joint: Any, lower: float, upper: float) -> None:
    """Stops in rad or m, in the unit that the joint's own file is in."""
    scale = 180.0 / math.pi if joint.compiler.degree and joint.type == mujoco.mjtJoint.mjJNT_HINGE else 1.0
    joint.limited = math.isfinite(lower) or math.isfinite(upper)
    joint.range = [max(lower, -1e10) * scale, min(upper, 1e10) * scale]


def _require_known(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    model = mechanism.model
    for what, found in (("plugin", spec.plugins), ("deformable body", spec.flexes)):
        for part in found:
            raise CardError(f"{model}: it has the {what} '{part.name}'; expected rigid bodies alone")
    base = spec.body(mechanism.base)
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_FREE and base not in _tree(joint.parent):
            if joint.parent in _tree(base):
                raise CardError(
                    f"{model}: body '{joint.parent.name}' moves freely, and the base '{mechanism.base}' above it does "
                    f'not; expected the body that carries the robot: base = "{joint.parent.name}"'
                )
            raise CardError(
                f"{model}: body '{joint.parent.name}' moves freely beside the robot; expected the robot alone: objects "
                "are the task's, take it out of the model"
            )
    for body in spec.bodies:
        if body.mocap:
            body.mocap = False


def _tree(body: Any) -> list[Any]:
    return [body, *body.find_all("body")]


def _reset_options(spec: mujoco.MjSpec) -> None:
    """Gravity, solver, flags, density, memory and scale as MuJoCo has them: the task says what else they are."""
    plain = mujoco.MjSpec()
    for part in ("option", "stat"):
        ours, theirs = getattr(spec, part), getattr(plain, part)
        for name in dir(theirs):
            if not name.startswith("_"):
                setattr(ours, name, getattr(theirs, name))
    for name in ("memory", "nconmax", "njmax", "nstack"):
        setattr(spec, name, getattr(plain, name))
    spec.compiler.alignfree = False


def _set_joints(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """What the card has figures for is the card's alone, of joints that it names and of those that follow them."""
    motors = {joint.name for joint in mechanism.driven}
    followers = {name for coupling in mechanism.couplings for name, _ in coupling.followers}
    pulled = {joint.name for joint in mechanism.joints} if mechanism.impedances else set()
    strongest = max((joint.effort for joint in mechanism.joints if math.isfinite(joint.effort)), default=0.0)
    for name in (*mechanism.joint_names, *sorted(followers)):
        joint = spec.joint(name)
        joint.actfrclimited, joint.actfrcrange, joint.actgravcomp = False, [0.0, 0.0], False
        joint.margin, joint.solref_limit, joint.solimp_limit = 0.0, [0.02, 1.0], [0.9, 0.95, 0.001, 0.5, 2.0]
        joint.solref_friction, joint.solimp_friction = [0.02, 1.0], [0.9, 0.95, 0.001, 0.5, 2.0]
        if name in motors | followers | pulled and 0.0 < np.max(joint.stiffness) < NEGLIGIBLE * strongest:
            joint.stiffness = np.zeros(len(joint.stiffness))
        spring = next((x for x in (*joint.stiffness, *joint.springdamper) if x), 0.0)
        if spring and name in motors | followers | pulled:
            raise CardError(
                f"{mechanism.model}: joint '{name}' has a spring of {spring:g}, and a motor of the card moves it; "
                "expected none (stiffness, springdamper), since a card has no springs: take it out of the model"
            )
        if name in motors | followers:
            joint.damping, joint.armature = np.zeros(3), 0.0
    for coupling in mechanism.couplings:
        for name in (coupling.leader, *(name for name, _ in coupling.followers)):
            spec.joint(name).armature = coupling.inertia


def _sort_equalities(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """Drop what a coupling of the card says, and what does not hold; refuse what ties or holds what the card moves."""
    model = mechanism.model
    coupled = [{c.leader, *(name for name, _ in c.followers)} for c in mechanism.couplings]
    named = {*mechanism.joint_names}.union(*coupled)
    tied: list[set[str]] = []
    for equality in list(spec.equalities):
        kind, names = mujoco.mjtEq(equality.type), {equality.name1, equality.name2} - {""}
        if not equality.active:
            spec.delete(equality)
        elif kind == mujoco.mjtEq.mjEQ_JOINT:
            if len(names) > 1 and any(names <= fingers for fingers in coupled):
                spec.delete(equality)  # the coupling says it
            elif len(names) == 1 and names <= named:
                raise CardError(
                    f"{model}: an equality holds joint '{equality.name1}' at {equality.data[0]:g}, and the card moves "
                    "it; expected one of both: a joint that stays is in the table [held]"
                )
            else:
                tied.append(names)
        elif kind in LOOPS:
            _require_loop(spec, mechanism, equality, named)
        else:
            raise CardError(
                f"{model}: an equality '{equality.name}' of type {kind.name[5:].lower()}; expected connect, weld or "
                "joint between bodies of the robot"
            )
    for group in _joined(tied):
        both = sorted(group & named)
        if len(both) > 1:
            raise CardError(
                f"{model}: joints {both} are tied by an equality, or <mimic>, and the card has a motor for each; "
                "expected one that is driven, and the others not in the card or, of a gripper, among its followers"
            )


def _joined(sets: Iterable[set[str]]) -> list[set[str]]:
    """Sets that have anything in common made one."""
    found: list[set[str]] = []
    for one in sets:
        common = [other for other in found if other & one]
        found = [other for other in found if not other & one] + [one.union(*common)]
    return found


def _require_loop(spec: mujoco.MjSpec, mechanism: Mechanism, equality: Any, named: set[str]) -> None:
    """A closed linkage has joints that no motor moves, and both of its ends are the robot's."""
    chains = [_above(spec, name, equality.objtype) for name in (equality.name1, equality.name2)]
    own = _tree(_root(spec.body(mechanism.base)))
    label = f"{mujoco.mjtEq(equality.type).name[5:].lower()} of '{equality.name1}' and '{equality.name2 or 'world'}'"
    if any(not chain or chain[0] not in own for chain in chains):
        raise CardError(
            f"{mechanism.model}: {label} holds the robot to what is not the robot's; expected linkages between its own "
            "bodies: take it out of the model"
        )
    loop = [j.name for chain in chains for body in chain if not all(body in c for c in chains) for j in body.joints]
    if all(name in named for name in loop):
        raise CardError(
            f"{mechanism.model}: {label} ties the joints {loop}, which motors of the card move; expected a linkage "
            "with joints that no motor moves"
        )


def _above(spec: mujoco.MjSpec, name: str, kind: Any) -> list[Any]:
    """The body of that name, or of the site, and those that it hangs on; none of the world."""
    part = spec.site(name) if kind == mujoco.mjtObj.mjOBJ_SITE else spec.body(name)
    body = part.parent if part is not None and kind == mujoco.mjtObj.mjOBJ_SITE else part
    found = []
    while body is not None and body != spec.worldbody:
        found.append(body)
        body = body.parent
    return found


def _root(body: Any) -> Any:
    while body.parent is not None and body.parent.parent is not None:
        body = body.parent
    return body


def _sort_tendons(spec: mujoco.MjSpec, mechanism: Mechanism) -> None:
    """A tendon without actuators does something only by a spring, friction or stops of its own."""
    for tendon in list(spec.tendons):
        acts = {
            "stiffness": float(np.abs(tendon.stiffness).max()),
            "damping": float(np.abs(tendon.damping).max()),
            "frictionloss": float(tendon.frictionloss),
            "armature": float(tendon.armature),
            "range": float(np.abs(tendon.range).max()),
        }
        for what, value in acts.items():
            if value:
                raise CardError(
                    f"{mechanism.model}: tendon '{tendon.name}' has {what} {value:g}; expected none: what acts on "
                    "joints besides the card's motors is not simulated, take it out of the model"
                )
        spec.delete(tendon)
