"""What goes wrong with an arm of Universal Robots and on the line to it: faults, each with its name, for tests and for
``robo-rl emulate ur``.
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
    whole,
)
from robo_rl.deploy.emulate.ur import Arm
from robo_rl.deploy.emulate.ur.rtde import Controller
from robo_rl.deploy.robot.drivers.rtde import messages as m

LATE = 40
"""States by which late ones come late: 0.3 s or so."""
BURST = 3
"""States that come at once."""
SPEED = 0.3
"""rad/s at which somebody else moves the first joint."""


@dataclass
class UrWire:
    """An arm, the lines to it, and what is wrong with them."""

    arm: Arm
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    waiting: list[bytes] = field(default_factory=list)

    def begin(self, fault: str) -> None:
        """From now on this is wrong. ValueError unless it is the name of a fault."""
        require_fault(fault, FAULTS)
        self.fault = fault
        FAULTS[fault].at_once(self.arm)

    def advance(self) -> None:
        """The arm moves on by a tick."""
        self.arm.advance()

    def open(self) -> Controller:
        """A program connects by RTDE."""
        return Controller(self.arm)

    def send(self, controller: Controller, data: bytes) -> bytes:
        """What is answered at once. ValueError where the controller closes the connection."""
        return b"".join(controller.receive(one) for one in FAULTS[self.fault].orders(self, data))

    def tell(self, controller: Controller) -> bytes:
        """What the controller sends in this tick, as it arrives."""
        told = controller.tell()
        return b"".join(FAULTS[self.fault].answers(self, told)) if told else b""

    def run(self, text: str) -> str:
        """A program came; why it is not run, or ""."""
        return self.arm.run(text)


class OtherProgram:
    """Somebody else's, in place of ours."""

    def tick(self, arm: Arm) -> None:
        """It moves the first joint, slowly."""
        arm.target = arm.joints + np.array([0.1 * SPEED, *[0.0] * 5])


def _bursts(wire: UrWire, data: bytes) -> list[bytes]:
    wire.waiting.append(data)
    if len(wire.waiting) < BURST:
        return []
    came, wire.waiting = wire.waiting, []
    return came


def _in_pieces(wire: UrWire, data: bytes) -> list[bytes]:
    """TCP knows no packages: a part of one comes with the next."""
    whole_line = b"".join(wire.waiting) + data
    at = wire.random.randrange(len(whole_line) + 1)
    wire.waiting = [whole_line[at:]]
    return [whole_line[:at]]


def _text(wire: UrWire, data: bytes) -> list[bytes]:
    text, source = b"Program started", b"RTMachine"
    payload = bytes([len(text)]) + text + bytes([len(source)]) + source + b"\3"
    return [m.package(m.TEXT, payload), data]


def _noise(wire: UrWire, data: bytes) -> list[bytes]:
    return [wire.random.randbytes(5), data]


def _paused(wire: UrWire, data: bytes) -> list[bytes]:
    return [m.package(m.PAUSE, b"\1")]


def _foreign(wire: UrWire, data: bytes) -> list[bytes]:
    """Data of a recipe that was never agreed on."""
    return [m.package(m.DATA, b"\7" + data[4:]), data]


def _not_a_number(wire: UrWire, data: bytes) -> list[bytes]:
    """Every byte of the doubles is 0xff: not a number."""
    return [data[:4] + b"\xff" * 48 + data[52:]]


def _set(**values: object) -> Callable[[Arm], None]:
    def at_once(arm: Arm) -> None:
        for name, value in values.items():
            setattr(arm, name, value)

    return at_once


def _mode(safety: int) -> Callable[[Arm], None]:
    def at_once(arm: Arm) -> None:
        arm.safety_mode = safety
        arm.pause()

    return at_once


def _guided(arm: Arm) -> None:
    arm.taught = True
    arm.pause()


def _taken(arm: Arm) -> None:
    arm.program = OtherProgram()  # type: ignore[assignment]


def _restarted(arm: Arm) -> None:
    arm.stop_in_emergency()
    arm.seconds = 0.0


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    text: str
    borne: bool = False
    """Whether the policy goes on: it happens on every line. Else the arm has to come to rest."""
    orders: Way = whole
    answers: Way = whole
    at_once: Callable[[Arm], None] = lambda arm: None


FAULTS = {
    "": Fault("nothing", True),
    "some skipped": Fault("the controller leaves out 30 % of its states", True, answers=dropped(0.3)),
    "doubled": Fault("every state comes twice", True, answers=doubled),
    "bursts": Fault(f"{BURST} states come at once", True, answers=_bursts),
    "in pieces": Fault("states come in parts", True, answers=_in_pieces),
    "texts": Fault("the controller sends text messages between its states", True, answers=_text),
    "silent": Fault("the controller sends nothing any more", answers=nothing),
    "paused exchange": Fault("the controller pauses RTDE", answers=_paused),
    "noise": Fault("bytes that mean nothing come between the states", answers=_noise),
    "damaged": Fault("every state has a wrong bit in its head", answers=damaged(1.0, 0, 4)),
    "cut": Fault("half of every state comes", answers=cut),
    "foreign": Fault("states come that were not asked for", answers=_foreign),
    "late": Fault(f"every state comes {LATE} states late", answers=late(LATE)),
    "unplugged": Fault("the connection is gone", orders=nothing, answers=nothing),
    "clock frozen": Fault("states come with the same time stamp", at_once=broken(clock=True)),
    "encoder jumped": Fault("a joint seems to be elsewhere by 0.5 rad", at_once=broken(encoders=0.5)),
    "commands lost": Fault("the robot is heard, but gets nothing", orders=nothing),
    "commands damaged": Fault("targets that arrive are no numbers", orders=_not_a_number),
    "commands garbled": Fault("what arrives is not RTDE", orders=damaged(1.0, 0, 1)),
    "protective stop": Fault("the robot has stopped protectively", at_once=Arm.stop_protectively),
    "emergency stop": Fault("the emergency stop is pressed", at_once=Arm.stop_in_emergency),
    "safeguard stop": Fault("a safeguard (a light curtain) stops it", at_once=_mode(5)),
    "reduced mode": Fault("somebody came near: the robot is in reduced mode", at_once=_set(safety_mode=2)),
    "program stopped": Fault("somebody presses stop on the pendant", at_once=Arm.end),
    "program paused": Fault("somebody presses pause on the pendant", at_once=Arm.pause),
    "another program": Fault("somebody else starts a program", at_once=_taken),
    "speed slider": Fault("somebody sets the speed slider to 50 %", at_once=_set(speed=0.5)),
    "freedrive": Fault("somebody guides the arm by hand", at_once=_guided),
    "restarted": Fault("the controller is started anew", at_once=_restarted),
}
"""By name."""
