"""How a car looks: chassis, cabin with the lidar on it, and four wheels, of which the front ones turn."""

from __future__ import annotations

import mujoco
import numpy as np

from robo_rl.sim.drawing import BLUE, DARK, ORANGE, SLATE, Poser
from robo_rl.sim.robots.car import CarCard
from robo_rl.sim.scenes.terrain import add_ground


def draw_car(card: CarCard) -> mujoco.MjModel:
    """A body that slides and turns on the ground, and two steered wheels."""
    return car_spec(card).compile()


def car_spec(card: CarCard) -> mujoco.MjSpec:
    """The same, to put other things beside it."""
    length, width, height = card.body
    radius, thick = card.wheel_radius, 0.12 * width
    middle = 0.5 * (card.front_axle - card.rear_axle)
    spec = mujoco.MjSpec()
    add_ground(spec, None)
    car = spec.worldbody.add_body(name="car")
    for name, kind, axis in (("x", "SLIDE", [1, 0, 0]), ("y", "SLIDE", [0, 1, 0]), ("yaw", "HINGE", [0, 0, 1])):
        car.add_joint(name=name, type=getattr(mujoco.mjtJoint, f"mjJNT_{kind}"), axis=axis)
    box = {"type": mujoco.mjtGeom.mjGEOM_BOX}
    low = 0.5 * (height - radius)
    chassis = [0.5 * length, 0.32 * width, 0.5 * low]
    car.add_geom(name="chassis", size=chassis, pos=[middle, 0, radius], rgba=BLUE, **box)
    bumper = [0.03 * length, 0.5 * width, 0.5 * low]
    car.add_geom(name="bumper", size=bumper, pos=[middle + 0.47 * length, 0, radius], rgba=ORANGE, **box)
    cabin = [0.22 * length, 0.26 * width, 0.5 * low]
    car.add_geom(name="cabin", size=cabin, pos=[middle - 0.08 * length, 0, radius + low], rgba=DARK, **box)
    forward, up = card.lidar_position
    car.add_geom(
        name="lidar", type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[0.12 * width, 0.1 * height, 0],
        pos=[forward, 0, up], rgba=SLATE,
    )  # fmt: skip
    for side, y in (("left", 0.5 * width - 0.5 * thick), ("right", 0.5 * thick - 0.5 * width)):
        front = car.add_body(name=f"{side} front wheel", pos=[card.front_axle, y, radius])
        front.add_joint(name=f"{side} steering", type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
        for body, place in ((front, [0, 0, 0]), (car, [-card.rear_axle, y, radius])):
            ends = [place[0], place[1] - 0.5 * thick, place[2], place[0], place[1] + 0.5 * thick, place[2]]
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_CYLINDER, fromto=ends, size=[radius, 0, 0], rgba=SLATE)
    return spec


def joints(states: np.ndarray) -> np.ndarray:
    """(m, 5) joint positions of the drawing, of x, y (m), heading and steering angle (rad), (m, 4)."""
    return np.concatenate([states, states[:, 3:]], 1)


def at_rest(card: CarCard) -> tuple[mujoco.MjModel, np.ndarray]:
    """The drawing, and poses (bodies, 7) of a car at the origin with its wheels a little turned."""
    model = draw_car(card)
    return model, Poser(model).poses(joints(np.array([[0.0, 0.0, 0.0, 0.2]])))[0]
