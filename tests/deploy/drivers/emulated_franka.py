"""franky-sim's Franka in virtual time, franky's client on the other end, the driver, and a policy that moves it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from emulated import EmulatedSession

from robo_rl.deploy.emulate.franka import Station
from robo_rl.deploy.emulate.franka.virtual import World
from robo_rl.deploy.robot.drivers.fci.arm import FrankaArm
from robo_rl.deploy.robot.drivers.fci.hand import Hand
from robo_rl.deploy.robot.drivers.fci.library import open_hand, open_robot
from robo_rl.deploy.robot.drivers.fci.motion import ArmMotion
from robo_rl.deploy.robot.drivers.fci.robot_file import FrankaFile
from robo_rl.deploy.robot.runtime import Policy

GOAL = np.array([0.45, 0.1, 0.2], np.float32)
"""m"""


class Session(EmulatedSession):
    """A run of the loop with the driver on the emulated arm."""

    longest = 6.0

    def __init__(self, policy: Any = None, station: Station | None = None, file: FrankaFile | None = None) -> None:
        super().__init__()
        self.policy = policy or Policy.load("zoo:arm-reach", 50)
        self.world = World(station or Station())
        self.station = self.world.station
        self.told = {"tool_position_setpoint": GOAL.copy()}
        self.driver = driver(self.world, self.policy.contract, file or FrankaFile())
        self.places: list[np.ndarray] = []
        self.angles: list[np.ndarray] = []

    def watch(self) -> None:
        self.places.append(self.station.tool)
        self.angles.append(self.station.angles)

    def close(self) -> None:
        """The program ends, and then the robot."""
        self.driver.close()
        self.station.close()


@contextlib.contextmanager
def ended(session: Session) -> Iterator[Session]:
    """The session, which ends whatever happens."""
    try:
        yield session
    finally:
        session.close()


def driver(world: World, contract: Any, file: FrankaFile) -> FrankaArm:
    """On an emulated arm; what waits for the robot lets time go on."""
    host = world.station.host
    robot, gripper = world.during(lambda: open_robot(host)), world.during(lambda: open_hand(host))
    model = world.during(lambda: robot.model_urdf)
    motion = ArmMotion(robot, world.now)
    hand = Hand(gripper, file.hand_speed, file.hand_force, world.now)
    made = FrankaArm(motion, hand, contract, file, model, world.now, world.sleep)
    world.driver = made
    for part, name in ((motion, "begin"), (motion, "stop"), (motion, "protect"), (motion, "recover"),
                       (motion, "close"), (hand, "close")):  # fmt: skip
        setattr(part, name, waiting(world, getattr(part, name)))
    return made


def waiting(world: World, call: Any) -> Any:
    """The same call, during which time goes on: it waits for the robot."""

    def during(*given: Any) -> Any:
        if threading.current_thread().name.startswith("franka"):
            return call(*given)
        return world.during(lambda: call(*given))

    return during
