"""An emulated vehicle with PX4 in virtual time, its driver, and a policy that flies it."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulated import EmulatedSession

from robo_rl.deploy.emulate.px4 import Vehicle
from robo_rl.deploy.emulate.px4.virtual import World
from robo_rl.deploy.robot.drivers.mavlink.px4 import Px4
from robo_rl.deploy.robot.drivers.mavlink.robot_file import VehicleFile
from robo_rl.deploy.robot.runtime import Policy

HEIGHT = 2.0  # m


class Session(EmulatedSession):
    """A run of the loop with the driver on the emulated vehicle."""

    longest = 60.0

    def __init__(self, policy: Any = None, vehicle: Vehicle | None = None, file: VehicleFile | None = None) -> None:
        super().__init__()
        self.world = World(vehicle)
        self.vehicle = self.world.vehicle
        self.policy = policy or Policy.load("zoo:quadrotor-rates", 50)
        self.told = {
            "position_setpoint": np.array([0.0, 0.0, HEIGHT], np.float32),
            "linear_velocity_setpoint": np.zeros(3, np.float32),
        }
        file = file or VehicleFile(hover_thrust=0.6)
        self.driver = Px4(self.world, self.policy.contract, file, self.world.now)
        self.places: list[np.ndarray] = []
        self.speeds: list[np.ndarray] = []
        self.turns: list[np.ndarray] = []

    def watch(self) -> None:
        self.places.append(self.vehicle.truth["position"])
        self.speeds.append(self.vehicle.truth["linear_velocity"])
        self.turns.append(self.vehicle.truth["orientation"])
