"""What happens to bytes and Dynamixel servos on the way: faults, each with its name, for tests and for ``emulate``."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from robo_rl.deploy.emulate import damage
from robo_rl.deploy.emulate.servos.dynamixel_bus import ServoBus
from robo_rl.deploy.emulate.stranger import RATE, Stranger
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from robo_rl.deploy.robot.drivers.dynamixel.packets import (  # fmt: skip
    ALL,
    HEAD,
    PLAIN,
    STUFFED,
    Instruction,
    Packet,
    Parser,
    crc,
    sync_write,
    write,
)

Answers = list[bytes]
CODE = 7
"""Where a packet has its instruction."""
A_CYCLE = 4
"""Packets of ours: two reads, voltage and goals."""


@dataclass
class DynamixelWire:
    """The line between a computer and the servos, and what is wrong with it."""

    bus: ServoBus
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    late: list[Answers] = field(default_factory=list)
    rate: float = RATE
    """Hz at which somebody else sends."""

    def exchange(self, data: bytes) -> bytes:
        """What comes back for bytes that are sent. OSError where the line is gone."""
        return b"".join(FAULTS[self.fault].how(self, data))

    def begin(self, fault: str) -> None:
        """From now on this is wrong."""
        damage.require_fault(fault, FAULTS)
        self.fault = fault
        if fault == "another commander":
            self._share()

    def end(self) -> None:
        """The wire is whole again; what a fault did to the servos stays."""
        self.fault = ""
        self.bus.others = lambda seconds: None

    def _share(self) -> None:
        """Somebody else wants the arm where it is now, from now on."""
        stranger = Stranger(self.rate, self.random)
        here = {id: r.GOAL_POSITION.encode(servo.get(r.PRESENT_POSITION)) for id, servo in self.bus.servos.items()}

        def send(seconds: float) -> None:
            for _ in range(stranger.due(seconds)):
                self.bus.feed(sync_write(here, r.GOAL_POSITION.address))

        self.bus.others = send


How = Callable[[DynamixelWire, bytes], Answers]


@dataclass(frozen=True)
class Fault:
    """One thing that happens on the wire."""

    text: str
    borne: bool
    """Whether the policy goes on: it happens on every bus. Else the arm has to be stopped where it is."""
    how: How


def _each(way: damage.Way) -> How:
    """The same happens to every answer."""
    return lambda wire, data: [one for answer in wire.bus.feed(data) for one in way(wire, answer)]


def _late(by: int) -> How:
    def how(wire: DynamixelWire, data: bytes) -> Answers:
        wire.late.append(wire.bus.feed(data))
        return wire.late.pop(0) if len(wire.late) > by else []

    return how


def _echo(wire: DynamixelWire, data: bytes) -> Answers:
    """An adapter that hears itself."""
    return [data, *wire.bus.feed(data)]


def _foreign(line: damage.Line, answer: bytes) -> Answers:
    return [Packet(77, Instruction.STATUS, b"\0\1\2\3").encode(), answer]


def _noise(line: damage.Line, answer: bytes) -> Answers:
    return [line.random.randbytes(line.random.randrange(5)), answer]


def _stuffed_wrongly(line: damage.Line, answer: bytes) -> Answers:
    """With a header's bytes where its voltage is, and no byte behind them; the CRC is right."""
    (packet,) = Parser().feed(answer)
    parameters = packet.parameters[:-4] + PLAIN + packet.parameters[-1:]
    whole = Packet(packet.id, packet.code, parameters).encode()[:-2].replace(STUFFED, PLAIN)
    size = int.from_bytes(whole[5:7], "little") - 1
    whole = HEAD + whole[4:5] + size.to_bytes(2, "little") + whole[7:]
    return [whole + crc(whole).to_bytes(2, "little")]


def _answers_for_another(line: damage.Line, answer: bytes) -> Answers:
    """Servo 3 says that it is servo 4."""
    (packet,) = Parser().feed(answer)
    return [packet._replace(id=4).encode() if packet.id == 3 else answer]


