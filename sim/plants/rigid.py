"""Rigid bodies on a ground, driven by motors in their joints: what MuJoCo's plants have in common.

``assemble`` puts a robot (a card with its model file), a ground and its motors together as one MuJoCo model.
Motors are position-controlled: the torque k (target − q) − d q̇ is computed at every physics step, as it is at the
motor of a real robot, and implicitly in the velocity. It is limited to the motor's effort, and to the straight line
from the effort at standstill to nothing at the motor's greatest speed, on which a DC motor at full voltage moves
(MuJoCo's ``dcmotor``). Targets may reach the motors late.

Coordinates: world z up, base x forward, y left, z up (REP-103); linear velocity in the world, angular velocity in
the base frame; joints in the card's order. MuJoCo's quaternions (w first) become x, y, z, w here and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from sim.drawing import Poser, drawn, read_shapes
from sim.robots.figures import CardError
from sim.robots.legged import LeggedCard
from sim.solids import add_solids
from sim.terrain import Ground, add_ground, visible_solids

LONGEST_DELAY = 0.06
"""s, of a target on its way to the motors: room for it is kept in every environment's state."""


@dataclass(frozen=True)
class Physics:
    """How the engine computes. The defaults are fast; other choices show whether a policy depends on them."""

    timestep: float = 0.01
    """s; a control period must be a whole number of them."""
    solver: str = "newton"
    """newton, cg or pgs."""
    cone: str = "pyramidal"
    """pyramidal or elliptic friction cones."""
    contacts: str = "feet"
    """What can touch the ground: the feet alone, or all shapes."""
    tolerance: float = 1e-6
    """At which the solver stops, as a part of the model's scale (MuJoCo's own choice is 1e-8)."""


class RigidParameters(NamedTuple):
    """Physical parameters, (n, …) where they differ between robots and (1, …) where they don't.

    Bodies and dry friction are in the model's order, motors in the card's.
    """

    mass: Tensor
    """(n, bodies) kg."""
    center_of_mass: Tensor
    """(n, bodies, 3) m, in each body's frame."""
    ground_friction: Tensor
    """(n,) coefficient between feet and ground."""
    joint_friction: Tensor
    """(n, J) N m, dry friction."""
    armature: Tensor
    """(n, J) kg m², inertia of rotors as seen by the joints."""
    stiffness: Tensor
    """(n, J) N m/rad, gain of the position control."""
    damping: Tensor
    """(n, J) N m s/rad, gain of the position control."""
    resistance: Tensor
    """(n, J) Ω, of an equivalent motor with a constant of 1 N m/A; the torque at standstill is inverse to it."""
    command_delay: Tensor
    """(n, J) s from a target's sending to its effect; at most ``LONGEST_DELAY``, whole physics steps."""
    force: Tensor
    """(n, 3) N, on the base, world."""
    torque: Tensor
    """(n, 3) N m, on the base, world."""


FIELDS = {
    "mass": "body_mass",
    "center_of_mass": "body_ipos",
    "ground_friction": "geom_friction",
    "joint_friction": "dof_frictionloss",
    "armature": "actuator_armature",
    "stiffness": "actuator_gainprm",
    "damping": "actuator_gainprm",
    "resistance": "actuator_gainprm",
    "command_delay": "actuator_delay",
}
"""Fields of MuJoCo's model that hold the parameters; force and torque are inputs."""


class RigidTruth(NamedTuple):
    """What there is to know about n robots. The last four describe the moment one physics step earlier."""

    position: Tensor
    """(n, 3) m, of the base, world."""
    orientation: Tensor
    """(n, 4) quaternion x, y, z, w, base to world."""
    linear_velocity: Tensor
    """(n, 3) m/s, of the base, world."""
    angular_velocity: Tensor
    """(n, 3) rad/s, base."""
    joint_position: Tensor
    """(n, J) rad."""
    joint_velocity: Tensor
    """(n, J) rad/s."""
    joint_torque: Tensor
    """(n, J) N m, of the motors."""
    foot_position: Tensor
    """(n, 3 F) m, centres, world: x, y, z of each foot in turn."""
    foot_velocity: Tensor
    """(n, 3 F) m/s, world."""
    foot_force: Tensor
    """(n, F) N, normal force from the ground."""


def shapes(card: LeggedCard) -> list[tuple[int, ...]]:
    """Shapes of the fields of ``RigidTruth`` for one robot."""
    joints, feet = len(card.joints), len(card.feet)
    return [(3,), (4,), (3,), (3,), (joints,), (joints,), (joints,), (3 * feet,), (3 * feet,), (feet,)]


