"""Packets of Dynamixel's bus, to the byte (ROBOTIS e-manual, Protocol 2.0).

    FF FF FD 00 ID LENGTH LENGTH INSTRUCTION       PARAMETERS… CRC CRC        to the servos; FE: to all
    FF FF FD 00 ID LENGTH LENGTH 55          ERROR PARAMETERS… CRC CRC        from a servo

LENGTH counts what follows it; the CRC is over all before it. Where FF FF FD comes in what LENGTH counts, another FD is
put behind it. Numbers are little-endian; those with a sign are in two's complement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

HEAD = b"\xff\xff\xfd\x00"
ALL = 0xFE
LONGEST = 1024
"""Bytes of parameters."""
ALERT = 0x80
"""In an error byte: HARDWARE_ERROR says why."""
PLAIN, STUFFED = b"\xff\xff\xfd", b"\xff\xff\xfd\xfd"


class Instruction(IntEnum):
    """What a servo is asked."""

    PING = 1
    READ = 2
    WRITE = 3
    REG_WRITE = 4
    ACTION = 5
    REBOOT = 8
    STATUS = 0x55
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83


class Fail(IntEnum):
    """Numbers in a reply's error byte."""

    RESULT = 1
    INSTRUCTION = 2
    CRC = 3
    DATA_RANGE = 4
    DATA_LENGTH = 5
    DATA_LIMIT = 6
    ACCESS = 7


def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = (value << 1 ^ (0x8005 if value & 0x8000 else 0)) & 0xFFFF
        found.append(value)
    return tuple(found)


TABLE = _table()


def crc(data: bytes) -> int:
    """CRC-16 with the polynomial 8005, from the top bit, beginning with 0."""
    value = 0
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ TABLE[value >> 8 ^ byte]
    return value


class Packet(NamedTuple):
    """One packet, either way."""

    id: int
    code: int
    """Instruction."""
    parameters: bytes
    """Of a STATUS, the first is the error byte."""

    def encode(self) -> bytes:
        """Its bytes."""
        if not 0 <= self.id <= ALL or len(self.parameters) > LONGEST:
            raise ValueError(f"ID {self.id}, {len(self.parameters)} bytes; expected 0 to {ALL}, at most {LONGEST}")
        body = (bytes([self.code]) + self.parameters).replace(PLAIN, STUFFED)
        data = HEAD + bytes([self.id]) + (len(body) + 2).to_bytes(2, "little") + body
        return data + crc(data).to_bytes(2, "little")


def ping(id: int) -> bytes:
    """Asks whether a servo is there: it tells its model and firmware."""
    return Packet(id, Instruction.PING, b"").encode()


def read(id: int, address: int, size: int) -> bytes:
    """Asks for registers."""
    return Packet(id, Instruction.READ, _two(address) + _two(size)).encode()


def write(id: int, address: int, data: bytes) -> bytes:
    """Writes registers."""
    return Packet(id, Instruction.WRITE, _two(address) + data).encode()


def reboot(id: int) -> bytes:
    """Starts a servo anew."""
    return Packet(id, Instruction.REBOOT, b"").encode()


def sync_read(ids: Sequence[int], address: int, size: int) -> bytes:
    """Asks several servos for the same registers; they answer one after the other, in this order."""
    return Packet(ALL, Instruction.SYNC_READ, _two(address) + _two(size) + bytes(ids)).encode()


def sync_write(data: Mapping[int, bytes], address: int) -> bytes:
    """Writes the same registers of several servos, by ID; none answers."""
    (size,) = {len(one) for one in data.values()}
    body = b"".join(bytes([id]) + one for id, one in data.items())
    return Packet(ALL, Instruction.SYNC_WRITE, _two(address) + _two(size) + body).encode()


def _two(number: int) -> bytes:
    return number.to_bytes(2, "little")


class Parser:
    """Packets out of a stream of bytes, whatever else is in it."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.damaged = 0
        """Packets with a wrong CRC, or stuffed wrongly."""
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
                keep = next((count for count in (3, 2, 1) if data.endswith(HEAD[:count])), 0)
                self._skip(len(data) - keep)
                return None
            self._skip(at)
            if len(data) < 7:
                return None
            id, length = data[4], int.from_bytes(data[5:7], "little")
            if id > ALL or not 3 <= length <= 3 + 2 * LONGEST:
                self._skip(1)
                continue
            if len(data) < 7 + length:
                return None
            body = bytes(data[7 : 5 + length])
            if crc(bytes(data[: 5 + length])) != int.from_bytes(data[5 + length : 7 + length], "little") or _bare(body):
                self.damaged += 1
                self._skip(1)
                continue
            del data[: 7 + length]
            plain = body.replace(STUFFED, PLAIN)
            return Packet(id, plain[0], plain[1:])

    def _skip(self, count: int) -> None:
        self.skipped += count
        del self._bytes[:count]


def _bare(body: bytes) -> bool:
    """Whether FF FF FD comes without the FD behind it."""
    return PLAIN in body.replace(STUFFED, b"")
