"""A robot on legs in MuJoCo, on a plane, from its maker's model and the contract: its servos and its commands."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from tests.contract_only.interface import Arrays, Draws, Policy, Sensors

STEP, SEGMENT = 0.002, 5.0
"""s; s between changes of what is commanded."""


class Walker:
    """One, with what was drawn for it."""

    def __init__(self, policy: Policy, draw: Draws, i: int, file: Path) -> None:
        spec, facts = mujoco.MjSpec.from_file(str(file)), policy.facts["joints"]

        def times(name: str) -> float:
            return float(draw(name, otherwise=1.0)[i])

        spec.option.timestep, ground = STEP, times("ground_friction")
        for shape in spec.geoms:  # of the robot, which the ground alone touches
            shape.contype, shape.conaffinity, shape.condim = 1, 0, 3
            shape.friction[0] = ground
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=[50, 50, 1], contype=0, conaffinity=1, friction=[1e-3, 0.005, 1e-4]
        )
        names, motors = facts["names"], policy.robot["actuators"]
        armature, friction = times("armature"), times("joint_friction")
        for name, motor, rotor, dry in zip(names, motors, facts["armature"], facts["friction"], strict=True):
            joint = spec.joint(name)
            joint.armature, joint.frictionloss = armature * rotor, friction * dry
            joint.range, joint.limited = [motor["lower"], motor["upper"]], mujoco.mjtLimited.mjLIMITED_TRUE
        self.model = model = spec.compile()
        base = model.body(model.jnt_bodyid[0]).id
        model.body_mass[base] = times("base_mass") * model.body_mass[base] + float(draw("payload")[i])
        self.data, self.base = mujoco.MjData(model), base
        self.places = [model.joint(name).qposadr[0] for name in names]
        self.speeds = [model.joint(name).dofadr[0] for name in names]
        (law,) = (c["law"] for c in policy.contract["commands"])
        self.stiffness = times("stiffness") * np.array(law["stiffness"])
        self.damping = times("damping") * np.array(law["damping"])
        self.effort = np.array([motor["effort"] for motor in motors])
        self.fastest, self.strength = np.array([motor["speed"] for motor in motors]), times("strength")

    def put(self, joints: np.ndarray, turn: np.ndarray, height: float | None = None) -> None:
        """With its joints so (rad), its base turned (x, y, z, w), at a height (m) or where it touches the ground."""
        data = self.data
        data.qpos[:7] = 0.0, 0.0, 1.2 if height is None else height, turn[3], *turn[:3]
        data.qpos[self.places] = joints
        mujoco.mj_forward(self.model, data)
        while height is None and not data.ncon:
            data.qpos[2] -= 0.005
            mujoco.mj_forward(self.model, data)

    def truth(self) -> Arrays:
        """(k,) each."""
        w, x, y, z = self.data.qpos[3:7]
        return {
            "orientation": np.array([x, y, z, w]), "angular_velocity": self.data.qvel[3:6].copy(),
            "joint_position": self.data.qpos[self.places].copy(), "joint_velocity": self.data.qvel[self.speeds].copy(),
        }  # fmt: skip

    def step(self, target: np.ndarray) -> None:
        """2 ms."""
        angle, speed = self.data.qpos[self.places], self.data.qvel[self.speeds]
        torque = self.stiffness * (target - angle) - self.damping * speed
        left = self.strength * self.effort * (1.0 - np.sign(torque) * speed / self.fastest)
        most = np.clip(left, 0.0, self.effort)
        self.data.qfrc_applied[self.speeds] = np.clip(torque, -most, most)
        mujoco.mj_step(self.model, self.data)

    @property
    def upright(self) -> float:
        """The cosine of the base's tilt."""
        return float(self.data.xmat[self.base, 8])


def success(file: Path, model: Path, n: int, seed: int = 0, seconds: float | None = None) -> float:
    """The part of n robots that don't fall, or that get up and stand, and go on for so long."""
    policy = Policy(file, n)
    draw = Draws(policy, seed)
    walkers, sensors = [Walker(policy, draw, i, model) for i in range(n)], Sensors(policy, draw, STEP)
    stand, limits = np.array(policy.robot["facts"]["stand"]), policy.facts["success"]
    rising = "within_s" in limits
    heights = np.zeros(n)
    for i, walker in enumerate(walkers):
        walker.put(stand, np.array([0.0, 0.0, 0.0, 1.0]))
        heights[i] = walker.data.qpos[2]
        if rising:
            turn = draw.random.standard_normal(4)
            stops = np.array([[a["lower"], a["upper"]] for a in policy.robot["actuators"]])
            walker.put(draw.random.uniform(*stops.T), turn / np.linalg.norm(turn), 0.7)
    good, per = np.ones(n, bool), round(policy.period / STEP)
    late = np.rint(draw("command_delay") / STEP).astype(int)
    before = np.stack([walker.truth()["joint_position"] for walker in walkers])
    wanted = {s["name"]: s for s in policy.contract["signals"] if s["source"] == "operator"}
    steps = round((seconds or policy.facts["episode"]) / policy.period)
    for k in range(steps):
        if k % round(SEGMENT / policy.period) == 0:
            x, y, yaw = (draw(f"command.{name}") for name in ("x", "y", "yaw"))
        told = {"linear_velocity_command": np.stack([x, y], 1), "yaw_rate_command": yaw[:, None]} if wanted else {}
        if not k:
            _note(sensors, walkers)
        target = policy({**sensors.read(), **told})["joint_position_target"]
        for j in range(per):
            for i in np.flatnonzero(good):
                walkers[i].step(target[i] if j >= late[i] else before[i])
            _note(sensors, walkers)
        before = target
        for i, walker in enumerate(walkers):
            if rising and k * policy.period > limits["within_s"]:
                high = walker.data.qpos[2] > limits["higher_than_part_of_stand"] * heights[i]
                good[i] &= high and walker.upright > np.cos(limits["tilt_below_rad"])
            elif not rising:
                high = walker.data.qpos[2] > limits["base_higher_than_m"]
                good[i] &= high and walker.upright > np.cos(limits["tilt_below_rad"])
    return float((good & ~policy.refused).mean())


def _note(sensors: Sensors, walkers: list[Walker]) -> None:
    truth = [walker.truth() for walker in walkers]
    for name in truth[0]:
        sensors.note(name, np.stack([one[name] for one in truth]))