def assemble(card: LeggedCard, physics: Physics, ground: Ground | None = None) -> mujoco.MjModel:
    """The robot of ``card`` on a ground, or on a plane. Raises CardError where model file and card don't fit."""
    spec = _read(card)
    _set_options(spec, physics)
    for shape in spec.geoms:
        shape.contype, shape.conaffinity = 0, 1 if physics.contacts == "all" or shape.name in card.feet else 0
    for below in add_ground(spec, ground):
        below.contype, below.conaffinity, below.condim = 1, 0, 3
        below.priority = 1  # its friction holds in every contact
    for joint, motor in zip(card.joints, card.motors, strict=True):
        _drive(spec, joint, motor, physics)
    for foot in card.feet:
        _sense(spec, foot)
    try:
        return spec.compile()
    except ValueError as error:
        raise CardError(f"{card.model}: MuJoCo can't compile it ({' '.join(str(error).split())})") from None


def draw_rigid(card: LeggedCard, ground: Ground | None = None) -> mujoco.MjModel:
    """How the robot and its ground look, with the bodies and joints of ``assemble``."""
    spec = read_shapes(card.model)
    _release(spec, card)
    if ground is None:
        add_ground(spec, None)
    else:
        add_solids(spec, visible_solids(ground))
    return drawn(spec, card.feet)


def _read(card: LeggedCard) -> mujoco.MjSpec:
    try:
        spec = mujoco.MjSpec.from_file(str(card.model))
    except ValueError as error:
        raise CardError(f"{card.model}: MuJoCo can't read it ({error}); expected MJCF or URDF") from None
    for what, wanted, found in (
        ("base", (card.base,), [body.name for body in spec.bodies]),
        ("joints", card.joint_names, [joint.name for joint in spec.joints]),
        ("feet", card.feet, [shape.name for shape in spec.geoms]),
    ):
        missing = sorted(set(wanted) - set(found))
        if missing:
            raise CardError(f"{card.model}: {missing} of the card's {what} are not in it; it has {found}")
    for what, names, find, kind, expected in (
        ("joint", card.joint_names, spec.joint, mujoco.mjtJoint.mjJNT_HINGE, "a hinge"),
        ("foot", card.feet, spec.geom, mujoco.mjtGeom.mjGEOM_SPHERE, "a sphere"),
    ):
        for name in names:
            found = find(name).type
            if found != kind:
                is_a = found.name.partition("_")[2].lower()
                raise CardError(f"{card.model}: {what} '{name}' is of type {is_a}; expected {expected}")
    _release(spec, card)
    return spec


def _release(spec: mujoco.MjSpec, card: LeggedCard) -> None:
    """Let the base move freely, if the model does not."""
    if not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in spec.body(card.base).joints):
        spec.body(card.base).add_freejoint()


def _set_options(spec: mujoco.MjSpec, physics: Physics) -> None:
    option = spec.option
    option.timestep = physics.timestep
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.solver = getattr(mujoco.mjtSolver, f"mjSOL_{physics.solver.upper()}")
    option.cone = getattr(mujoco.mjtCone, f"mjCONE_{physics.cone.upper()}")
    option.tolerance = physics.tolerance
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET  # a state that diverged must be seen
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND  # one robot is one island; looking for more takes time
    if physics.solver == "newton":  # it is as soon there without, and need not find out which start is the better one
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
    spec.compiler.discardvisual = True  # no step moves shapes that touch nothing


def _drive(spec: mujoco.MjSpec, joint: Any, motor: Any, physics: Physics) -> None:
    """Stops, dry friction and a position-controlled motor for one joint."""
    driven = spec.joint(joint.name)
    driven.limited, driven.range, driven.frictionloss = True, [joint.lower, joint.upper], motor.friction
    actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    actuator.set_to_dcmotor(
        motorconst=[0, 0],
        resistance=0,
        nominal=[joint.velocity, joint.effort, joint.velocity],  # V, N m, rad/s: a constant of 1 N m/A
        saturation=[joint.effort, 0, 0],
        controller=[joint.stiffness, 0, joint.damping, 0, 0, joint.velocity],
        ctrlspec=int(mujoco.mjtCtrlInput.mjINPUT_POS),
    )
    actuator.armature = motor.armature
    actuator.nsample = round(LONGEST_DELAY / physics.timestep) + 1
    actuator.delay = physics.timestep  # keeps the samples; plants write the delay that they want


def _sense(spec: mujoco.MjSpec, foot: str) -> None:
    """Place, velocity and load of a foot."""
    shape = spec.geom(foot)
    size = [1.5 * shape.size[0]] * 3  # the site holds all points where the foot, a sphere, can touch
    shape.parent.add_site(name=f"{foot} touch", pos=shape.pos, size=size)
    for kind in ("FRAMEPOS", "FRAMELINVEL"):
        sensor = spec.add_sensor(name=f"{foot} {kind}", type=getattr(mujoco.mjtSensor, f"mjSENS_{kind}"))
        sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_GEOM, foot
    sensor = spec.add_sensor(name=f"{foot} TOUCH", type=mujoco.mjtSensor.mjSENS_TOUCH)
    sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_SITE, f"{foot} touch"


