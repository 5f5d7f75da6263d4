"""How a mobile base looks: a round body on wheels, with the lidar on top."""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.drawing import BLUE, DARK, ORANGE, SLATE, Poser
from robo_rl.sim.robots.mobile_base import BaseCard
from robo_rl.sim.scenes.terrain import add_ground


def draw_base(card: BaseCard) -> mujoco.MjModel:
    """A body that slides and turns on the ground."""
    spec = mujoco.MjSpec()
    add_ground(spec, None)
    base = spec.worldbody.add_body(name="base")
    for name, kind, axis in (("x", "SLIDE", [1, 0, 0]), ("y", "SLIDE", [0, 1, 0]), ("yaw", "HINGE", [0, 0, 1])):
        base.add_joint(name=name, type=getattr(mujoco.mjtJoint, f"mjJNT_{kind}"), axis=axis)
    round_ = {"type": mujoco.mjtGeom.mjGEOM_CYLINDER}
    radius, height, wheel = card.radius, card.height, card.wheel_radius
    for name, part, color in (("lower plate", 0.25, DARK), ("upper plate", 0.6, BLUE)):
        size = [0.95 * radius, 0.1 * height, 0]
        base.add_geom(name=name, size=size, pos=[0, 0, part * height + 0.1 * height], rgba=color, **round_)
    nose = [0.1 * radius, 0.3 * radius, 0.08 * height]
    place = [0.9 * radius, 0, 0.7 * height]
    base.add_geom(name="front", type=mujoco.mjtGeom.mjGEOM_BOX, size=nose, pos=place, rgba=ORANGE)
    forward, up = card.lidar_position
    base.add_geom(name="lidar", size=[0.35 * radius, 0.08 * height, 0], pos=[forward, 0, up], rgba=SLATE, **round_)
    for one in card.wheels:
        across = 0.5 * card.wheel_width * np.array([-np.sin(one.heading), np.cos(one.heading)])
        ends = [one.x - across[0], one.y - across[1], wheel, one.x + across[0], one.y + across[1], wheel]
        name = one.name.replace("_", " ")
        base.add_geom(name=name, fromto=ends, size=[wheel, 0, 0], rgba=SLATE, **round_)
    return spec.compile()


def at_rest(card: BaseCard) -> tuple[mujoco.MjModel, np.ndarray]:
    """The drawing, and poses (bodies, 7) of a robot at the origin."""
    model = draw_base(card)
    return model, Poser(model).poses(np.zeros((1, 3)))[0]
