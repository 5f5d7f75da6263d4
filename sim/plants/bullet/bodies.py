"""Bodies in Bullet besides the robot, and rotors of its drives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as Xml

import mujoco
import numpy as np
import pybullet
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.assembly import GROUND, inertia_per_mass
from robo_rl.sim.plants.sensing import W_LAST
from robo_rl.sim.robots.mechanism import FreeObject, Mechanism
from robo_rl.sim.scenes.solids import Solids

GEARING = 1e4
"""Turns of a rotor per turn of its joint (per 2π m of a slide)."""

ROTOR = " rotor"
"""Ends of the names of links and joints that are rotors."""

STRONG = 1e6
"""N m, more than any gear needs."""

Made = tuple[int, tuple[np.ndarray, Rotation]]
"""Number of a body, and the frame in which Bullet gives its pose, in its own frame."""


def lay_solids(bullet: Any, ground: Solids, friction: float) -> None:
    """The ground as bodies that don't move."""
    laid = []
    for low, high in ground.boxes:
        shape = bullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=(0.5 * (high - low)).tolist())
        laid.append(bullet.createMultiBody(0.0, shape, basePosition=(0.5 * (high + low)).tolist()))
    for wedge in ground.wedges:
        shape = bullet.createCollisionShape(pybullet.GEOM_MESH, vertices=(wedge - wedge.mean(0)).tolist())
        laid.append(bullet.createMultiBody(0.0, shape, basePosition=wedge.mean(0).tolist()))
    for body in laid:
        bullet.changeDynamics(body, -1, lateralFriction=friction, restitution=0.0)


def lay_surroundings(bullet: Any, model: mujoco.MjModel, mechanism: Mechanism) -> None:
    """Shapes of the model file that don't move and are not the robot's."""
    data, base = mujoco.MjData(model), model.body(mechanism.base).id
    mujoco.mj_kinematics(model, data)
    for shape in range(model.ngeom):
        body = int(model.geom_bodyid[shape])
        mine = model.body_rootid[body] == model.body_rootid[base] and body > 0
        if model.body_weldid[body] != 0 or mine or model.geom(shape).name.startswith(f"{GROUND} "):
            continue
        if not (model.geom_contype[shape] or model.geom_conaffinity[shape]):
            continue
        made = _shape(bullet, model, shape, model.geom_size[shape])
        turn = np.zeros(4)
        mujoco.mju_mat2Quat(turn, data.geom_xmat[shape])
        pose = {"basePosition": data.geom_xpos[shape].tolist(), "baseOrientation": turn[W_LAST].tolist()}
        laid = bullet.createMultiBody(0.0, made, **pose)
        bullet.changeDynamics(laid, -1, lateralFriction=1.0, restitution=0.0)


def add_object(bullet: Any, model: mujoco.MjModel, thing: FreeObject, mass: Any, size: Any, friction: Any) -> Made:
    """A free body; returns its number, and its inertial frame."""
    body = model.body(thing.name).id
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    inertia = model.body_inertia[body] * float(mass) / model.body_mass[body]
    center, turn = model.body_ipos[body], Rotation.from_quat(model.body_iquat[body][W_LAST])
    if thing.mjcf is None:
        inertia = float(mass) * inertia_per_mass(thing.shape, np.array(size)[None])[0]
        shape = _shape(bullet, model, first, np.array(size))
        number = bullet.createMultiBody(float(mass), shape)
    else:
        number = _compound(bullet, model, range(first, first + count), float(mass), center, turn)
    bullet.changeDynamics(
        number, -1, localInertiaDiagonal=inertia.tolist(), lateralFriction=float(friction), restitution=0.0,
        spinningFriction=thing.friction[1], rollingFriction=thing.friction[2], linearDamping=0.0, angularDamping=0.0,
    )  # fmt: skip
    return number, (center.copy(), turn)


