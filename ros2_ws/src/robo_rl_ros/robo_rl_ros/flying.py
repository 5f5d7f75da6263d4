"""The stand-in for a multirotor: with a plane to stand on, and an operator who lets it take off and fly a goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from robo_rl_ros.twin import Twin
from sim.env import VecEnv
from sim.plants.multirotor import MultirotorPlant
from sim.tasks import Task
from sim.tasks.multirotor.quadrotor import FIGURE_EIGHT

CLIMB = 0.5
"""m/s: how fast the operator's set-point rises at take-off."""
REST = 2.0
"""s between the end of the climb and the beginning of the goal."""


class FlyingTwin(Twin):
    """One multirotor at a task."""

    def __init__(
        self,
        task: Task,
        seed: int = 0,
        delay: float = 0.01,
        noise: float = 1.0,
        miswired: Sequence[str] = (),
        height: float = 1.0,
    ) -> None:
        """``height`` (m) is the one to fly at; the rest as in ``Twin``."""
        self.height = height
        fixed = {name: value for name, value in FIGURE_EIGHT.items() if name in task.spec.ranges}
        self.goal = VecEnv(task, 1, seed, fixed=fixed).draws.goal.clone()
        self.plant = MultirotorPlant(task.spec.multirotor, 1, task.spec.control_period, ground=True)
        super().__init__(task, seed, delay, noise, miswired)

    def _place(self) -> None:
        """On the ground where the goal begins, motors off."""
        self.plant.reset(torch.tensor([0]))
        self.plant.current.rotor_speed[:] = 0.0
        self.plant.current.position[:] = self._reference(0.0)["position_setpoint"]
        self.plant.current.position[:, 2] = 0.0

    def _reference(self, time: float) -> dict[str, Tensor]:
        return self.task.reference(torch.tensor([time]), self.goal)

    def setpoints(self) -> dict[str, Tensor]:
        """To climb from the ground, wait, and follow the task's goal."""
        climb = self.height / CLIMB
        flown = self.time - self.commanded_since if self.commanded_since >= 0 else 0.0
        wanted = {name: value.clone() for name, value in self._reference(max(0.0, flown - climb - REST)).items()}
        if flown < climb + REST:
            for name in wanted:
                if name.endswith("velocity_setpoint"):
                    wanted[name][:] = 0.0
        if "position_setpoint" in wanted:
            wanted["position_setpoint"][:, 2] += min(self.height, CLIMB * flown)
        return wanted

    def _move(self, commands: Mapping[str, Tensor]) -> None:
        self.plant.step(dict(commands))

    def _be_handled(self) -> None:
        position, orientation, velocity, rates = hand(self.hands())
        state = self.plant.current
        state.position[0], state.orientation[0] = torch.from_numpy(position), torch.from_numpy(orientation)
        state.linear_velocity[0], state.angular_velocity[0] = torch.from_numpy(velocity), torch.from_numpy(rates)


def hand(time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Position (m), orientation (x, y, z, w), velocity (m/s) and body rates (rad/s) of what is moved by hand.

    Angles and places are sines of different periods; rates and velocities are their derivatives.
    """
    from scipy.spatial.transform import Rotation  # takes half a second to load, which few twins need

    here, soon = _held(time), _held(time + 1e-3)
    turned = Rotation.from_quat(here[1]).inv() * Rotation.from_quat(soon[1])
    return *here, (soon[0] - here[0]) / 1e-3, turned.as_rotvec() / 1e-3


def _held(time: float) -> tuple[np.ndarray, np.ndarray]:
    from scipy.spatial.transform import Rotation

    periods = np.array([1.3, 1.7, 2.1])  # s
    wave = np.sin(2 * np.pi * time / periods)
    return np.array([0, 0, 0.5]) + 0.2 * wave, Rotation.from_euler("xyz", 0.4 * wave).as_quat()
