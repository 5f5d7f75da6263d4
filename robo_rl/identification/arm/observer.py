"""A simulated arm that follows its recorded motion (``following``); what it carries is at its hand.

It moves under the recorded targets alone: no part of an error is added to its state. A servo forgets within a second
where it began. And the targets of a policy follow its sensors: noise that came into the state would be taken for an
effect of the targets that it came into, too.

Measurements have an age: the prediction is that of a time between two control steps.

Nor does it touch anything: a hand that meets the table under some parameters and misses it under others makes a search
stop there. Pieces of the record in which the arm touched something are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
import torch
from scipy.signal import savgol_filter
from torch import Tensor

from robo_rl.identification.arm.motion import Motion
from robo_rl.identification.estimate import Unknown
from robo_rl.identification.following import Following
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.tasks.arm.physical import hand_body

TOGETHER = 0.1
"""By which the logarithms of all factors are varied together."""
CLEAR = 0.005
"""m, from everything else, beyond which an arm certainly touches nothing: a sensor's noise moves a hand by 1 mm."""
FORGOTTEN = 50
"""Control steps after which a servo has forgotten a touch."""


class ArmObserver(Following):
    """Simulated arms that follow one motion; errors are rad and rad/s. A gripper goes where it is told to."""

    @property
    def age_in_delay(self) -> float:
        return 0.0

    record: Motion
    card: ArmCard
    """Set by ``of``."""

    @classmethod
    def of(cls, card: ArmCard) -> type[ArmObserver]:
        """Observers of arms of a card."""
        return type("ArmObserver", (cls,), {"card": card})

    def __init__(self, mechanism: Mechanism, record: Motion, physics: Physics, unknowns: tuple[Unknown, ...]) -> None:
        super().__init__(mechanism, record, physics, unknowns)
        joints = len(self.card.joints)
        self.groups = {"joint angles": joints, "joint speeds": joints}
        self.noise = np.repeat(record.noise, joints)
        self._measured = np.concatenate([record.joint_position, record.joint_velocity], 1)
        self._before: np.ndarray | None = None
        """What the robots felt at the control step before."""
        self._smooth = [
            savgol_filter(record.joint_position, 5, 2, deriv=k, delta=record.period, axis=0) for k in (0, 1)
        ]

    def ways(self) -> np.ndarray:
        """Of the factors one is varied together with all others: stronger servos on heavier rotors, which move alike.

        What little that does differs by the links' weight; as the difference of large effects it would be lost.
        """
        found, factors = super().ways(), [unknown.factor for unknown in self.unknowns]
        found[factors.index(True), factors] = TOGETHER
        return found

    def usable(self, begins: np.ndarray, steps: int) -> np.ndarray:
        plant = MujocoPlant(self.mechanism, 1, self.physics.timestep, self.physics)
        model, data, position = plant.model, mujoco.MjData(plant.model), plant.indices.position
        model.geom_margin[:] = CLEAR / 2  # of two shapes they add up
        joints, near = len(self.card.joints), np.zeros(len(self.record), bool)
        for k, angles in enumerate(self.record.joint_position):
            data.qpos[position[:joints]] = angles
            data.qpos[position[joints:]] = self.record.target[k, joints:]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            near[k] = data.ncon > 0
        return np.array([not near[max(0, k - FORGOTTEN) : k + steps + 1].any() for k in begins])

    def _sized(self, rows: int) -> MujocoPlant:
        found = super()._sized(rows)
        found.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        return found

    def _load(self, plant: MujocoPlant, values: Mapping[str, Tensor]) -> None:
        self._before = None
        if "payload" in values:
            hand = hand_body(self.card, plant)
            plant.param("mass")[:, hand] = plant.nominal.mass[:, hand] + values["payload"]

    def _guess(self, plant: MujocoPlant, step: np.ndarray) -> None:
        angles, speeds = (torch.from_numpy(x[step]) for x in self._smooth)
        named = {"joint_position": angles, "joint_velocity": speeds}
        if self.card.fingers is not None:
            named["gripper_position"] = torch.from_numpy(self.record.target[step, len(self.card.joints) :])
        plant.place(torch.arange(len(step)), **named)

    def _compare(self, plant: MujocoPlant, step: np.ndarray, corrected: bool) -> np.ndarray:
        joints = len(self.card.joints)
        qpos, qvel = plant.batch.bind("qpos"), plant.batch.bind("qvel")
        now = np.concatenate([qpos[:, plant.indices.position[:joints]], qvel[:, plant.indices.velocity[:joints]]], 1)
        before = now if self._before is None else self._before
        self._before = now
        return self._measured[step] - now - self.record.age / self.record.period * (before - now)
