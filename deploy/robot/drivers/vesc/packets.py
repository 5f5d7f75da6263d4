"""Packets of a VESC on a serial line: 02 LENGTH payload CRC CRC 03, or 03 LENGTH LENGTH … for more than 255 bytes.

The checksum is CRC-16/XMODEM of the payload, big-endian (vedderb/bldc, comm/packet.c, util/crc.c).
"""

from __future__ import annotations

import binascii

from robo_rl.deploy.robot.drivers.packet_stream import PacketStream

SHORT, LONG, END = 2, 3, 3
LONGEST = 512
"""Bytes of a payload: bldc, PACKET_MAX_PL_LEN."""


def encode(payload: bytes) -> bytes:
    """The packet of a payload of 1 to 512 bytes."""
    if not 0 < len(payload) <= LONGEST:
        raise ValueError(f"a payload has {len(payload)} bytes; expected 1 to {LONGEST}")
    head = bytes([SHORT, len(payload)]) if len(payload) < 256 else bytes([LONG]) + len(payload).to_bytes(2, "big")
    return head + payload + binascii.crc_hqx(payload, 0).to_bytes(2, "big") + bytes([END])


class Parser(PacketStream[bytes]):
    """Payloads out of a stream of bytes, whatever else is in it."""

    def length(self, data: bytearray) -> int | None:
        """As ``PacketStream`` asks."""
        head = data[0]
        if head not in (SHORT, LONG):
            return 0
        if len(data) < head:
            return None
        size = int.from_bytes(data[1:head], "big")
        return head + size + 3 if (0 < size < 256 if head == SHORT else 255 < size <= LONGEST) else 0

    def packet(self, data: bytes) -> bytes | None:
        """None where checksum or end is wrong."""
        payload, tail = data[data[0] : -3], data[-3:]
        whole = tail[2] == END and binascii.crc_hqx(payload, 0) == int.from_bytes(tail[:2], "big")
        return payload if whole else None
