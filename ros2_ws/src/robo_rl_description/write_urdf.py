"""Write the URDF of the robots that come with robo-rl, from their cards: python write_urdf.py

A multirotor's URDF has its mass, inertia, size and rotors. That of a robot on legs has the bodies, joints and shapes of
the model file beside its card, and the stops and motors of the card.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from sim.robots import load_robot, robot_names
from sim.robots.legged import LeggedCard
from sim.robots.multirotor import MultirotorCard

FOLDER = Path(__file__).parent / "urdf"
DISC = 0.004
"""m, thickness of the disc that shows a rotor."""


def multirotor(card: MultirotorCard) -> str:
    """The robot as URDF: base_link with all mass and inertia, and one massless link per rotor on a continuous joint."""
    robot = ET.Element("robot", name=card.name)
    base = ET.SubElement(robot, "link", name="base_link")
    inertial = ET.SubElement(base, "inertial")
    ET.SubElement(inertial, "origin", xyz="0 0 0", rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=repr(card.mass))
    xx, yy, zz = (repr(value) for value in card.inertia)
    ET.SubElement(inertial, "inertia", ixx=xx, iyy=yy, izz=zz, ixy="0", ixz="0", iyz="0")
    for part in ("visual", "collision"):
        shape = ET.SubElement(ET.SubElement(base, part), "geometry")
        ET.SubElement(shape, "box", size=" ".join(map(repr, card.body_size)))
    for rotor in card.rotors:
        link = ET.SubElement(robot, "link", name=f"{rotor.name}_link")
        disc = ET.SubElement(ET.SubElement(link, "visual"), "geometry")
        ET.SubElement(disc, "cylinder", radius=repr(card.propeller_radius), length=repr(DISC))
        joint = ET.SubElement(robot, "joint", name=rotor.name, type="continuous")
        ET.SubElement(joint, "origin", xyz=" ".join(map(repr, rotor.position)), rpy="0 0 0")
        ET.SubElement(joint, "parent", link="base_link")
        ET.SubElement(joint, "child", link=f"{rotor.name}_link")
        ET.SubElement(joint, "axis", xyz="0 0 1" if rotor.spin == "ccw" else "0 0 -1")
        ET.SubElement(joint, "limit", effort="0", velocity=repr(card.rotor_speed_max))
    return text(robot)


def legged(card: LeggedCard) -> str:
    """The robot as URDF: one link per body, one more for each foot, and a joint above every link but the first."""
    model = mujoco.MjModel.from_xml_path(str(card.model))
    joints = {joint.name: joint for joint in card.joints}
    robot = ET.Element("robot", name=card.name)
    for body in map(model.body, range(1, model.nbody)):
        link = ET.SubElement(robot, "link", name=body.name)
        add_inertia(link, body)
        for geom in (model.geom(i) for i in range(model.ngeom) if model.geom_bodyid[i] == body.id):
            if geom.name not in card.feet:
                add_shape(link, geom)
            else:
                foot = ET.SubElement(robot, "link", name=geom.name)
                add_shape(foot, geom, at_origin=True)
                add_joint(robot, f"{geom.name}_joint", "fixed", body.name, geom.name, geom.pos)
        for joint in (model.joint(i) for i in range(model.njnt) if model.jnt_bodyid[i] == body.id):
            if joint.name in joints:
                parent, facts = model.body(body.parentid[0]).name, joints[joint.name]
                made = add_joint(robot, joint.name, "revolute", parent, body.name, body.pos)
                ET.SubElement(made, "axis", xyz=numbers(joint.axis))
                limits = {
                    "lower": facts.lower,
                    "upper": facts.upper,
                    "effort": facts.effort,
                    "velocity": facts.velocity,
                }
                ET.SubElement(made, "limit", {key: repr(value) for key, value in limits.items()})
    return text(robot)


def add_inertia(link: ET.Element, body: Any) -> None:
    """Mass and inertia of a body, about its centre of mass and along the axes of the link."""
    turned = np.zeros(9)
    mujoco.mju_quat2Mat(turned, body.iquat)
    axes = turned.reshape(3, 3)
    full = axes @ np.diag(body.inertia) @ axes.T
    inertial = ET.SubElement(link, "inertial")
    ET.SubElement(inertial, "origin", xyz=numbers(body.ipos), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=numbers(body.mass))
    entries = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
    ET.SubElement(inertial, "inertia", {name: numbers([full[at]]) for name, at in entries.items()})


def add_shape(link: ET.Element, geom: Any, at_origin: bool = False) -> None:
    """A shape to see and to touch. URDF has no capsules: a cylinder of the same radius and length stands for one."""
    size = geom.size
    match mujoco.mjtGeom(int(geom.type[0])):
        case mujoco.mjtGeom.mjGEOM_BOX:
            shape = "box", {"size": numbers(2 * size)}
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            shape = "sphere", {"radius": numbers(size[:1])}
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            shape = "cylinder", {"radius": numbers(size[:1]), "length": numbers(2 * size[1:2])}
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            shape = "cylinder", {"radius": numbers(size[:1]), "length": numbers(2 * (size[1:2] + size[:1]))}
        case other:
            raise ValueError(f"shape '{geom.name}' is a {other}; expected a box, sphere, cylinder or capsule")
    for part in ("visual", "collision"):
        entry = ET.SubElement(link, part)
        if not at_origin:
            ET.SubElement(entry, "origin", xyz=numbers(geom.pos), rpy=numbers(roll_pitch_yaw(geom.quat)))
        ET.SubElement(ET.SubElement(entry, "geometry"), *shape)


def add_joint(robot: ET.Element, name: str, kind: str, parent: str, child: str, place: np.ndarray) -> ET.Element:
    """A joint whose frames are parallel."""
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "origin", xyz=numbers(place), rpy="0 0 0")
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    return joint


def roll_pitch_yaw(quaternion: np.ndarray) -> np.ndarray:
    """(3,) rad, about fixed axes, of (w, x, y, z)."""
    w, x, y, z = quaternion
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    return np.array([roll, pitch, np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))])


def numbers(values: np.ndarray) -> str:
    """To eight digits, of which none depends on the computer; what is below 1e-12 is zero."""
    return " ".join(f"{value:.8g}" if abs(value) > 1e-12 else "0" for value in values)


def text(robot: ET.Element) -> str:
    """The file."""
    ET.indent(robot)
    return f'<?xml version="1.0"?>\n{ET.tostring(robot, encoding="unicode")}\n'


def urdf(card: MultirotorCard | LeggedCard) -> str:
    """The URDF of a robot."""
    return multirotor(card) if isinstance(card, MultirotorCard) else legged(card)


def main() -> None:
    """Write one file per robot."""
    for name in robot_names():
        (FOLDER / f"{name}.urdf").write_text(urdf(load_robot(name)))


if __name__ == "__main__":
    main()
