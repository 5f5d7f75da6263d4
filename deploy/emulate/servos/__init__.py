"""Feetech servos on a bus, as their bytes tell them: registers, EEPROM and its lock, answers, brown-outs.

What moves behind them is ``Motion``'s: a plant, or nothing but the goals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN
from robo_rl.deploy.robot.drivers.feetech import registers as r
from robo_rl.deploy.robot.drivers.feetech.packets import ALL, Instruction, Packet, Parser

SIZE = 86
"""Registers of a servo, bytes."""
CENTRE_HERE = 128
"""Written to TORQUE_ENABLE: what is here becomes the middle, 2048."""
FACTORY = (
    (r.FIRMWARE, 0x0A03), (r.MODEL_NUMBER, r.MODEL), (r.RETURN_DELAY, 250), (r.LOWER_LIMIT, 0),
    (r.UPPER_LIMIT, TURN - 1), (r.MAX_TORQUE, 1000), (r.P, 32), (r.D, 32), (r.I, 0), (r.LOCK, 1),
    (r.TORQUE_LIMIT, 1000), (r.PRESENT_VOLTAGE, 120), (r.PRESENT_TEMPERATURE, 30),
)  # fmt: skip
READ_ONLY = range(r.PRESENT_POSITION.address, SIZE)


class Motion(Protocol):
    """What the servos move."""

    def advance(self, seconds: float, servos: Mapping[int, Servo]) -> None:
        """Move on: from goals, torque and gains to ``Servo.measure``."""


class Servo:
    """One servo's registers."""

    def __init__(self, id: int, offset: int = 0) -> None:
        self.errors = 0
        """Bits of the next answers."""
        self.alive = True
        self.eeprom = bytearray(SIZE)
        for register, value in FACTORY:
            self._put(self.eeprom, register, value)
        self._put(self.eeprom, r.ID, id)
        self._put(self.eeprom, r.OFFSET, offset)
        self.registers = bytearray(self.eeprom)
        self.waiting: tuple[int, bytes] | None = None
        """What REG_WRITE left for ACTION."""
        self.encoder = 0.0
        """Steps, without the offset, and however many turns it made."""

    @staticmethod
    def _put(to: bytearray, register: r.Register, value: int) -> None:
        to[register.address : register.address + register.size] = register.encode(value)

    def get(self, register: r.Register) -> int:
        """A register's number."""
        return register.decode(bytes(self.registers[register.address : register.address + register.size]))

    def set(self, register: r.Register, value: int) -> None:
        """Change a register from inside."""
        self._put(self.registers, register, value)

    def power_cycle(self) -> None:
        """What is not in EEPROM is lost; torque is off."""
        present = self.registers[READ_ONLY.start :]
        self.registers = bytearray(self.eeprom)
        self.registers[READ_ONLY.start :] = present
        self.errors = 0

    def measure(self, encoder: float, speed: float, load: float = 0.0) -> None:
        """What the encoder finds: steps, without the offset, steps/s, and a part of the greatest torque."""
        self.encoder = encoder
        self._place()
        self.set(r.PRESENT_SPEED, max(-32767, min(32767, round(speed))))
        self.set(r.PRESENT_LOAD, max(-1000, min(1000, round(1000 * load))))

    def _place(self) -> None:
        """The position is the encoder's less the offset, and begins anew after a turn."""
        self.set(r.PRESENT_POSITION, (round(self.encoder) - self.get(r.OFFSET)) % TURN)

    @property
    def goal(self) -> float:
        """Steps of the encoder to which it turns: by as much as the goal is from its position, never across 4095|0."""
        goal = min(max(self.get(r.GOAL_POSITION), self.get(r.LOWER_LIMIT)), self.get(r.UPPER_LIMIT))
        return self.encoder + goal - self.get(r.PRESENT_POSITION)

    def write(self, address: int, data: bytes) -> None:
        """Registers from outside."""
        if address == r.TORQUE_ENABLE.address and data[:1] == bytes([CENTRE_HERE]):
            offset = self.get(r.OFFSET) + self.get(r.PRESENT_POSITION) - TURN // 2
            self._put(self.registers, r.OFFSET, max(-2047, min(2047, offset)))
            self._put(self.eeprom, r.OFFSET, max(-2047, min(2047, offset)))
            self._place()
            return
        unlocked = self.get(r.LOCK) == 0
        for place, byte in enumerate(data, address):
            if place >= SIZE or place in READ_ONLY or place < r.ID.address:
                continue
            self.registers[place] = byte
            if place < r.EEPROM_END and unlocked:
                self.eeprom[place] = byte
        if self.get(r.GOAL_POSITION) < 0:
            self.set(r.GOAL_POSITION, 0)
        self._place()


class ServoBus:
    """All servos on one line: bytes in, bytes out."""

    def __init__(self, servos: Sequence[Servo]) -> None:
        self.servos = {servo.get(r.ID): servo for servo in servos}
        self.others: Callable[[float], None] = lambda seconds: None
        """What others send while time goes on."""
        self._parser = Parser()

    def feed(self, data: bytes) -> list[bytes]:
        """The answers to what has come, each a packet."""
        return [answer for packet in self._parser.feed(data) for answer in self._answers(packet)]

    def _answers(self, packet: Packet) -> list[bytes]:
        code, data = packet.code, packet.parameters
        addressed = [s for id, s in self.servos.items() if s.alive and packet.id in (id, ALL)]
        one = addressed[0] if len(addressed) == 1 and packet.id != ALL else None
        if code == Instruction.SYNC_READ and len(data) >= 2:
            found = [self.servos[id] for id in data[2:] if id in self.servos and self.servos[id].alive]
            return [_answer(servo, _span(servo, data[0], data[1])) for servo in found]
        if code == Instruction.SYNC_WRITE and len(data) >= 2:
            size = data[1]
            for at in range(2, len(data) - size, size + 1):
                servo = self.servos.get(data[at])
                if servo is not None and servo.alive:
                    servo.write(data[0], data[at + 1 : at + 1 + size])
            return []
        if code == Instruction.ACTION:
            for servo in addressed:
                if servo.waiting is not None:
                    servo.write(*servo.waiting)
                    servo.waiting = None
        elif code == Instruction.WRITE and data:
            for servo in addressed:
                servo.write(data[0], data[1:])
        elif code == Instruction.REG_WRITE and data:
            for servo in addressed:
                servo.waiting = (data[0], data[1:])
        elif code == Instruction.READ and len(data) == 2 and one is not None:
            return [_answer(one, _span(one, data[0], data[1]))]
        elif code != Instruction.PING:
            return []
        return [_answer(one, b"")] if one is not None else []


def _span(servo: Servo, address: int, size: int) -> bytes:
    return bytes(servo.registers[address : address + size]).ljust(size, b"\0")


def _answer(servo: Servo, data: bytes) -> bytes:
    return Packet(servo.get(r.ID), servo.errors, data).encode()