class ModelIndices(NamedTuple):
    """Where a model keeps what plants read and write, found by name once."""

    base: int
    """Body number of the base."""
    free_position: int
    """First index in qpos of the base's place and quaternion."""
    free_velocity: int
    """First index in qvel."""
    position: np.ndarray
    """(J,) indices in qpos, card's order."""
    velocity: np.ndarray
    """(J,) indices in qvel, card's order."""
    ground: np.ndarray
    """Geom numbers of the ground; the first has the friction that the others get."""
    sensors: np.ndarray
    """(3 F + 3 F + F,) indices in sensordata: places, velocities, loads."""


def find_indices(model: mujoco.MjModel, card: LeggedCard) -> ModelIndices:
    """All indices that a plant needs."""
    base = model.body(card.base).id
    free = model.body_jntadr[base]
    joints = [model.joint(name).id for name in card.joint_names]
    sensors = [model.sensor(f"{foot} {kind}") for kind in ("FRAMEPOS", "FRAMELINVEL", "TOUCH") for foot in card.feet]
    return ModelIndices(
        base=base,
        free_position=int(model.jnt_qposadr[free]),
        free_velocity=int(model.jnt_dofadr[free]),
        position=model.jnt_qposadr[joints],
        velocity=model.jnt_dofadr[joints],
        ground=np.flatnonzero(model.geom_contype),
        sensors=np.concatenate([np.arange(s.adr[0], s.adr[0] + s.dim[0]) for s in sensors]),
    )


def standing_height(model: mujoco.MjModel, card: LeggedCard) -> float:
    """Height (m) of the base above flat ground when the robot stands with its joints at ``stand``."""
    indices, data = find_indices(model, card), mujoco.MjData(model)
    data.qpos[indices.position] = [joint.stand for joint in card.joints]
    mujoco.mj_kinematics(model, data)
    feet = [model.geom(foot).id for foot in card.feet]
    lowest = min(data.geom_xpos[foot, 2] - model.geom_size[foot, 0] for foot in feet)
    return float(data.xpos[indices.base, 2] - lowest)


def at_rest(card: LeggedCard) -> tuple[mujoco.MjModel, np.ndarray]:
    """The drawing on a plane, and poses (bodies, 7) of the robot that stands."""
    model, drawing = assemble(card, Physics()), draw_rigid(card)
    indices, places = find_indices(model, card), model.qpos0.copy()
    places[indices.free_position : indices.free_position + 7] = [0, 0, standing_height(model, card), 1, 0, 0, 0]
    places[indices.position] = [joint.stand for joint in card.joints]
    return drawing, Poser(drawing).poses(places[None])[0]


def standing(card: LeggedCard, height: float, n: int, device: str | torch.device = "cpu") -> tuple[Tensor, ...]:
    """What ``place`` wants for n robots that stand still with their base at ``height`` (m)."""
    joints = torch.tensor([[joint.stand for joint in card.joints]], device=device).expand(n, -1)
    upright = torch.tensor([[0.0, 0.0, 0.0, 1.0]], device=device).expand(n, -1)
    place, still = torch.tensor([[0.0, 0.0, height]], device=device).expand(n, -1), torch.zeros(n, 3, device=device)
    return place, upright, still, still, joints, torch.zeros_like(joints)


def view(name: str, field: Any, indices: ModelIndices) -> Tensor:
    """What ``RigidParameters`` shows of the field ``FIELDS[name]`` of MuJoCo's model, (n, …) with memory shared."""
    value = torch.as_tensor(field)
    if FIELDS[name] == "actuator_gainprm":
        return value[:, :, {"resistance": 0, "stiffness": 4, "damping": 6}[name]]
    if name == "ground_friction":
        return value[:, indices.ground[0], 0]
    if name == "joint_friction":
        return value[:, indices.free_velocity + 6 :]
    return value[:, 1:] if name in ("mass", "center_of_mass") else value


def spread_friction(field: Any, indices: ModelIndices, ids: Any) -> None:
    """Give all of the ground the friction of its first shape, in the worlds ``ids`` (m,) of ``geom_friction``."""
    first, *others = indices.ground.tolist()
    friction = torch.as_tensor(field)[:, :, 0]
    friction[ids[:, None], torch.tensor(others, dtype=torch.long, device=ids.device)] = friction[ids, first][:, None]


def nominal_parameters(model: mujoco.MjModel, indices: ModelIndices) -> RigidParameters:
    """Those of the card, (1, …); no push, no delay."""
    values = {name: view(name, np.array(getattr(model, FIELDS[name]))[None], indices) for name in FIELDS}
    nothing = torch.zeros(1, 3, dtype=torch.float64)
    delay = torch.zeros_like(values.pop("command_delay"))
    return RigidParameters(**values, command_delay=delay, force=nothing, torque=nothing.clone())


def substeps(period: float, physics: Physics) -> int:
    """Physics steps per control period (s)."""
    count = round(period / physics.timestep)
    if count < 1 or not math.isclose(count * physics.timestep, period, rel_tol=1e-6):
        raise ValueError(f"the control period is {period:g} s; expected a multiple of {physics.timestep:g} s")
    return count
