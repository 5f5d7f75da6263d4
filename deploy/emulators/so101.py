"""An SO-101 on its bus: the card's arm in MuJoCo behind six servos, and the calibration file that LeRobot would have
written for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import torch

from deploy.drivers.feetech import registers as r
from deploy.drivers.feetech.calibration import JointCalibration
from deploy.drivers.feetech.mapping import D_GAIN, STEP
from deploy.emulators.servos import Servo, ServoBus
from sim.plants.mujoco_cpu import MujocoPlant
from sim.plants.physics import GRASP
from sim.robots.arm import ArmCard, load_arm

TICK = 0.005  # s
P_OF_CARD = 16
"""At which the card's stiffness was identified."""
OFFSETS = (-1470, 812, 33, -250, 1999, 640)
"""Steps: how the horns of this arm were mounted; any numbers."""


class Arm:
    """The arm as its servos move it."""

    def __init__(self, card: ArmCard | None = None) -> None:
        self.card = card or load_arm("so101")
        self.plant = MujocoPlant(
            self.card.mechanism, 1, TICK, physics=dataclasses.replace(GRASP, contacts="model"), threads=1
        )
        self.joints = [*self.card.joints, self.card.gripper.joint]
        self.calibration = {
            joint.name: calibrated(i + 1, offset, joint.lower, joint.upper)
            for i, (joint, offset) in enumerate(zip(self.joints, OFFSETS, strict=True))
        }
        self._zeros = [0.5 * (joint.lower + joint.upper) for joint in self.joints]
        self._middles = [one.middle for one in self.calibration.values()]
        self._count, self._left = len(self.card.joints), 0.0
        self._drives: tuple[tuple[float, float], ...] = ()
        self._nominal = self.plant.nominal
        self.servos = self._servos()
        self.bus = ServoBus(self.servos)
        self._tell(self.bus.servos)

    def _servos(self) -> list[Servo]:
        """As LeRobot leaves them: calibrated, with its gains, torque off."""
        servos = []
        for one in self.calibration.values():
            servo = Servo(one.id, one.homing_offset)
            for register, value in (
                (r.LOWER_LIMIT, one.range_min), (r.UPPER_LIMIT, one.range_max), (r.P, P_OF_CARD), (r.D, D_GAIN),
                (r.RETURN_DELAY, 0), (r.GOAL_POSITION, r.TURN // 2),
            ):  # fmt: skip
                servo.set(register, value)
            servo.eeprom[:] = servo.registers
            servos.append(servo)
        return servos

    @property
    def position(self) -> np.ndarray:
        """(6,) rad, true."""
        truth = self.plant.truth()
        return np.concatenate([truth["joint_position"][0].numpy(), truth["gripper_position"][0].numpy()])

    @property
    def velocity(self) -> np.ndarray:
        """(6,) rad/s, true."""
        truth = self.plant.truth()
        return np.concatenate([truth["joint_velocity"][0].numpy(), truth["gripper_velocity"][0].numpy()])

    def advance(self, seconds: float, servos: Mapping[int, Servo] | None = None) -> None:
        """Move on by whole ticks; what is left of ``seconds`` counts the next time."""
        servos = self.bus.servos if servos is None else servos
        self._left += seconds
        while self._left >= TICK:
            self._left -= TICK
            self._set_drives(servos)
            goals = [
                zero + STEP * (self._goal(servos[one.id]) - middle)
                for one, zero, middle in zip(self.calibration.values(), self._zeros, self._middles, strict=True)
            ]
            both = torch.tensor([goals], dtype=torch.float32)
            self.plant.step(
                {"joint_position_target": both[:, : self._count], "gripper_position_target": both[:, self._count :]}
            )
            self._tell(servos)

    @staticmethod
    def _goal(servo: Servo) -> int:
        return min(max(servo.get(r.GOAL_POSITION), servo.get(r.LOWER_LIMIT)), servo.get(r.UPPER_LIMIT))

    def _set_drives(self, servos: Mapping[int, Servo]) -> None:
        """Gains and torques as the registers have them."""
        drives = []
        for one in self.calibration.values():
            servo = servos[one.id]
            powered = servo.alive and servo.get(r.TORQUE_ENABLE) == 1
            limit = min(servo.get(r.TORQUE_LIMIT), servo.get(r.MAX_TORQUE)) / 1000
            drives.append((servo.get(r.P) / P_OF_CARD if powered else 0.0, max(limit, 0.01)))
        if tuple(drives) == self._drives:
            return
        self._drives = tuple(drives)
        gains, limits = torch.tensor(drives, dtype=torch.float32).T
        stiffness, resistance = self.plant.param("stiffness"), self.plant.param("resistance")
        stiffness[:] = self._nominal.stiffness * gains.to(stiffness)
        resistance[:] = self._nominal.resistance / limits.to(resistance)
        self.plant.refresh(torch.tensor([0]))

    def _tell(self, servos: Mapping[int, Servo]) -> None:
        rows = zip(self.calibration.values(), self._zeros, self._middles, self.position, self.velocity, strict=True)
        for one, zero, middle, angle, rate in rows:
            servo = servos[one.id]
            moved = servo.get(r.OFFSET) - one.homing_offset  # calibrated anew since
            servo.measure((angle - zero) / STEP + middle - moved, rate / STEP)


def calibrated(id: int, offset: int, lower: float, upper: float) -> JointCalibration:
    """What LeRobot finds of a joint with stops at ``lower`` and ``upper`` (rad): its middle is at 2047."""
    half = int(0.5 * (upper - lower) / STEP)
    return JointCalibration(id, 0, offset, max(0, 2047 - half), min(r.TURN - 1, 2047 + half))
