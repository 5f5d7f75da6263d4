"""An emulated Crazyflie in virtual time, its driver over the real cflib, and a policy that flies it."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulated import EmulatedSession

from robo_rl.deploy.emulate.crazyflie import Vehicle
from robo_rl.deploy.emulate.crazyflie.virtual import World
from robo_rl.deploy.robot.drivers.crtp.crazyflie import Crazyflie
from robo_rl.deploy.robot.drivers.crtp.robot_file import CrazyflieFile
from robo_rl.deploy.robot.runtime import Policy

HEIGHT = 0.7  # m


class Session(EmulatedSession):
    """A run of the loop with the driver on the emulated vehicle."""

    longest = 60.0

    def __init__(
        self, policy: Any = None, vehicle: Vehicle | None = None, file: CrazyflieFile | None = None,
        patience: float = 60.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.world = World(vehicle)
        self.vehicle = self.world.vehicle
        self.policy = policy or Policy.load("zoo:quadrotor-rates-crazyflie", 50)
        self.told = {
            "position_setpoint": np.array([0.0, 0.0, HEIGHT], np.float32),
            "linear_velocity_setpoint": np.zeros(3, np.float32),
        }
        session = self.world.session(patience)
        self.driver = Crazyflie(session, self.policy.contract, file or CrazyflieFile())
        self.places: list[np.ndarray] = []
        self.sink = 0.0
        """m/s, the most since the fault."""
        self.tick, self.world.tick = self.world.tick, self.ticked  # type: ignore[method-assign]

    def ticked(self) -> None:
        """Also while the driver lands it, after the loop."""
        self.tick()
        if self.steps and self.steps[-1].number >= self.at:
            self.sink = max(self.sink, -float(self.vehicle.plant.current.linear_velocity[0, 2]))

    def watch(self) -> None:
        self.places.append(self.vehicle.truth["position"])