def _compound(
    bullet: Any, model: mujoco.MjModel, shapes: range, mass: float, center: np.ndarray, turn: Rotation
) -> int:
    made = [_described(model, shape, model.geom_size[shape]) for shape in shapes]
    columns = {key: [part.get(key, empty) for part in made] for key, empty in EMPTY.items()}
    kinds = [part["shapeType"] for part in made]
    places = [model.geom_pos[shape].tolist() for shape in shapes]
    turns = [model.geom_quat[shape][W_LAST].tolist() for shape in shapes]
    number = bullet.createCollisionShapeArray(
        shapeTypes=kinds, collisionFramePositions=places, collisionFrameOrientations=turns,
        halfExtents=columns["halfExtents"], radii=columns["radius"], lengths=columns["length"],
    )  # fmt: skip
    inertial = {"baseInertialFramePosition": center.tolist(), "baseInertialFrameOrientation": turn.as_quat().tolist()}
    return bullet.createMultiBody(mass, number, **inertial)


EMPTY: dict[str, Any] = {"halfExtents": [1.0, 1.0, 1.0], "radius": 0.5, "length": 1.0}


def _shape(bullet: Any, model: mujoco.MjModel, shape: int, size: np.ndarray) -> int:
    about = _described(model, shape, size)
    if "length" in about:
        about["height"] = about.pop("length")
    return bullet.createCollisionShape(**about)


def _described(model: mujoco.MjModel, shape: int, size: np.ndarray) -> dict[str, Any]:
    """Arguments by which Bullet makes the same shape."""
    radius, half = float(size[0]), float(size[1])
    match mujoco.mjtGeom(model.geom_type[shape]):
        case mujoco.mjtGeom.mjGEOM_PLANE:
            return {"shapeType": pybullet.GEOM_PLANE}
        case mujoco.mjtGeom.mjGEOM_BOX:
            return {"shapeType": pybullet.GEOM_BOX, "halfExtents": size.tolist()}
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            return {"shapeType": pybullet.GEOM_SPHERE, "radius": radius}
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            return {"shapeType": pybullet.GEOM_CYLINDER, "radius": radius, "length": 2 * half}
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            return {"shapeType": pybullet.GEOM_CAPSULE, "radius": radius, "length": 2 * half}
        case other:
            name, is_a = model.geom(shape).name, other.name[7:].lower()
            raise ValueError(f"shape '{name}' is a {is_a}; expected a plane, box, sphere, cylinder or capsule")


def add_rotors(urdf: str, inertias: Mapping[str, float]) -> str:
    """The robot with a rotor beside every joint whose drive has an inertia, as the joint sees it (kg m²; of slides kg).

    Bullet has no such inertia of joints. A rotor on the joint's parent that spins ``GEARING`` times as fast, about the
    same axis, has the same effect: its own inertia is so small that it tells nowhere else.
    """
    robot = Xml.fromstring(urdf)
    for joint in robot.findall("joint"):
        name = joint.get("name", "")
        inertia = inertias.get(name, 0.0) / GEARING**2
        if inertia <= 0.0:
            continue
        link = Xml.SubElement(robot, "link", name=f"{name}{ROTOR}")
        part = Xml.SubElement(link, "inertial")
        Xml.SubElement(part, "mass", value=repr(inertia))
        moments = dict.fromkeys(("ixx", "iyy", "izz"), repr(inertia))
        Xml.SubElement(part, "inertia", {**moments, "ixy": "0", "ixz": "0", "iyz": "0"})
        rotor = Xml.SubElement(robot, "joint", name=f"{name}{ROTOR}", type="continuous")
        for what in ("origin", "parent", "axis"):
            found = joint.find(what)
            assert found is not None
            rotor.append(found)
        Xml.SubElement(rotor, "child", link=f"{name}{ROTOR}")
    Xml.indent(robot)
    return Xml.tostring(robot, encoding="unicode")


def gear(bullet: Any, robot: int, leader: int, follower: int, ratio: float, erp: float) -> None:
    """Make a joint move ``ratio`` times as fast as another; ``erp``: the part of an error corrected in each step."""
    axis, middle = [1, 0, 0], [0, 0, 0]
    made = bullet.createConstraint(robot, leader, robot, follower, pybullet.JOINT_GEAR, axis, middle, middle)
    bullet.changeConstraint(made, gearRatio=-1.0 / ratio, erp=erp, maxForce=STRONG)
