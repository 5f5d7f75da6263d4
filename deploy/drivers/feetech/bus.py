"""The one who asks on a bus of servos: half duplex, one question at a time, answers matched by ID and size."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from deploy.drivers.driver import DriverError
from deploy.drivers.feetech import packets
from deploy.drivers.feetech.packets import Packet, Parser
from deploy.drivers.feetech.registers import EEPROM_END, LOCK, Register
from deploy.drivers.serial_port import Port

ANSWER = 0.005
"""s to wait for more bytes: an answer of 14 bytes takes 0.14 ms at 1 Mbit/s, a USB adapter up to 2 ms."""
PATIENT = 0.05
"""s, where nothing moves yet: EEPROM is written in some ms."""
TRIES = 3
"""Damaged packets are normal on such a bus."""


class Bus:
    """Servos behind a port."""

    def __init__(self, port: Port, now: Callable[[], float] = time.monotonic) -> None:
        self.port, self._now = port, now
        self._parser = Parser()
        self.asked = self.unanswered = self.foreign = 0
        """Questions, those without their answer, and packets that were answers to no question."""

    @property
    def damaged(self) -> int:
        """Packets with a wrong checksum."""
        return self._parser.damaged

    def ping(self, id: int) -> int | None:
        """The error bits of a servo; None if it does not answer."""
        found = self._patiently(packets.ping(id), [id], 0)
        return found[id].code if found else None

    def read(self, id: int, register: Register) -> int:
        """A register, where nothing moves yet. DriverError if there is no answer."""
        found = self._patiently(packets.read(id, register.address, register.size), [id], register.size)
        if not found:
            raise DriverError(f"servo {id} does not answer; check its cable, its power and its ID")
        return register.decode(found[id].parameters)

    def write(self, id: int, register: Register, value: int) -> None:
        """Write a register and read it back, where nothing moves yet. DriverError if it is not as written.

        EEPROM is unlocked for that.
        """
        locked = register.address < EEPROM_END
        if locked:
            self._patiently(packets.write(id, LOCK.address, LOCK.encode(0)), [id], 0)
        self._patiently(packets.write(id, register.address, register.encode(value)), [id], 0)
        if locked:
            self._patiently(packets.write(id, LOCK.address, LOCK.encode(1)), [id], 0)
        if (found := self.read(id, register)) != value:
            raise DriverError(f"servo {id}: register {register.address} is {found} after {value} was written")

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Packet]:
        """Registers of several servos, by ID; who has not answered within ``ANSWER`` is left out."""
        return self._ask(packets.sync_read(ids, address, size), ids, size, ANSWER)

    def sync_write(self, data: Mapping[int, bytes], address: int) -> None:
        """Write registers of several servos; nobody answers."""
        self.port.write(packets.sync_write(data, address))

    def _patiently(self, question: bytes, ids: Sequence[int], size: int) -> dict[int, Packet]:
        for _ in range(TRIES):
            found = self._ask(question, ids, size, PATIENT)
            if found:
                return found
        return {}

    def _ask(self, question: bytes, ids: Sequence[int], size: int, patience: float) -> dict[int, Packet]:
        self._parser.clear()
        for _ in range(64):  # what came late, for another question
            if not self.port.read(0.0):
                break
        self.port.write(question)
        self.asked += len(ids)
        found: dict[int, Packet] = {}
        twice: set[int] = set()
        until = self._now() + patience * (1 + 0.2 * len(ids))
        while len(found) < len(ids) and (left := until - self._now()) > 0:
            data = self.port.read(min(left, patience))
            if not data:
                break
            for packet in self._parser.feed(data):
                if packet.id not in ids or len(packet.parameters) != size:
                    self.foreign += 1
                elif packet.id not in found:
                    found[packet.id] = packet
                else:  # one of them may be another servo's
                    self.foreign += 1
                    twice |= {packet.id} if packet != found[packet.id] else set()
        found = {id: packet for id, packet in found.items() if id not in twice}
        self.unanswered += len(ids) - len(found)
        return found
