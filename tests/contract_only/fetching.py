"""Arms whose joints are servos, on a table or on a base with driven wheels, from their makers' models and a contract.

The base's wheels follow with a lag and within their acceleration; its odometry takes them for a little more or less
than they are.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from tests.contract_only.handling import STEP, Arm
from tests.contract_only.interface import Arrays, Draws, Policy

PLANE = ("base_x", "base_y", "base_yaw")
"""Joints of the model that stand for the wheels."""


class Servos(Arm):
    """Gravity is not compensated beneath them."""

    aim, heavy = "joint_position_target", 0.1

    def __init__(self, policy: Policy, draw: Draws, i: int, file: Path) -> None:
        super().__init__(policy, draw, i, file)
        facts, efforts = policy.facts["joints"], {a["name"]: a["effort"] for a in policy.robot["actuators"]}
        self.effort = self.factor["strength"] * np.array([efforts[name] for name in facts["names"]])
        self.shoulder = np.array(policy.robot["facts"]["chain"][0]["position"][:2])
        self.model.dof_armature[self.arm] = np.array(facts["armature"]) * float(draw("armature", otherwise=1.0)[i])
        self.model.dof_frictionloss[self.arm] = facts["friction"]

    def truth(self) -> Arrays:
        data = self.data
        return {
            "joint_position": data.qpos[self.joints].copy(), "joint_velocity": data.qvel[self.arm].copy(),
            "gripper_position": data.qpos[self.places[:1]].copy(), "cube_position": data.body("cube").xpos.copy(),
        }  # fmt: skip

    def step(self, told: Arrays) -> None:
        data = self.data
        mujoco.mj_step1(self.model, data)
        stiffness = self.factor["stiffness"] * np.array(self.law["stiffness"])
        damping = self.factor["damping"] * np.array(self.law["damping"])
        torque = stiffness * (told[self.aim] - data.qpos[self.joints]) - damping * data.qvel[self.arm]
        data.qfrc_applied[self.arm] = np.clip(torque, -self.effort, self.effort)
        self.pull(told)
        mujoco.mj_step2(self.model, data)

    def heading(self, place: np.ndarray) -> float:
        """The hand points away from the first joint's axis."""
        x, y = place - self.shoulder
        return float(np.arctan2(y, x))

    def begin(self) -> Arrays:
        told = self.truth()
        return {self.aim: told["joint_position"], "gripper_position_target": told["gripper_position"]}


class Fetcher(Servos):
    """On wheels."""

    def __init__(self, policy: Policy, draw: Draws, i: int, file: Path) -> None:
        super().__init__(policy, draw, i, file)
        drive = policy.facts["drive"]
        self.motor = drive["motor_time"] * float(draw("motor_time", otherwise=1.0)[i])
        part = float(draw("acceleration", otherwise=1.0)[i])
        self.pick_up = part * np.array([drive["acceleration"], drive["turn_acceleration"]])
        self.scale = np.array([float(draw(name, otherwise=1.0)[i]) for name in ("speed_scale", "turn_scale")])
        self.plane = [self.model.joint(name).qposadr[0] for name in PLANE]
        self.wheels = [self.model.joint(name).dofadr[0] for name in PLANE]
        self.moving, self.odometer = np.zeros(2), np.zeros(3)
        """m/s and rad/s; m, m and rad."""

    def truth(self) -> Arrays:
        x, y, yaw = self.data.qpos[self.plane]
        c, s = np.cos(yaw), np.sin(yaw)
        told, half = super().truth(), 0.5 * self.odometer[2]
        away = told["cube_position"] - [x, y, 0.0]
        told["cube_position"] = np.array([c * away[0] + s * away[1], c * away[1] - s * away[0], away[2]])
        return told | {
            "position": self.odometer[:2].copy(), "orientation": np.array([0.0, 0.0, np.sin(half), np.cos(half)]),
        }  # fmt: skip

    def step(self, told: Arrays) -> None:
        wanted = np.array([told["forward_speed"][0], told["turn_rate"][0]])
        self.moving = self.moving + STEP * np.clip((wanted - self.moving) / self.motor, -self.pick_up, self.pick_up)
        speed, turn = self.moving / self.scale
        yaw = self.data.qpos[self.plane[2]]
        self.data.qvel[self.wheels] = speed * np.cos(yaw), speed * np.sin(yaw), turn
        super().step(told)
        heading = self.odometer[2]
        self.odometer += STEP * np.array([self.moving[0] * np.cos(heading), self.moving[0] * np.sin(heading),
                                          self.moving[1]])  # fmt: skip

    def begin(self) -> Arrays:
        return {**super().begin(), "forward_speed": np.zeros(1), "turn_rate": np.zeros(1)}

    def scatter(self, draw: Draws, i: int, placing: bool) -> np.ndarray:
        """The cube around the base, and its place around the cube."""
        way, goal = (float(draw(f"{name}.direction")[i]) for name in ("initial", "goal"))
        cube = float(draw("initial.distance")[i]) * np.array([np.cos(way), np.sin(way)])
        self.put_cube(cube, way + float(draw("initial.yaw")[i]))
        place = cube + float(draw("goal.way")[i]) * np.array([np.cos(goal), np.sin(goal)])
        return np.array([*place, self.half])

    @property
    def inside(self) -> bool:
        """An episode counts from its beginning."""
        return True
