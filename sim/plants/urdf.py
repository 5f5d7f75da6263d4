"""A robot as URDF, for engines that read nothing else: from MuJoCo's model, with one robot's own parameters."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as Xml

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from sim.plants.rigid import RigidParameters
from sim.robots.legged import LeggedCard


def write_urdf(model: mujoco.MjModel, card: LeggedCard, parameters: RigidParameters) -> str:
    """Bodies, joints and primitive shapes of ``model``; masses and centres of mass are those of ``parameters``."""
    robot = Xml.Element("robot", name=card.name)
    for i in range(1, model.nbody):
        body = model.body(i)
        link = Xml.SubElement(robot, "link", name=body.name)
        joint = model.joint(int(body.jntadr[0]))
        _inertial(link, body, float(parameters.mass[i - 1]), parameters.center_of_mass[i - 1])
        for shape in range(model.ngeom):
            if model.geom_bodyid[shape] == i:
                _collision(link, model, shape)
        if joint.name in card.joint_names:
            _joint(robot, model, i, joint)
    Xml.indent(robot)  # Bullet breaks lines after 8,191 characters, in the middle of a number if it has to
    return Xml.tostring(robot, encoding="unicode")


def _inertial(link: Xml.Element, body: Any, mass: float, center: Any) -> None:
    part = Xml.SubElement(link, "inertial")
    _origin(part, center, _rotation(body.iquat))
    Xml.SubElement(part, "mass", value=repr(mass))
    products = {"ixy": "0", "ixz": "0", "iyz": "0"}
    diagonal = dict(zip(("ixx", "iyy", "izz"), (repr(float(x)) for x in body.inertia), strict=True))
    Xml.SubElement(part, "inertia", {**diagonal, **products})


def _collision(link: Xml.Element, model: mujoco.MjModel, shape: int) -> None:
    part = Xml.SubElement(link, "collision")
    _origin(part, model.geom_pos[shape], _rotation(model.geom_quat[shape]))
    geometry = Xml.SubElement(part, "geometry")
    size = model.geom_size[shape]
    match mujoco.mjtGeom(model.geom_type[shape]):
        case mujoco.mjtGeom.mjGEOM_BOX:
            Xml.SubElement(geometry, "box", size=_text(2 * size))
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            Xml.SubElement(geometry, "sphere", radius=repr(float(size[0])))
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            Xml.SubElement(geometry, "cylinder", radius=repr(float(size[0])), length=repr(float(2 * size[1])))
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            Xml.SubElement(geometry, "capsule", radius=repr(float(size[0])), length=repr(float(2 * size[1])))
        case other:
            name = model.geom(shape).name
            raise ValueError(f"shape '{name}' is a {other.name[7:].lower()}; expected box, sphere, cylinder or capsule")


def _joint(robot: Xml.Element, model: mujoco.MjModel, i: int, joint: Any) -> None:
    body = model.body(i)
    parent = model.body(int(body.parentid[0])).name
    part = Xml.SubElement(robot, "joint", name=joint.name, type="revolute")
    _origin(part, body.pos, _rotation(body.quat))
    Xml.SubElement(part, "parent", link=parent)
    Xml.SubElement(part, "child", link=body.name)
    Xml.SubElement(part, "axis", xyz=_text(joint.axis))
    lower, upper = (repr(float(x)) for x in joint.range)
    Xml.SubElement(part, "limit", lower=lower, upper=upper, effort="1000", velocity="1000")


def _origin(part: Xml.Element, place: np.ndarray, turn: Rotation) -> None:
    Xml.SubElement(part, "origin", xyz=_text(place), rpy=_text(turn.as_euler("xyz")))


def _rotation(quaternion: np.ndarray) -> Rotation:
    """MuJoCo's quaternions have w first."""
    return Rotation.from_quat(np.roll(quaternion, -1))


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in numbers)
