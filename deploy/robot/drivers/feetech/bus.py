"""A bus of Feetech's servos."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from robo_rl.deploy.robot.drivers.bus_servos.bus import ANSWER, Answer, HalfDuplexBus
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.feetech import packets
from robo_rl.deploy.robot.drivers.feetech.packets import Parser
from robo_rl.deploy.robot.drivers.feetech.registers import EEPROM_END, LOCK, Register
from robo_rl.deploy.robot.drivers.serial_port import Port


class _Answers(Parser):
    def answers(self, data: bytes) -> list[Answer]:
        return [Answer(*packet) for packet in self.feed(data)]


class Bus(HalfDuplexBus):
    """Servos behind a port."""

    def __init__(self, port: Port, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(port, _Answers(), now)

    def ping(self, id: int) -> int | None:
        """The error bits of a servo; None if it does not answer."""
        found = self.patiently(packets.ping(id), [id], 0)
        return found[id].code if found else None

    def read(self, id: int, register: Register) -> int:
        """A register, where nothing moves yet. DriverError if there is no answer."""
        found = self.patiently(packets.read(id, register.address, register.size), [id], register.size)
        if not found:
            raise DriverError(f"servo {id} does not answer; check its cable, its power and its ID")
        return register.decode(found[id].parameters)

    def write(self, id: int, register: Register, value: int) -> None:
        """Write a register and read it back, where nothing moves yet. DriverError if it is not as written.

        EEPROM is unlocked for that.
        """
        locked = register.address < EEPROM_END
        if locked:
            self.patiently(packets.write(id, LOCK.address, LOCK.encode(0)), [id], 0)
        self.patiently(packets.write(id, register.address, register.encode(value)), [id], 0)
        if locked:
            self.patiently(packets.write(id, LOCK.address, LOCK.encode(1)), [id], 0)
        if (found := self.read(id, register)) != value:
            raise DriverError(f"servo {id}: register {register.address} is {found} after {value} was written")

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Answer]:
        """Registers of several servos, by ID; who has not answered within ``ANSWER`` is left out."""
        return self.ask(packets.sync_read(ids, address, size), ids, size, ANSWER)

    def sync_write(self, data: Mapping[int, bytes], address: int) -> None:
        """Write registers of several servos; nobody answers."""
        self.port.write(packets.sync_write(data, address))
