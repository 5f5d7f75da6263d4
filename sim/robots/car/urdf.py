"""A car as URDF, for ROS's tools."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from robo_rl.sim.robots.car import CarCard


def car_urdf(card: CarCard) -> str:
    """base_link on the ground under the middle of the rear axle, with all mass; four wheels, and the lidar's frame."""
    length, width, height = card.body
    robot = ET.Element("robot", name=card.name)
    base = ET.SubElement(robot, "link", name="base_link")
    inertial = ET.SubElement(base, "inertial")
    ET.SubElement(inertial, "origin", xyz=f"{card.rear_axle} 0 {card.height}", rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=repr(card.mass))
    # the card has the moment about z alone: a flat box of the same one, with the height's part added
    low, flat = card.mass * height**2 / 12, card.inertia / (length**2 + width**2)
    ixx, iyy = (repr(low + flat * side**2) for side in (width, length))
    ET.SubElement(inertial, "inertia", ixx=ixx, iyy=iyy, izz=repr(card.inertia), ixy="0", ixz="0", iyz="0")
    for part in ("visual", "collision"):
        shape = ET.SubElement(base, part)
        middle = 0.5 * card.wheelbase
        ET.SubElement(shape, "origin", xyz=f"{middle} 0 {0.5 * height + 0.5 * card.wheel_radius}", rpy="0 0 0")
        size = f"{length} {width} {height - card.wheel_radius if height > card.wheel_radius else height}"
        ET.SubElement(ET.SubElement(shape, "geometry"), "box", size=size)
    for end, x in (("front", card.wheelbase), ("rear", 0.0)):
        for side, y in (("left", 0.44 * width), ("right", -0.44 * width)):
            _wheel(robot, card, f"{side}_{end}", (x, y))
    _link(robot, "laser", (card.rear_axle + card.lidar_position[0], 0.0, card.lidar_position[1]), "fixed")
    ET.indent(robot)
    return f'<?xml version="1.0"?>\n{ET.tostring(robot, encoding="unicode")}\n'


def _wheel(robot: ET.Element, card: CarCard, name: str, place: tuple[float, float]) -> None:
    """A wheel; the front ones on a joint that steers."""
    steered = name.endswith("front")
    joint, link = _link(robot, f"{name}_wheel", (*place, card.wheel_radius), "revolute" if steered else "fixed")
    if steered:
        ET.SubElement(joint, "axis", xyz="0 0 1")
        limit = repr(card.steering_limit)
        ET.SubElement(joint, "limit", lower=f"-{limit}", upper=limit, effort="0", velocity=repr(card.steering_rate))
    visual = ET.SubElement(link, "visual")
    ET.SubElement(visual, "origin", xyz="0 0 0", rpy="1.5707963 0 0")
    shape = ET.SubElement(visual, "geometry")
    ET.SubElement(shape, "cylinder", radius=repr(card.wheel_radius), length=repr(0.12 * card.body[1]))


def _link(robot: ET.Element, name: str, place: tuple[float, ...], kind: str) -> tuple[ET.Element, ET.Element]:
    link = ET.SubElement(robot, "link", name=name)
    joint = ET.SubElement(robot, "joint", name=f"{name}_joint", type=kind)
    ET.SubElement(joint, "origin", xyz=" ".join(map(str, place)), rpy="0 0 0")
    ET.SubElement(joint, "parent", link="base_link")
    ET.SubElement(joint, "child", link=name)
    return joint, link
