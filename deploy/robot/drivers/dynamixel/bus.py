"""A bus of Dynamixel's servos."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from robo_rl.deploy.robot.drivers.bus_servos.bus import ANSWER, Answer, HalfDuplexBus
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.dynamixel import packets
from robo_rl.deploy.robot.drivers.dynamixel.packets import ALERT, Fail, Instruction, Parser
from robo_rl.deploy.robot.drivers.dynamixel.registers import Register
from robo_rl.deploy.robot.drivers.serial_port import Port

ANSWERED = 64
"""Bytes of registers that a servo is asked for at once, at most."""


class _Answers(Parser):
    """Status packets: all others, such as the echo of a question, are nobody's answer.

    A flood of damaged packets costs their checksums, so no longer ones are taken for packets than answers are.
    """

    longest = ANSWERED

    def answers(self, data: bytes) -> list[Answer]:
        statuses = [p for p in self.feed(data) if p.code == Instruction.STATUS and p.parameters]
        return [Answer(p.id, p.parameters[0], p.parameters[1:]) for p in statuses]


class Found(NamedTuple):
    """What a servo tells when it is pinged."""

    error: int
    model: int
    firmware: int


class Bus(HalfDuplexBus):
    """Servos behind a port."""

    def __init__(self, port: Port, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(port, _Answers(), now)

    def ping(self, id: int) -> Found | None:
        """A servo's model and firmware; None if it does not answer."""
        found = self.patiently(packets.ping(id), [id], 3)
        if not found:
            return None
        data = found[id].parameters
        return Found(found[id].code, int.from_bytes(data[:2], "little"), data[2])

    def read(self, id: int, register: Register) -> int:
        """A register, where nothing moves yet. DriverError if there is no answer."""
        found = self.patiently(packets.read(id, register.address, register.size), [id], register.size)
        if not found:
            raise DriverError(f"servo {id} does not answer; check its cable, its power and its ID")
        return register.decode(found[id].parameters)

    def write(self, id: int, register: Register, value: int) -> None:
        """Write a register and read it back, where nothing moves yet. DriverError if it is not as written."""
        found = self.patiently(packets.write(id, register.address, register.encode(value)), [id], 0)
        number = found[id].code & ~ALERT if found else 0
        if number:
            reason = Fail(number).name.lower().replace("_", " ") if number in list(Fail) else str(number)
            raise DriverError(f"servo {id} refused {value} for its register {register.address}: {reason} error")
        if (now := self.read(id, register)) != value:
            raise DriverError(f"servo {id}: register {register.address} is {now} after {value} was written")

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Answer]:
        """Registers of several servos, by ID; who has not answered within ``ANSWER`` is left out."""
        return self.ask(packets.sync_read(ids, address, size), ids, size, ANSWER)

    def sync_write(self, data: Mapping[int, bytes], address: int) -> None:
        """Write registers of several servos; nobody answers."""
        self.port.write(packets.sync_write(data, address))
