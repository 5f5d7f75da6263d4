"""What happens on the line of a vehicle with PX4, and to it: faults, each with its name, for tests and for ``robo-rl
emulate px4``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

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
    unplugged,
    whole,
)
from robo_rl.deploy.emulate.px4 import TICK, Vehicle
from robo_rl.deploy.emulate.stranger import Stranger
from robo_rl.deploy.robot.drivers.mavlink.link import mavlink
from robo_rl.deploy.robot.drivers.mavlink.modes import POSITION, RETURN

LATE = 40
"""Messages by which late ones come late: 0.4 s or so."""
OFTEN = 200.0
"""Hz: more often than we do. PX4 repeats no set-points: somebody else is seen by how the vehicle turns alone."""
CHANGE = np.array([1.0, -2.0, 1.5])
"""rad/s that somebody else wants."""


@dataclass
class PilotWire:
    """The line between a computer and the autopilot, and what is wrong with it."""

    vehicle: Vehicle
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    waiting: list[bytes] = field(default_factory=list)
    rate: float = OFTEN
    """Hz at which somebody else sends."""

    def begin(self, fault: str) -> None:
        """From now on this is wrong. ValueError unless it is the name of a fault."""
        require_fault(fault, FAULTS)
        self.fault = fault
        self.stranger = Stranger(self.rate, self.random)
        FAULTS[fault].at_once(self.vehicle)

    def send(self, data: bytes) -> list[bytes]:
        """What the autopilot answers at once. OSError where the line is gone."""
        fault = FAULTS[self.fault]
        told = [answer for one in fault.orders(self, data) for answer in self.vehicle.receive(one)]
        return [came for one in told for came in fault.answers(self, one)]

    def advance(self) -> list[bytes]:
        """The vehicle moves on by a tick: messages that arrive."""
        if self.fault == "another commander":
            for _ in range(self.stranger.due(TICK)):
                self.vehicle.take(CHANGE, self.vehicle.thrust)
        return [came for one in self.vehicle.advance() for came in FAULTS[self.fault].answers(self, one)]


def _noise(wire: PilotWire, data: bytes) -> list[bytes]:
    return [wire.random.randbytes(5), data]


_OTHER = mavlink.MAVLink(None, srcSystem=7, srcComponent=1)


def _foreign(wire: PilotWire, data: bytes) -> list[bytes]:
    """Another vehicle, that stands elsewhere, is on the same network."""
    rest = ([1.0, 0.0, 0.0, 0.0], *[0.0] * 6, [0.0] * 21, [0.0] * 21)
    message = mavlink.MAVLink_odometry_message(round(1e6 * wire.vehicle.time), 1, 12, 50.0, 50.0, 0.0, *rest)
    return [bytes(message.pack(_OTHER)), data]


def _pilot(vehicle: Vehicle) -> None:
    vehicle.enter(POSITION)


def _failsafe(vehicle: Vehicle) -> None:
    vehicle.say("Failsafe activated: return", "commander_failsafe_enter_generic")
    vehicle.enter(RETURN)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    text: str
    borne: bool = False
    """Whether the policy goes on: it happens on every line. Else somebody else has to fly, and to land."""
    falls: bool = False
    """Whether its motors are off in the air: nothing helps."""
    orders: Way = whole
    answers: Way = whole
    at_once: Callable[[Vehicle], None] = lambda vehicle: None


FAULTS = {
    "": Fault("nothing", True),
    "some lost": Fault("10 % of the autopilot's messages don't arrive", True, answers=dropped(0.1)),
    "some damaged": Fault("5 % of the autopilot's messages have a wrong bit", True, answers=damaged(0.05)),
    "doubled": Fault("every message comes twice", True, answers=doubled),
    "noise": Fault("bytes that mean nothing come between the messages", True, answers=_noise),
    "some commands lost": Fault("10 % of what is sent does not arrive", True, orders=dropped(0.1)),
    "some commands damaged": Fault("5 % of what is sent has a wrong bit", True, orders=damaged(0.05)),
    "another vehicle": Fault("a second vehicle sends on the same network", True, answers=_foreign),
    "nothing heard": Fault("no message comes any more", answers=nothing),
    "silent autopilot": Fault("the autopilot sends nothing any more", at_once=broken(silent=True)),
    "all damaged": Fault("every message has a wrong bit", answers=damaged(1.0)),
    "cut": Fault("half of every message comes", answers=cut),
    "late": Fault(f"every message comes {LATE} messages late", answers=late(LATE)),
    "commands lost": Fault("the autopilot is heard, but gets nothing", orders=nothing),
    "commands damaged": Fault("all that is sent has a wrong bit", orders=damaged(1.0)),
    "unplugged": Fault("the port is gone", orders=unplugged, answers=nothing),
    "clock frozen": Fault("odometry comes with the same time stamp again and again", at_once=broken(clock=True)),
    "odometry frozen": Fault("odometry repeats itself under new time stamps", at_once=broken(estimate="frozen")),
    "position lost": Fault("the estimator does not know where it is", at_once=broken(estimate="lost")),
    "position jumped": Fault("the estimator sets itself right by 3 m", at_once=broken(estimate="jumped")),
    "battery empty": Fault("the battery has 12 %", at_once=broken(battery=12)),
    "pilot": Fault("a pilot takes over by the remote control", at_once=_pilot),
    "failsafe": Fault("a failsafe of the autopilot takes over", at_once=_failsafe),
    "another commander": Fault("somebody else sends set-points too"),
    "killed": Fault("the kill switch is on", falls=True, at_once=Vehicle.kill),
    "restarted": Fault("the autopilot's power fails for a moment", falls=True, at_once=Vehicle.restart),
}
"""By name."""