def _goals_lost(wire: DynamixelWire, data: bytes) -> Answers:
    return [] if data[CODE : CODE + 1] == bytes([Instruction.SYNC_WRITE]) else wire.bus.feed(data)


def _restart(*ids: int) -> How:
    def how(wire: DynamixelWire, data: bytes) -> Answers:
        for id in ids:
            wire.bus.servos[id].restart()
        wire.end()
        return wire.bus.feed(data)

    return how


def _dead(wire: DynamixelWire, data: bytes) -> Answers:
    wire.bus.servos[2].alive = False
    return wire.bus.feed(data)


def _error(bits: int) -> How:
    def how(wire: DynamixelWire, data: bytes) -> Answers:
        wire.bus.servos[2].fail(bits)
        return wire.bus.feed(data)

    return how


def _tripped(wire: DynamixelWire, data: bytes) -> Answers:
    """One servo did not hear for a while what the others heard."""
    servo = wire.bus.servos[2]
    servo.silence = 10.0
    servo.advance(0.0)
    wire.end()
    return wire.bus.feed(data)


def _deaf(wire: DynamixelWire, data: bytes) -> Answers:
    """Nothing that is sent arrives: the watchdogs trip."""
    return []


def _set_by_another(register: r.Register, value: int) -> How:
    def how(wire: DynamixelWire, data: bytes) -> Answers:
        wire.bus.feed(write(ALL, register.address, register.encode(value)))
        return wire.bus.feed(data)

    return how


FAULTS = {
    "": Fault("nothing", True, _each(damage.whole)),
    "some damaged": Fault("5 % of the answers have a wrong bit", True, _each(damage.damaged(0.05))),
    "some dropped": Fault("5 % of the answers are lost", True, _each(damage.dropped(0.05))),
    "doubled": Fault("every answer comes twice", True, _each(damage.doubled)),
    "echo": Fault("the adapter hears what it sends", True, _echo),
    "foreign packets": Fault("another device speaks between the answers", True, _each(_foreign)),
    "late by a question": Fault("every answer comes after the next question", True, _late(1)),
    "noise": Fault("random bytes between the answers", True, _each(_noise)),
    "all damaged": Fault("every answer has a wrong bit", False, _each(damage.damaged(1.0))),
    "all dropped": Fault("no answer comes", False, _each(damage.nothing)),
    "cut": Fault("half of every answer comes", False, _each(damage.cut)),
    "late by a cycle": Fault("every answer comes in the next cycle, where the same is asked", False, _late(A_CYCLE)),
    "wrong stuffing": Fault("answers have a header inside, with a right CRC", False, _each(_stuffed_wrongly)),
    "answers for another": Fault("servo 3 answers as servo 4", False, _each(_answers_for_another)),
    "goals lost": Fault("goals don't arrive", False, _goals_lost),
    "nothing arrives": Fault("nothing that is sent arrives; the servos' watchdogs trip", False, _deaf),
    "unplugged": Fault("the port is gone", False, damage.unplugged),
    "restart of one": Fault("servo 2 loses its power for a moment", False, _restart(2)),
    "restart of all": Fault("all servos lose their power for a moment", False, _restart(1, 2, 3, 4, 5, 6)),
    "dead servo": Fault("servo 2 is silent from now on", False, _dead),
    "overload": Fault("servo 2 shuts down for overload", False, _error(32)),
    "hot": Fault("servo 2 shuts down for its temperature", False, _error(4)),
    "low voltage": Fault("servo 2 reports its voltage, and holds", False, _error(1)),
    "watchdog of one": Fault("the watchdog of servo 2 tripped", False, _tripped),
    "watchdog off": Fault("somebody switches the watchdogs off", False, _set_by_another(r.BUS_WATCHDOG, 0)),
    "another commander": Fault("somebody else sends goals", False, _each(damage.whole)),
    "switched off": Fault("somebody switches torque off", False, _set_by_another(r.TORQUE_ENABLE, 0)),
}
"""By name."""
