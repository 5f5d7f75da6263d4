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

from robo_rl.deploy.robot.drivers.packet_stream import PacketStream

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


class Parser(PacketStream[Packet]):
    """Packets out of a stream of bytes, whatever else is in it."""

    head = HEAD
    longest = LONGEST
    """Bytes of parameters of the packets that are expected."""

    def length(self, data: bytearray) -> int | None:
        """As ``PacketStream`` asks."""
        if len(data) < 7:
            return None
        id, length = data[4], int.from_bytes(data[5:7], "little")
        return 7 + length if id <= ALL and 3 <= length <= 3 + 2 * self.longest else 0

    def packet(self, data: bytes) -> Packet | None:
        """None where the CRC is wrong, or bytes are stuffed wrongly."""
        body = data[7:-2]
        if crc(data[:-2]) != int.from_bytes(data[-2:], "little") or _bare(body):
            return None
        plain = body.replace(STUFFED, PLAIN)
        return Packet(data[4], plain[0], plain[1:])


def _bare(body: bytes) -> bool:
    """Whether FF FF FD comes without the FD behind it."""
    return PLAIN in body.replace(STUFFED, b"")
