"""A simulated robot on legs that follows a recorded walk (``following``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation
from torch import Tensor

from robo_rl.identification.estimate import Unknown
from robo_rl.identification.following import ANGLE, SPEED, Following
from robo_rl.identification.recorded import Record
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import LONGEST_DELAY, Physics
from robo_rl.sim.robots.mechanism import Mechanism

ATTITUDE, RATE = 0.03, 0.05
"""Parts of the errors of attitude and body rates that are corrected at each control step."""

UNKNOWNS = (
    Unknown("joint_friction", "× nominal", 1.0, 0.02, 20.0, spread=1.0, step=0.2, bias=0.04, enough=0.15),
    Unknown("armature", "× nominal", 1.0, 0.1, 10.0, spread=0.7, step=0.1, bias=0.03, enough=0.15),
    Unknown("stiffness", "× nominal", 1.0, 0.3, 3.0, spread=0.3, step=0.06, bias=0.015, enough=0.1),
    Unknown("damping", "× nominal", 1.0, 0.1, 10.0, spread=0.7, step=0.15, bias=0.03, enough=0.15),
    Unknown("payload", "kg", 0.0, -3.0, 20.0, spread=5.0, step=0.5, bias=0.25, enough=0.5, factor=False),
    Unknown("command_delay", "s", 0.0, 0.0, LONGEST_DELAY, 0.03, 0.003, bias=0.0005, enough=0.005, factor=False),
    Unknown("ground_friction", "", 0.8, 0.05, 2.0, spread=0.5, step=0.2, bias=0.03, enough=0.2),
    Unknown("strength", "× nominal", 1.0, 0.2, 2.0, spread=0.3, step=0.1, bias=0.06, enough=0.1),
    Unknown("center_of_mass/x", "m", 0.0, -0.1, 0.1, spread=0.03, step=0.01, bias=0.002, enough=0.01, factor=False),
    Unknown("center_of_mass/y", "m", 0.0, -0.1, 0.1, spread=0.03, step=0.01, bias=0.002, enough=0.01, factor=False),
    Unknown("center_of_mass/z", "m", 0.0, -0.1, 0.1, spread=0.03, step=0.02, bias=0.01, enough=0.02, factor=False),
)


class Observer(Following):
    """Simulated robots that follow one walk; errors are rad and rad/s."""

    record: Record

    def __init__(self, mechanism: Mechanism, record: Record, physics: Physics, unknowns: tuple[Unknown, ...]) -> None:
        super().__init__(mechanism, record, physics, unknowns)
        joints = len(mechanism.joints)
        self.groups = {"attitude": 3, "body rates": 3, "joint angles": joints, "joint speeds": joints}
        self.noise = np.repeat(record.noise, list(self.groups.values()))
        self._smooth = [
            savgol_filter(x, 5, 2, deriv=k, delta=record.period, axis=0)
            for x, k in ((record.angular_velocity, 0), (record.joint_position, 0), (record.joint_position, 1))
        ]

    def _load(self, plant: MujocoPlant, values: Mapping[str, Tensor]) -> None:
        """A load at the base, and the ground."""
        nominal, base = plant.nominal, plant.indices.trunk - 1
        if "payload" in values:
            plant.param("mass")[:, base] = nominal.mass[:, base] + values["payload"]
        friction = next(unknown.nominal for unknown in UNKNOWNS if unknown.name == "ground_friction")
        plant.param("ground_friction")[:] = values.get("ground_friction", torch.tensor(friction, dtype=torch.float64))
        for i, axis in enumerate("xyz"):
            if (offset := values.get(f"center_of_mass/{axis}")) is not None:
                plant.param("center_of_mass")[:, base, i] = nominal.center_of_mass[:, base, i] + offset

    def _guess(self, plant: MujocoPlant, step: np.ndarray) -> None:
        """Put the robots where the sensors say, their two lowest feet on the ground, at the commanded velocity."""
        n = len(step)
        attitude = self.record.orientation[step]
        heading = Rotation.from_euler("z", Rotation.from_quat(attitude).as_euler("ZYX")[:, :1])
        velocity = heading.apply(np.pad(self.record.velocity[step], ((0, 0), (0, 1))))
        rates, angles, speeds = (x[step] for x in self._smooth)
        place = np.zeros((n, 3))
        for _ in range(2):  # first to see where the feet are
            parts = (place, attitude, velocity, rates, angles, speeds)
            plant.place(torch.arange(n), *(torch.from_numpy(part) for part in parts))
            feet = plant.truth()["foot_position"].double().numpy()[:, 2::3]
            radius = np.array([plant.model.geom(foot).size[0] for foot in self.mechanism.points])
            place[:, 2] -= np.sort(feet - radius, 1)[:, :2].mean(1)

    def _compare(self, plant: MujocoPlant, step: np.ndarray, corrected: bool) -> np.ndarray:
        record, indices = self.record, plant.indices
        qpos, qvel = plant.batch.bind("qpos"), plant.batch.bind("qvel")
        quaternion = indices.free_position + np.array([4, 5, 6, 3])  # MuJoCo has w first
        spin = slice(indices.free_velocity + 3, indices.free_velocity + 6)
        attitude = Rotation.from_quat(qpos[:, quaternion])
        turn = (attitude.inv() * Rotation.from_quat(record.orientation[step])).as_rotvec()
        rate = record.angular_velocity[step] - qvel[:, spin]
        angle = record.joint_position[step] - qpos[:, indices.position]
        speed = record.joint_velocity[step] - qvel[:, indices.velocity]
        if corrected:
            qpos[:, quaternion] = (attitude * Rotation.from_rotvec(ATTITUDE * turn)).as_quat()
            qvel[:, spin] += RATE * rate
            qpos[:, indices.position] += ANGLE * angle
            qvel[:, indices.velocity] += SPEED * speed
        return np.concatenate([turn, rate, angle, speed], 1)
