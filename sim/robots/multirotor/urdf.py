"""A multirotor as URDF: its mass, inertia, size and rotors."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from robo_rl.sim.robots.multirotor import MultirotorCard

DISC = 0.004
"""m, thickness of the disc that shows a rotor."""


def multirotor_urdf(card: MultirotorCard) -> str:
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
    ET.indent(robot)
    return f'<?xml version="1.0"?>\n{ET.tostring(robot, encoding="unicode")}\n'
