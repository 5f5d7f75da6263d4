"""What happens between a computer and a Go2, and to the Go2: faults, each with its name, for tests and for ``robo-rl
emulate go2``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from robo_rl.deploy.emulate.damage import (
    Way,
    broken,
    cut,
    damaged,
    doubled,
    dropped,
    late,
    nothing,
    require_fault,
    whole,
)
from robo_rl.deploy.emulate.go2 import NORMAL, STOP_KEYS, Go2
from robo_rl.deploy.emulate.stranger import Stranger
from robo_rl.deploy.robot.drivers.unitree.messages import LowCommand

LATE = 30
"""States by which late ones come late: 60 ms."""
REORDERED = 4
SEALED = (24, 700)
"""Bytes under the checksum: not all of a message are, some are between the struct's."""


@dataclass
class Go2Wire:
    """The topics between a computer and an emulated Go2, and what is wrong with them."""

    robot: Go2
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    stranger: Stranger = field(default_factory=lambda: Stranger(500.0, random.Random(0)))
    waiting: list[bytes] = field(default_factory=list)
    rate: float = 500.0
    """Hz at which somebody else commands: that of the maker's examples."""
    foreign: Callable[[bytes], None] = lambda data: None
    """Where somebody else's LowCmd_ is published, for all to hear."""

    @property
    def faults(self) -> dict[str, Fault]:
        """All that can go wrong, by name."""
        return FAULTS

    def begin(self, fault: str) -> None:
        """From now on this is wrong. ValueError unless it is the name of a fault."""
        require_fault(fault, self.faults)
        self.fault = fault
        self.stranger = Stranger(self.rate, self.random)
        self.faults[fault].at_once(self.robot)

    def command(self, data: bytes) -> None:
        """A LowCmd_ on its way to the robot."""
        for one in self.faults[self.fault].commands(self, data):
            self.robot.receive(one)

    def advance(self, seconds: float) -> list[bytes]:
        """The robot moves on: LowState_ that arrive."""
        if self.fault == "another commander":
            for _ in range(self.stranger.due(seconds)):
                self.foreign(_stand(self.robot))
        told = self.robot.advance(seconds)
        return [one for data in told for one in self.faults[self.fault].states(self, data)]


def _stand(robot: Go2) -> bytes:
    """The command of another program on the same network: to stand, with the gains of the maker's example."""
    nothing, pose = np.zeros(robot.motors), np.zeros(robot.motors)
    pose[: len(robot.standing)] = robot.standing
    command = LowCommand(nothing == 0, pose, nothing, nothing, nothing + 60.0, nothing + 5.0, robot.machine)
    return robot.family.encode_command(command)


def _reordered(wire: Go2Wire, data: bytes) -> list[bytes]:
    wire.waiting.append(data)
    if len(wire.waiting) < REORDERED:
        return []
    found, wire.waiting = wire.waiting, []
    wire.random.shuffle(found)
    return found


def _not_finite(wire: Go2Wire, data: bytes) -> list[bytes]:
    """The robot itself tells that a joint is nowhere."""
    told = wire.robot.family.decode_state(data, wire.robot.motors)
    return [wire.robot.family.encode_state(replace(told, q=np.where(np.arange(len(told.q)) == 0, np.nan, told.q)))]


def _mode_back(robot: Go2) -> None:
    robot.mode = NORMAL


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    text: str
    borne: bool = False
    """Whether the policy goes on: it happens on every network. Else the legs have to be damped."""
    commands: Way = whole
    states: Way = whole
    at_once: Callable[[Go2], None] = lambda robot: None


FAULTS = {
    "": Fault("nothing", True),
    "some commands lost": Fault("20 % of the commands don't arrive", True, commands=dropped(0.2)),
    "some commands damaged": Fault("5 % of the commands have a wrong bit", True, commands=damaged(0.05, *SEALED)),
    "commands doubled": Fault("every command comes twice", True, commands=doubled),
    "some states lost": Fault("20 % of the states don't arrive", True, states=dropped(0.2)),
    "some states damaged": Fault("5 % of the states have a wrong bit", True, states=damaged(0.05, *SEALED)),
    "states doubled": Fault("every state comes twice", True, states=doubled),
    "states reordered": Fault("states overtake one another", True, states=_reordered),
    "commands lost": Fault("the robot is heard, but gets no commands any more", commands=nothing),
    "all states damaged": Fault("every state has a wrong bit", states=damaged(1.0, *SEALED)),
    "states cut": Fault("half of every state comes", states=cut),
    "no states": Fault("the robot is not heard any more", states=nothing),
    "states late": Fault(f"every state comes {2 * LATE} ms late", states=late(LATE)),
    "not finite": Fault("the robot tells that a joint's angle is not a number", states=_not_finite),
    "clock frozen": Fault("states come with the same tick again and again", at_once=broken(clock=True)),
    "imu frozen": Fault("orientation and rates repeat", at_once=broken(imu=True)),
    "motor lost": Fault("the rear left calf's motor answers its robot no more", at_once=broken(lost_motor=11)),
    "motor hot": Fault("the front right thigh's motor has 95 °C", at_once=broken(hot_motor=1)),
    "remote's stop": Fault("L2 and B are pressed on the remote", at_once=broken(keys=STOP_KEYS)),
    "another commander": Fault("somebody else publishes commands"),
    "mode back": Fault("the robot's own controller takes over again", at_once=_mode_back),
    "brown-out": Fault("the robot's power fails for a moment, and it starts anew", at_once=Go2.restart),
}
"""By name."""
