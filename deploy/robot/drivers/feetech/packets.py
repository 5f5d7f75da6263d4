"""Packets of Feetech's bus, to the byte (Feetech, Magnetic Encoding Serial Servo Protocol Manual, and its SDK).

    FF FF ID LENGTH INSTRUCTION PARAMETERS… CHECKSUM        to the servos; FE: to all
    FF FF ID LENGTH ERROR       PARAMETERS… CHECKSUM        from a servo

LENGTH counts what follows it; CHECKSUM is the complement of the sum of all from ID on. Numbers are little-endian;
those with a sign have it in a bit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from robo_rl.deploy.robot.drivers.packet_stream import PacketStream

HEAD = b"\xff\xff"
ALL = 0xFE
LONGEST = 250
"""Bytes of parameters."""


class Instruction(IntEnum):
    """What a servo is asked."""

    PING = 1
    READ = 2
    WRITE = 3
    REG_WRITE = 4
    ACTION = 5
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83


ERRORS = {1: "voltage", 2: "position sensor", 4: "temperature", 8: "current", 32: "overload"}
"""Bits of a reply's error byte."""


class Packet(NamedTuple):
    """One packet, either way."""

    id: int
    code: int
    """Instruction, or error bits."""
    parameters: bytes

    def encode(self) -> bytes:
        """Its bytes."""
        if not 0 <= self.id <= ALL or len(self.parameters) > LONGEST:
            raise ValueError(f"ID {self.id}, {len(self.parameters)} bytes; expected 0 to {ALL}, at most {LONGEST}")
        body = bytes([self.id, len(self.parameters) + 2, self.code]) + self.parameters
        return HEAD + body + bytes([checksum(body)])


def checksum(body: bytes) -> int:
    """Of all between head and checksum."""
    return ~sum(body) & 0xFF


def ping(id: int) -> bytes:
    """Asks whether a servo is there."""
    return Packet(id, Instruction.PING, b"").encode()


def read(id: int, address: int, size: int) -> bytes:
    """Asks for registers."""
    return Packet(id, Instruction.READ, bytes([address, size])).encode()


def write(id: int, address: int, data: bytes) -> bytes:
    """Writes registers."""
    return Packet(id, Instruction.WRITE, bytes([address]) + data).encode()


def sync_read(ids: Sequence[int], address: int, size: int) -> bytes:
    """Asks several servos for the same registers; they answer one after the other, in this order."""
    return Packet(ALL, Instruction.SYNC_READ, bytes([address, size, *ids])).encode()


def sync_write(data: Mapping[int, bytes], address: int) -> bytes:
    """Writes the same registers of several servos, by ID; none answers."""
    (size,) = {len(one) for one in data.values()}
    body = b"".join(bytes([id]) + one for id, one in data.items())
    return Packet(ALL, Instruction.SYNC_WRITE, bytes([address, size]) + body).encode()


class Parser(PacketStream[Packet]):
    """Packets out of a stream of bytes, whatever else is in it."""

    head = HEAD

    def length(self, data: bytearray) -> int | None:
        """As ``PacketStream`` asks."""
        if len(data) < 4:
            return None
        id, length = data[2], data[3]  # FF FF FF: the head begins a byte later
        return 4 + length if id <= ALL and 2 <= length <= LONGEST + 2 else 0

    def packet(self, data: bytes) -> Packet | None:
        """None where the checksum is wrong."""
        body = data[2:-1]
        return Packet(body[0], body[2], body[3:]) if checksum(body) == data[-1] else None


def to_raw(value: int, sign: int | None) -> int:
    """A number as two bytes hold it, ``sign`` being the bit of its sign. ValueError if it does not fit."""
    most = (1 << sign) - 1 if sign is not None else 0xFFFF
    if abs(value) > most or (value < 0 and sign is None):
        raise ValueError(f"{value} does not fit; expected at most {most} in size")
    return -value | 1 << sign if value < 0 and sign is not None else value


def from_raw(raw: int, sign: int | None) -> int:
    """The number that two bytes hold."""
    return -(raw & ~(1 << sign)) if sign is not None and raw & 1 << sign else raw
