"""Multirotors whose rigid bodies MuJoCo moves, to see whether a policy depends on our own integrator.

The air's forces and the motors' lag are those of ``robo_rl.sim.plants.multirotor``, computed here once per
millisecond in
double precision and in matrix form; motion, attitude and Euler's equations are MuJoCo's. Slow: for tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch
from torch import Tensor

from robo_rl.sim.plants.multirotor import MultirotorParameters, MultirotorPlant
from robo_rl.sim.robots.multirotor import GRAVITY, MultirotorCard

TIMESTEP = 0.001  # s
MODEL = f"""<mujoco>
  <option timestep="{TIMESTEP}" gravity="0 0 -{GRAVITY}" integrator="implicit"><flag contact="disable"/></option>
  <worldbody><body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>
</mujoco>"""


class FlyingMujoco(MultirotorPlant):
    """As ``MultirotorPlant``, with the same state and parameters."""

    dynamics = None  # type: ignore[assignment]  # MuJoCo is no pure function

    def __init__(self, card: MultirotorCard, n: int, period: float) -> None:
        """``period`` is the control period in s, a whole number of milliseconds."""
        super().__init__(card, n, period)
        self._batch = Batch(mujoco.MjModel.from_xml_string(MODEL), n, torch.get_num_threads())
        self._place, self._speed = self._batch.bind("qpos"), self._batch.bind("qvel")
        self._wrench = self._batch.bind("xfrc_applied")
        self._mass, self._inertia = self._batch.expand("body_mass"), self._batch.expand("body_inertia")

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``rotor_speed`` commands (n, R), rad/s, held constant."""
        given = {name: getattr(self.parameters, name) for name in MultirotorParameters._fields}
        p = MultirotorParameters(**{k: v.expand(self.n, *v.shape[1:]).double().numpy() for k, v in given.items()})
        position, orientation, linear, angular, rotors = (value.double().numpy() for value in self.current)
        if not (np.array_equal(self._mass[:, 1], p.mass) and np.array_equal(self._inertia[:, 1], p.inertia)):
            self._mass[:, 1], self._inertia[:, 1] = p.mass, p.inertia
            self._batch.set_const()
        self._place[:] = np.concatenate([position, orientation[:, (3, 0, 1, 2)]], 1)
        self._speed[:] = np.concatenate([linear, angular], 1)
        command = commands["rotor_speed"].double().numpy()
        lag = np.where(command > rotors, np.asarray(p.rise_time)[:, None], np.asarray(p.fall_time)[:, None])
        half, whole = np.exp(-0.5 * TIMESTEP / lag), np.exp(-TIMESTEP / lag)  # of a step, what is left of a lag
        for _ in range(round(self.period / TIMESTEP)):
            middle = command + (rotors - command) * half
            self._wrench[:, 1] = wrench(self._place, self._speed, middle, (command - middle) / lag, p)
            self._batch.step()
            rotors = command + (rotors - command) * whole
        parts = (self._place[:, :3], self._place[:, (4, 5, 6, 3)], self._speed[:, :3], self._speed[:, 3:], rotors)
        for mine, found in zip(self.current, parts, strict=True):
            mine.copy_(torch.from_numpy(np.ascontiguousarray(found)))


def wrench(place: np.ndarray, speed: np.ndarray, rotors: np.ndarray, change: np.ndarray, p: Any) -> np.ndarray:
    """(n, 6) N and N m, world: of rotors that turn at (n, R) rad/s, (n, R) rad/s² faster, and of the air.

    ``p`` has the arrays of ``MultirotorParameters``.
    """
    w, x, y, z = place[:, 3:].T
    up = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]).T
    c0, c1, c2 = np.moveaxis(p.thrust, -1, 0)
    thrust = p.thrust_scale * (c0 + c1 * rotors + c2 * rotors**2)
    inertia = p.rotor_inertia[:, None]
    yaw = -(p.spin * (p.torque_ratio * thrust + inertia * change)).sum(1)
    momentum = (p.spin * inertia * rotors).sum(1)  # about the body's z axis
    roll = (p.rotor_position[..., 1] * thrust).sum(1) - speed[:, 4] * momentum
    pitch = -(p.rotor_position[..., 0] * thrust).sum(1) + speed[:, 3] * momentum
    torque = np.array([roll, pitch, yaw]).T + p.torque
    air = speed[:, :3] - p.wind
    along = (up * air).sum(1)[:, None] * up
    in_plane, axial = (column[:, None] for column in p.rotor_drag.T)
    drag = rotors.sum(1)[:, None] * (in_plane * (air - along) + axial * along)
    drag = drag + p.body_drag[:, None] * np.sqrt((air * air).sum(1))[:, None] * air
    force = thrust.sum(1)[:, None] * up - drag + p.force
    return np.concatenate([force, turned(place[:, 3:], torque)], 1)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of vectors (n, 3), in a third of the time that numpy takes for few of them."""
    (ax, ay, az), (bx, by, bz) = a.T, b.T
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]).T


def turned(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors (n, 3) turned by quaternions (n, 4) w, x, y, z."""
    w, axis = quaternion[:, :1], quaternion[:, 1:]
    twice = 2 * cross(axis, vector)
    return vector + w * twice + cross(axis, twice)
