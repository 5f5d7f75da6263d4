"""Packets of a VESC on a serial line: 02 LENGTH payload CRC CRC 03, or 03 LENGTH LENGTH … for more than 255 bytes.

The checksum is CRC-16/XMODEM of the payload, big-endian (vedderb/bldc, comm/packet.c, util/crc.c).
"""

from __future__ import annotations

import binascii

SHORT, LONG, END = 2, 3, 3
LONGEST = 512
"""Bytes of a payload: bldc, PACKET_MAX_PL_LEN."""


def encode(payload: bytes) -> bytes:
    """The packet of a payload of 1 to 512 bytes."""
    if not 0 < len(payload) <= LONGEST:
        raise ValueError(f"a payload has {len(payload)} bytes; expected 1 to {LONGEST}")
    head = bytes([SHORT, len(payload)]) if len(payload) < 256 else bytes([LONG]) + len(payload).to_bytes(2, "big")
    return head + payload + binascii.crc_hqx(payload, 0).to_bytes(2, "big") + bytes([END])


class Parser:
    """Payloads out of a stream of bytes, whatever else is in it."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.damaged = 0
        """Packets with a wrong checksum or end."""
        self.skipped = 0
        """Bytes that belonged to no packet."""

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that are complete now."""
        self._bytes += data
        found = []
        while (payload := self._next()) is not None:
            found.append(payload)
        return found

    def clear(self) -> None:
        """Forget what is not complete."""
        self._skip(len(self._bytes))

    def _next(self) -> bytes | None:
        data = self._bytes
        while data:
            head = data[0]
            if head not in (SHORT, LONG):
                self._skip(1)
                continue
            if len(data) < head:
                return None
            size = int.from_bytes(data[1:head], "big")
            if not (0 < size < 256 if head == SHORT else 255 < size <= LONGEST):
                self._skip(1)
                continue
            if len(data) < head + size + 3:
                return None
            payload, tail = bytes(data[head : head + size]), data[head + size : head + size + 3]
            if tail[2] == END and binascii.crc_hqx(payload, 0) == int.from_bytes(tail[:2], "big"):
                del data[: head + size + 3]
                return payload
            self.damaged += 1
            self._skip(1)
        return None

    def _skip(self, count: int) -> None:
        self.skipped += count
        del self._bytes[:count]
