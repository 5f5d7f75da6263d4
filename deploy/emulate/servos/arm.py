"""An arm of bus servos: the card's arm in MuJoCo behind them, and the calibration file that LeRobot would write."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN, JointCalibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import STEP
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP
from robo_rl.sim.robots.arm import ArmCard, load_arm

TICK = 0.005  # s


class Drive(NamedTuple):
    """What a servo's motor does."""

    goal: float
    """Steps."""
    stiffness: float
    damping: float
    """N m/rad and N m s/rad; without torque the stiffness is 0."""
    part: float
    """Of the greatest torque."""


class EmulatedArm(ABC):
    """The arm as its servos move it."""

    servos: Sequence[Any]
    bus: Any
    """Has ``servos`` by ID, answers what is sent, and has ``others`` who send too."""

    def __init__(self, card: ArmCard | None, offsets: Sequence[int], make: Callable[[JointCalibration], Any]) -> None:
        """``offsets``: homing offsets, steps; ``make``: a servo, as LeRobot leaves it."""
        self.card = card or load_arm("so101")
        self.plant = MujocoPlant(
            self.card.mechanism, 1, TICK, physics=dataclasses.replace(GRASP, contacts="model"), threads=1
        )
        self.joints = [*self.card.joints, self.card.gripper.joint]
        self.calibration = {
            joint.name: calibrated(i + 1, offset, joint.lower, joint.upper)
            for i, (joint, offset) in enumerate(zip(self.joints, offsets, strict=True))
        }
        self._zeros = [0.5 * (joint.lower + joint.upper) for joint in self.joints]
        self._count, self._left = len(self.card.joints), 0.0
        self._drives: tuple[tuple[float, ...], ...] = ()
        self._nominal = self.plant.nominal
        self.servos = [make(one) for one in self.calibration.values()]

    @abstractmethod
    def drive(self, servo: Any) -> Drive:
        """As the servo's registers have it."""

    @abstractmethod
    def tell(self, servo: Any, one: JointCalibration, steps: float, rate: float) -> None:
        """Let a servo measure what its calibration ``one`` has at ``steps``, at ``rate`` steps/s."""

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

    def advance(self, seconds: float, servos: Mapping[int, Any] | None = None) -> None:
        """Move on by whole ticks; what is left of ``seconds`` counts the next time."""
        servos = self.bus.servos if servos is None else servos
        self._left += seconds
        while self._left >= TICK:
            self._left -= TICK
            drives = [self.drive(servos[one.id]) for one in self.calibration.values()]
            self._set_drives(drives)
            rows = zip(self.calibration.values(), self._zeros, drives, strict=True)
            both = torch.tensor(
                [[zero + STEP * (drive.goal - one.middle) for one, zero, drive in rows]], dtype=torch.float32
            )
            self.plant.step(
                {"joint_position_target": both[:, : self._count], "gripper_position_target": both[:, self._count :]}
            )
            self.tell_all(servos)
            self.bus.others(TICK)

    def tell_all(self, servos: Mapping[int, Any]) -> None:
        """Let all servos measure."""
        rows = zip(self.calibration.values(), self._zeros, self.position, self.velocity, strict=True)
        for one, zero, angle, rate in rows:
            self.tell(servos[one.id], one, (angle - zero) / STEP + one.middle, rate / STEP)

    def _set_drives(self, drives: Sequence[Drive]) -> None:
        """Gains and torques as the registers have them."""
        wanted = tuple(tuple(drive[1:]) for drive in drives)
        if wanted == self._drives:
            return
        self._drives = wanted
        stiffness, damping, part = torch.tensor(wanted, dtype=torch.float32).T
        for name, value in (
            ("stiffness", stiffness), ("damping", damping), ("resistance", self._nominal.resistance / part),
        ):  # fmt: skip
            parameter = self.plant.param(name)
            parameter[:] = value.to(parameter)
        self.plant.refresh(torch.tensor([0]))


def calibrated(id: int, offset: int, lower: float, upper: float) -> JointCalibration:
    """What LeRobot finds of a joint with stops at ``lower`` and ``upper`` (rad): its middle is at 2047."""
    half = int(0.5 * (upper - lower) / STEP)
    return JointCalibration(id, 0, offset, max(0, 2047 - half), min(TURN - 1, 2047 + half))
