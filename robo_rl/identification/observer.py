"""A simulated robot that follows a record: the prediction of its sensors under given parameters.

Between control steps the simulation runs as ever; at each, a part of the prediction's error is added to its state
(a Luenberger observer). So neither unknown first states nor the chaos of contacts add up, and what the parameters do to
every step stays. The parts are small: what they let in of the sensors' noise biases the parameters.

A target that reaches the motors a delay late is, in each physics step, the mean of what it was in that time: so the
delay need not be a whole number of steps.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from robo_rl.identification.estimate import Unknown
from robo_rl.identification.recorded import Record
from sim.plants.mujoco_cpu import MujocoPlant
from sim.plants.physics import LONGEST_DELAY, Physics
from sim.robots.mechanism import Mechanism

ATTITUDE, RATE, ANGLE, SPEED = 0.03, 0.05, 0.05, 0.01
"""Parts of the errors of attitude, body rates, joint angles and speeds that are corrected at each control step."""
FACTORS = ("joint_friction", "armature", "stiffness", "damping")


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


class Observer:
    """Simulated robots that follow one record."""

    def __init__(self, mechanism: Mechanism, record: Record, physics: Physics, unknowns: tuple[Unknown, ...]) -> None:
        self.mechanism, self.record, self.physics, self.unknowns = mechanism, record, physics, unknowns
        joints = len(mechanism.joints)
        self.first = math.ceil(LONGEST_DELAY / record.period) + 1
        """The first step with all targets that may still be on their way."""
        turn, rate, angle, speed = record.noise
        self.noise = np.concatenate([[turn] * 3, [rate] * 3, [angle] * joints, [speed] * joints])
        begin = np.zeros((1, joints))
        self._sent = np.concatenate([begin, np.cumsum(record.target, 0) * record.period])
        self._smooth = [
            savgol_filter(x, 5, 2, deriv=k, delta=record.period, axis=0)
            for x, k in ((record.angular_velocity, 0), (record.joint_position, 0), (record.joint_position, 1))
        ]
        self._plant: MujocoPlant | None = None

    def follow(
        self, inner: np.ndarray, starts: np.ndarray, steps: int, states: np.ndarray | None = None,
        corrected: bool = True, keep: np.ndarray | None = None,
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:  # fmt: skip
        """Follow the record from each of ``starts`` (n,) on, under the parameters ``inner`` (m, P).

        ``states`` (n, S) are where to start, as ``keep`` gave them; without, they are guessed. Returns errors of the
        prediction, (m, n, steps + 1, 6 + 2 J) rad and rad/s: attitude, body rates, joint angles, speeds; and, of the
        first parameters, the states at the steps ``keep`` (of several runs, that of the one longest on its way).
        """
        m, n, period, h = len(inner), len(starts), self.record.period, self.physics.timestep
        plant = self._sized(m * n)
        step = np.tile(starts, m)
        late = self._set(plant, np.repeat(inner, n, 0))
        if states is None:
            self._guess(plant, step)
        else:
            plant.refresh(torch.arange(m * n))
            plant.batch.state[:] = np.tile(states, (m, 1))
        control, substeps = plant.batch.bind("ctrl"), round(period / h)
        errors, kept = np.empty((m * n, steps + 1, len(self.noise))), {}
        wanted = set() if keep is None else {int(k) for k in keep}
        for k in range(steps + 1):
            for row in range(n if wanted else 0):
                if int(step[row]) + k in wanted:
                    kept[int(step[row]) + k] = plant.batch.state[row].copy()
            errors[:, k] = self._compare(plant, step + k, corrected)
            if k == steps:
                break
            for j in range(substeps):
                begin = (step + k) * period + j * h - late
                control[:] = (self._until(begin + h) - self._until(begin)) / h
                plant.batch.step(nstep=1)
        return errors.reshape(m, n, steps + 1, -1), kept

    def _sized(self, rows: int) -> MujocoPlant:
        """Robots that are stepped once per physics step."""
        if self._plant is None or self._plant.n != rows:
            self._plant = MujocoPlant(self.mechanism, rows, self.physics.timestep, self.physics)
        return self._plant

    def _set(self, plant: MujocoPlant, inner: np.ndarray) -> np.ndarray:
        """Give the robots their parameters; returns how late targets reach their motors, (n,) s."""
        values = {u.name: torch.full((plant.n,), u.nominal, dtype=torch.float64) for u in UNKNOWNS}
        for unknown, column in zip(self.unknowns, inner.T, strict=True):
            values[unknown.name] = torch.from_numpy(np.exp(column) if unknown.factor else column.copy())
        nominal, base = plant.nominal, plant.indices.base - 1
        for name in FACTORS:
            plant.param(name)[:] = getattr(nominal, name) * values[name][:, None]
        plant.param("resistance")[:] = nominal.resistance / values["strength"][:, None]
        plant.param("mass")[:, base] = nominal.mass[:, base] + values["payload"]
        plant.param("ground_friction")[:] = values["ground_friction"]
        for i, axis in enumerate("xyz"):
            offset = values[f"center_of_mass/{axis}"]
            plant.param("center_of_mass")[:, base, i] = nominal.center_of_mass[:, base, i] + offset
        return values["command_delay"].clamp(0.0, LONGEST_DELAY).numpy()

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

    def _until(self, time: np.ndarray) -> np.ndarray:
        """∫ target dt to a time (n,) in s since the record's first target."""
        period, target = self.record.period, self.record.target
        i = np.clip(np.floor(time / period + 1e-9).astype(int), 0, len(target) - 1)
        return self._sent[i] + (time - i * period)[:, None] * target[i]

    def _compare(self, plant: MujocoPlant, step: np.ndarray, corrected: bool) -> np.ndarray:
        """(n, 6 + 2 J) what was measured less what the robots feel, of which a part is added to their states."""
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
