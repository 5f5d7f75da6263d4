"""Write the URDF of the robots that come with robo-rl, from their cards: python write_urdf.py

A multirotor's URDF has its mass, inertia, size and rotors. That of a robot on legs has the bodies, joints and shapes of
the model file beside its card, and the stops and motors of the card.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from sim.plants.assembly import assemble
from sim.plants.physics import Physics
from sim.robots import load_robot, robot_names
from sim.robots.legged import LeggedCard
from sim.robots.multirotor import MultirotorCard
from sim.robots.urdf import Style, write_urdf

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
    """The robot as URDF: one link per body, one more for each foot."""
    model = assemble(card.mechanism, Physics(contacts="all"))
    limits = {joint.name: (joint.effort, joint.velocity) for joint in card.joints}
    return write_urdf(model, card.name, card.base, limits, card.feet, Style(digits=8, capsules=False))


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
