"""What happens on the lines of a RoboRacer car, and to the car: faults, each with its name, for tests and for ``robo-rl
emulate f1tenth``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

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
from robo_rl.deploy.emulate.f1tenth import Racer
from robo_rl.deploy.emulate.stranger import Stranger
from robo_rl.deploy.robot.drivers.vesc import messages as m
from robo_rl.deploy.robot.drivers.vesc.packets import Parser, encode

LATE = 10
"""Scans by which late ones come late: 250 ms."""
LATE_ANSWERS = 10
"""Answers by which late ones come late: two cycles or more."""
REBOOT = 0.5
"""s in which a VESC that lost its power says nothing: an estimate."""
OTHERS_ERPM = -9000.0
MOTOR_FAULT = 4
"""Over current."""


@dataclass
class CarWire:
    """The lines between a computer and an emulated car, and what is wrong with them."""

    racer: Racer
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    answers: list[bytes] = field(default_factory=list)
    """That wait."""
    scans: list[bytes] = field(default_factory=list)
    orders: Parser = field(default_factory=Parser)
    began: float = 0.0
    """s of the car's time."""
    rate: float = 200.0
    """Hz at which somebody else commands."""

    def begin(self, fault: str) -> None:
        """From now on this is wrong. ValueError unless it is the name of a fault."""
        require_fault(fault, FAULTS)
        self.fault, self.began = fault, self.racer.time
        self.stranger = Stranger(self.rate, self.random)
        FAULTS[fault].at_once(self.racer)

    @property
    def lidar_open(self) -> bool:
        """Whether the lidar's connection holds."""
        return self.fault != "lidar unplugged"

    def exchange(self, data: bytes) -> bytes:
        """What the VESC answers. OSError where the line is gone."""
        fault = FAULTS[self.fault]
        told = [answer for one in fault.orders(self, data) for answer in self.racer.receive(one)]
        return b"".join(answer for one in told for answer in fault.answers(self, one))

    def ask_lidar(self, line: str) -> bytes:
        """What the lidar answers."""
        return self.racer.ask_lidar(line)

    def advance(self, seconds: float) -> list[bytes]:
        """The car moves on: scans that arrive."""
        if self.fault == "another commander":
            for _ in range(self.stranger.due(seconds)):
                self.racer.order("erpm", OTHERS_ERPM)
        told = self.racer.advance(seconds)
        return [scan for one in told for scan in FAULTS[self.fault].scans(self, one)]


def _noise(wire: CarWire, data: bytes) -> list[bytes]:
    return [bytes(wire.random.randrange(256) for _ in range(5)), data]


def _rebooting(wire: CarWire, data: bytes) -> list[bytes]:
    return [] if wire.racer.time - wire.began < REBOOT else [data]


def _questions(wire: CarWire, data: bytes) -> list[bytes]:
    """What asks, of what is sent."""
    asked = [one for one in wire.orders.feed(data) if one[0] in (m.FIRMWARE, m.SELECTED, m.IMU)]
    return [encode(one) for one in asked]


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    text: str
    borne: bool = False
    """Whether the policy goes on: it happens on every line. Else the car has to stop."""
    helpless: bool = False
    """Whether nothing that is sent reaches the motor any more: it coasts, or obeys somebody else."""
    orders: Way = whole
    answers: Way = whole
    scans: Way = whole
    at_once: Callable[[Racer], None] = lambda racer: None


FAULTS = {
    "": Fault("nothing", True),
    "some answers lost": Fault("10 % of the VESC's answers don't arrive", True, answers=dropped(0.1)),
    "some answers damaged": Fault("5 % of the VESC's answers have a wrong bit", True, answers=damaged(0.05)),
    "answers doubled": Fault("the VESC's answers come twice", True, answers=doubled),
    "noise": Fault("bytes that mean nothing come before the VESC's answers", True, answers=_noise),
    "some commands lost": Fault("10 % of what is sent to the VESC does not arrive", True, orders=dropped(0.1)),
    "some scans lost": Fault("20 % of the scans don't arrive", True, scans=dropped(0.2)),
    "some scans damaged": Fault("20 % of the scans have a wrong bit", True, scans=damaged(0.2)),
    "scans doubled": Fault("every scan comes twice", True, scans=doubled),
    "no answers": Fault("the VESC is not heard any more", answers=nothing),
    "all answers damaged": Fault("every answer of the VESC has a wrong bit", answers=damaged(1.0)),
    "answers cut": Fault("half of every answer comes", answers=cut),
    "answers late": Fault(
        "the VESC's answers come two cycles after their questions",
        answers=late(LATE_ANSWERS, lambda wire: wire.answers),
    ),
    "unplugged": Fault("the VESC's port is gone", helpless=True, answers=unplugged, orders=unplugged),
    "brown-out": Fault("the VESC's power fails for a moment", orders=_rebooting, at_once=Racer.restart),
    "commands lost": Fault("the VESC is heard, but gets no commands", helpless=True, orders=_questions),
    "motor fault": Fault("the VESC reports over current", helpless=True, at_once=broken(fault=MOTOR_FAULT)),
    "kill switch": Fault("the VESC's kill switch is on", helpless=True, at_once=broken(killed=True)),
    "battery empty": Fault("the battery has 9.2 V", at_once=broken(voltage=9.2)),
    "wheels blocked": Fault("the wheels can't turn", at_once=broken(blocked=True)),
    "another commander": Fault("somebody else sends the motor backwards", helpless=True),
    "gyroscope frozen": Fault("the IMU repeats itself", at_once=broken(gyroscope=True)),
    "no scans": Fault("the lidar sends nothing any more", scans=nothing),
    "all scans damaged": Fault("every scan has a wrong bit", scans=damaged(1.0)),
    "scans cut": Fault("half of every scan comes", scans=cut),
    "scans late": Fault(f"every scan comes {25 * LATE} ms late", scans=late(LATE, lambda wire: wire.scans)),
    "lidar unplugged": Fault("the lidar's connection is closed"),
    "lidar's clock frozen": Fault(
        "scans come with the same time stamp again and again", at_once=broken(lidar_clock=True)
    ),
    "lidar frozen": Fault("the lidar repeats a scan under new time stamps", at_once=broken(lidar_picture=True)),
    "lidar blind": Fault("all beams of the lidar tell an error", at_once=broken(blind=True)),
}
"""By name."""
