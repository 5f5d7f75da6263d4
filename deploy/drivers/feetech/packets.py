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


class Parser:
    """Packets out of a stream of bytes, whatever else is in it."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.damaged = 0
        """Packets whose checksum was wrong."""
        self.skipped = 0
        """Bytes that belonged to no packet."""

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that are complete now."""
        self._bytes += data
        found = []
        while (packet := self._next()) is not None:
            found.append(packet)
        return found

    def clear(self) -> None:
        """Forget what is not complete."""
        self.skipped += len(self._bytes)
        self._bytes.clear()

    def _next(self) -> Packet | None:
        data = self._bytes
        while True:
            at = data.find(HEAD)
            if at < 0:
                keep = 1 if data[-1:] == HEAD[:1] else 0
                self._skip(len(data) - keep)
                return None
            self._skip(at)
            if len(data) < 4:
                return None
            id, length = data[2], data[3]
            if id > ALL or not 2 <= length <= LONGEST + 2:  # FF FF FF: the head begins a byte later
                self._skip(1)
                continue
            if len(data) < 4 + length:
                return None
            body, check = bytes(data[2 : 3 + length]), data[3 + length]
            if checksum(body) != check:
                self.damaged += 1
                self._skip(1)
                continue
            del data[: 4 + length]
            return Packet(id, body[2], body[3:])

    def _skip(self, count: int) -> None:
        self.skipped += count
        del self._bytes[:count]


def to_raw(value: int, sign: int | None) -> int:
    """A number as two bytes hold it, ``sign`` being the bit of its sign. ValueError if it does not fit."""
    most = (1 << sign) - 1 if sign is not None else 0xFFFF
    if abs(value) > most or (value < 0 and sign is None):
        raise ValueError(f"{value} does not fit; expected at most {most} in size")
    return -value | 1 << sign if value < 0 and sign is not None else value


def from_raw(raw: int, sign: int | None) -> int:
    """The number that two bytes hold."""
    return -(raw & ~(1 << sign)) if sign is not None and raw & 1 << sign else raw
