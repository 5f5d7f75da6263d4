"""What happens to bytes and servos on the way: faults, each with its name, for tests and for ``robo-rl emulate``."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from robo_rl.deploy.emulate.damage import require_fault, unplugged
from robo_rl.deploy.emulate.servos import ServoBus
from robo_rl.deploy.emulate.stranger import RATE, Stranger
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.packets import ALL, Instruction, Packet, checksum, sync_write

Answers = list[bytes]
LATE_BY = 3
"""Packets of ours."""


@dataclass
class Wire:
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
        """From now on this is wrong. ValueError unless it is the name of a fault."""
        require_fault(fault, FAULTS)
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
        here = {id: r.GOAL_POSITION.encode(max(0, s.get(r.PRESENT_POSITION))) for id, s in self.bus.servos.items()}

        def send(seconds: float) -> None:
            for _ in range(stranger.due(seconds)):
                self.bus.feed(sync_write(here, r.GOAL_POSITION.address))

        self.bus.others = send


@dataclass(frozen=True)
class Fault:
    """One thing that happens on the wire."""

    text: str
    borne: bool
    """Whether the policy goes on: it happens on every bus. Else the arm has to be stopped where it is."""
    how: Callable[[Wire, bytes], Answers]


def _whole(wire: Wire, data: bytes) -> Answers:
    return wire.bus.feed(data)


def _damaged(part: float) -> Callable[[Wire, bytes], Answers]:
    def how(wire: Wire, data: bytes) -> Answers:
        return [_flip(wire, one) if wire.random.random() < part else one for one in wire.bus.feed(data)]

    return how


def _flip(wire: Wire, packet: bytes) -> bytes:
    at = wire.random.randrange(len(packet))
    return packet[:at] + bytes([packet[at] ^ 1 << wire.random.randrange(8)]) + packet[at + 1 :]


def _dropped(part: float) -> Callable[[Wire, bytes], Answers]:
    def how(wire: Wire, data: bytes) -> Answers:
        return [one for one in wire.bus.feed(data) if wire.random.random() >= part]

    return how


def _questions_lost(wire: Wire, data: bytes) -> Answers:
    return [] if data[4:5] == bytes([Instruction.SYNC_WRITE]) else wire.bus.feed(data)


def _doubled(wire: Wire, data: bytes) -> Answers:
    return [copy for one in wire.bus.feed(data) for copy in (one, one)]


def _late(wire: Wire, data: bytes) -> Answers:
    """By one control period: two questions and the goals of one cycle, and then the next cycle's first."""
    wire.late.append(wire.bus.feed(data))
    return wire.late.pop(0) if len(wire.late) > LATE_BY else []


def _foreign(wire: Wire, data: bytes) -> Answers:
    return [copy for one in wire.bus.feed(data) for copy in (Packet(77, 0, b"\1\2\3").encode(), one)]


def _noise(wire: Wire, data: bytes) -> Answers:
    return [copy for one in wire.bus.feed(data) for copy in (wire.random.randbytes(wire.random.randrange(4)), one)]


def _cut(wire: Wire, data: bytes) -> Answers:
    return [one[: len(one) // 2] for one in wire.bus.feed(data)]


def _answers_for_another(wire: Wire, data: bytes) -> Answers:
    """Servo 3 says that it is servo 4."""
    return [_as(4, one) if one[2] == 3 else one for one in wire.bus.feed(data)]


def _as(id: int, packet: bytes) -> bytes:
    body = bytes([id]) + packet[3:-1]
    return packet[:2] + body + bytes([checksum(body)])


def _brown_out(*ids: int) -> Callable[[Wire, bytes], Answers]:
    def how(wire: Wire, data: bytes) -> Answers:
        for id in ids:
            wire.bus.servos[id].power_cycle()
        wire.end()
        return wire.bus.feed(data)

    return how


def _dead(wire: Wire, data: bytes) -> Answers:
    wire.bus.servos[2].alive = False
    return wire.bus.feed(data)


def _error(bits: int, torque: bool) -> Callable[[Wire, bytes], Answers]:
    def how(wire: Wire, data: bytes) -> Answers:
        wire.bus.servos[2].errors = bits
        if not torque:
            wire.bus.servos[2].set(r.TORQUE_ENABLE, 0)
        return wire.bus.feed(data)

    return how


def _switched_off(wire: Wire, data: bytes) -> Answers:
    """Somebody switches torque off."""
    wire.bus.feed(Packet(ALL, Instruction.WRITE, bytes([r.TORQUE_ENABLE.address, 0])).encode())
    return wire.bus.feed(data)


FAULTS = {
    "": Fault("nothing", True, _whole),
    "some damaged": Fault("5 % of the answers have a wrong byte", True, _damaged(0.05)),
    "some dropped": Fault("5 % of the answers are lost", True, _dropped(0.05)),
    "doubled": Fault("every answer comes twice", True, _doubled),
    "foreign packets": Fault("another device speaks between the answers", True, _foreign),
    "noise": Fault("random bytes between the answers", True, _noise),
    "all damaged": Fault("every answer has a wrong byte", False, _damaged(1.0)),
    "all dropped": Fault("no answer comes", False, _dropped(1.0)),
    "cut": Fault("half of every answer comes", False, _cut),
    "late": Fault("every answer comes in the cycle after its own", False, _late),
    "answers for another": Fault("servo 3 answers as servo 4", False, _answers_for_another),
    "goals lost": Fault("goals don't arrive", False, _questions_lost),
    "unplugged": Fault("the port is gone", False, unplugged),
    "brown-out of one": Fault("servo 2 loses its power for a moment", False, _brown_out(2)),
    "brown-out of all": Fault("all servos lose their power for a moment", False, _brown_out(1, 2, 3, 4, 5, 6)),
    "dead servo": Fault("servo 2 is silent from now on", False, _dead),
    "overload": Fault("servo 2 latches overload and lets go", False, _error(32, torque=False)),
    "hot": Fault("servo 2 reports its temperature", False, _error(4, torque=True)),
    "low voltage": Fault("servo 2 reports its voltage", False, _error(1, torque=True)),
    "another commander": Fault("somebody else sends goals", False, _whole),
    "switched off": Fault("somebody switches torque off", False, _switched_off),
}
"""By name."""
