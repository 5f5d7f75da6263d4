"""A driver of your own: replace ``Bus`` by your robot's library, and what is between by its units and signs.

robo-rl driver check ./my_driver.py:Driver --policy zoo:go2-flat
robo-rl run zoo:go2-flat --driver ./my_driver.py --setpoint "linear_velocity_command=0 0" "yaw_rate_command=0"
"""

from __future__ import annotations

import numpy as np

from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Settings, Silence


class Bus:
    """In place of your robot's library: joints that go where they are told, at once."""

    def __init__(self, pose: list[float]) -> None:
        self.q, self.on, self.noise = np.array(pose), False, np.random.default_rng(0)

    def measure(self) -> dict[str, np.ndarray]:
        """Each sensor's newest values, rad, rad/s, and a quaternion x, y, z, w."""
        n = self.noise.normal
        upright = np.array([0.0, 0.0, 0.0, 1.0]) + 1e-4 * n(size=4)
        return {"orientation": upright / np.linalg.norm(upright), "angular_velocity": 1e-3 * n(size=3),
                "joint_position": self.q + 1e-4 * n(size=12), "joint_velocity": 1e-3 * n(size=12)}  # fmt: skip


class Driver:
    """What ``robo_rl.deploy.robot.drivers.driver.Driver`` asks for."""

    silence, guard = Silence.HOLDS, ""
    measured = ("orientation", "angular_velocity", "joint_position", "joint_velocity")

    def __init__(self, contract, settings: Settings | None = None):
        self.command = contract.commands[0]
        missing = sorted({s.name for s in contract.signals if s.source == "sensor"} - set(self.measured))
        if missing or self.command.start is None:
            raise DriverError(f"my robot: a policy of {contract.robot_name} is not for its joints; it lacks {missing}")
        self.bus = Bus(list(self.command.start))
        self.problems = ()

    def connect(self):
        """Find the robot; refuse one that is not what the contract needs: DriverError."""
        return Identity("my robot", {"joints": str(len(self.command.elements))})

    def read(self, now):
        """The newest signals, with the time (us of the clock ``now``) at which each was measured."""
        return {name: (value.astype(np.float32), now) for name, value in self.bus.measure().items()}

    def enable(self):
        """Hold the pose that is measured. May take seconds; refuse what is not safe, with nothing enabled."""
        if self.problems:
            raise DriverError("; ".join(self.problems))
        self.bus.on = True

    def write(self, commands, mode):
        """Send targets; in DAMP be passive and braked. Never enable here."""
        if self.bus.on and mode is not Mode.DAMP:
            self.bus.q = np.array(commands[self.command.name], float)

    def disable(self):
        """Actuators passive."""
        self.bus.on = False

    def health(self):
        """What is wrong, as sentences, and figures with units; asks the robot nothing."""
        return Health(self.problems, {})

    def close(self):
        """Leave the robot as ``silence`` says, and close the port; also twice, and before ``connect``."""


make = Driver
