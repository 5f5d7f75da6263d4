"""The stand-in robot: a task's plant with its sensors' noise and latency, on the ground, and an operator for it.

The plant and the sensors are those of training. A plane to stand on is added, and an operator who lets the robot
take off and then gives the task's set-points.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from sim.env import VecEnv
from sim.plants.multirotor import MultirotorPlant
from sim.robots import MultirotorCard
from sim.sensors import Sensors
from sim.tasks import load_task
from sim.tasks.quadrotor import FIGURE_EIGHT

CLIMB = 0.5
"""m/s: how fast the operator's set-point rises at take-off."""
REST = 2.0
"""s between the end of the climb and the beginning of the course."""


class Twin:
    """One robot at a task, stepped once per control period."""

    def __init__(
        self,
        task: str,
        robot: str | None = None,
        seed: int = 0,
        delay: float = 0.01,
        noise: float = 1.0,
        height: float = 1.0,
    ) -> None:
        """``delay`` (s) is the latency of all sensors, ``noise`` a factor on the contract's, ``height`` (m) the one

        to fly at.
        """
        self.task = load_task(task, robot)
        self.spec = self.task.spec
        card = self.spec.robot
        if not isinstance(card, MultirotorCard):
            raise ValueError(f"task '{task}' is for the robot '{card.name}'; the stand-in can only be a multirotor yet")
        self.period, self.height = self.spec.control_period, height
        longest = max(signal.delay[1] for signal in self.spec.signals)
        if not 0 <= delay <= longest:
            raise ValueError(f"delay is {delay} s; the policy was trained with 0 to {longest} s")
        self.generator = torch.Generator().manual_seed(seed)
        self.delay, self.noise = torch.tensor([delay]), noise
        fixed = {name: value for name, value in FIGURE_EIGHT.items() if name in self.spec.ranges}
        self.course = VecEnv(self.task, 1, seed, fixed=fixed).draws.course.clone()
        self.plant = MultirotorPlant(card, 1, self.period, ground=True)
        self.sensors = Sensors(self.spec.signals, self.period)
        self.safe = {c.name: torch.tensor([c.safe]) for c in self.spec.commands}
        self.limits = {c.name: (torch.tensor([c.lower]), torch.tensor([c.upper])) for c in self.spec.commands}
        self.steps = 0
        self.restart()

    def restart(self) -> None:
        """Stand on the ground where the course begins, motors off. Time goes on."""
        self.airborne_since = self.handled_until = -1.0
        self.plant.reset(torch.tensor([0]))
        self.plant.state.rotor_speed[:] = 0.0
        self.plant.state.position[:] = self._reference(0.0)["position_setpoint"]
        self.plant.state.position[:, 2] = 0.0
        self.line = self.sensors.start(self._truth())

    @property
    def time(self) -> float:
        """s since the beginning."""
        return self.steps * self.period

    def _reference(self, time: float) -> dict[str, Tensor]:
        return self.task.reference(torch.tensor([time]), self.course)

    def setpoints(self) -> dict[str, Tensor]:
        """What the operator wants now: to climb from the ground, wait, and follow the task's course."""
        climb = self.height / CLIMB
        flown = self.time - self.airborne_since if self.airborne_since >= 0 else 0.0
        wanted = {name: value.clone() for name, value in self._reference(max(0.0, flown - climb - REST)).items()}
        if flown < climb + REST:
            for name in wanted:
                if name.endswith("velocity_setpoint"):
                    wanted[name][:] = 0.0
        if "position_setpoint" in wanted:
            wanted["position_setpoint"][:, 2] += min(self.height, CLIMB * flown)
        return wanted

    def _truth(self) -> dict[str, Tensor]:
        return {**self.plant.truth(), **self.setpoints()}

    def truth(self) -> dict[str, np.ndarray]:
        """True quantities and set-points (k,) by name."""
        return {name: value[0].numpy().copy() for name, value in self._truth().items()}

    def step(self, commands: Mapping[str, np.ndarray] | None) -> None:
        """One period under commands (k,) by name, clamped; None is the safe command."""
        given = self.safe
        if commands is not None:
            given = {
                name: torch.clamp(torch.as_tensor(commands[name], dtype=torch.float32)[None], *self.limits[name])
                for name in self.safe
            }
        self.plant.step(given)
        self.steps += 1
        if self.time < self.handled_until:
            self._be_handled()
        if self.airborne_since < 0 and any(bool((given[n] != self.safe[n]).any()) for n in given):
            self.airborne_since = self.time

    def take_in_hand(self, seconds: float) -> None:
        """For some time, be turned and moved by hand, about and along all axes, motors off."""
        self.handled_until = self.time + seconds

    def _be_handled(self) -> None:
        """Angles and places are sines of different periods; rates and velocities are their derivatives."""
        from scipy.spatial.transform import Rotation  # takes half a second to load, which few twins need

        here, soon = self._held(self.time), self._held(self.time + 1e-3)
        rates = Rotation.from_quat(here[1]).inv() * Rotation.from_quat(soon[1])
        state = self.plant.state
        state.position[0] = torch.from_numpy(here[0])
        state.orientation[0] = torch.from_numpy(here[1])
        state.linear_velocity[0] = torch.from_numpy((soon[0] - here[0]) / 1e-3)
        state.angular_velocity[0] = torch.from_numpy(rates.as_rotvec() / 1e-3)

    def _held(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        from scipy.spatial.transform import Rotation

        periods = np.array([1.3, 1.7, 2.1])  # s
        wave = np.sin(2 * np.pi * time / periods)
        return np.array([0, 0, 0.5]) + 0.2 * wave, Rotation.from_euler("xyz", 0.4 * wave).as_quat()

    def measure(self) -> dict[str, np.ndarray]:
        """The signals now, (k,) float32 by name; call it once per step."""
        noise = torch.randn(1, self.sensors.size, generator=self.generator) * self.sensors.noise * self.noise
        signals, self.line = self.sensors.measure(self._truth(), self.line, self.delay, noise)
        return {name: value[0].numpy().copy() for name, value in signals.items()}
