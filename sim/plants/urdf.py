"""A robot of bodies and joints as URDF for ROS."""

from __future__ import annotations

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.robots.urdf import LIMITLESS, Style, write_urdf


def ros_urdf(mechanism: Mechanism) -> str:
    """One link per body, one more for each contact point, with the stops and motors of the mechanism."""
    model = assemble(mechanism, Physics(contacts="all"))
    limits = {joint.name: (min(joint.effort, LIMITLESS), min(joint.velocity, LIMITLESS)) for joint in mechanism.joints}
    return write_urdf(model, mechanism.name, mechanism.base, limits, mechanism.points, Style(digits=8, capsules=False))
