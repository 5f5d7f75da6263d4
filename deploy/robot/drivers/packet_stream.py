"""Packets out of a stream of bytes, whatever else is in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

P = TypeVar("P")


class PacketStream(ABC, Generic[P]):
    """Of one protocol, which says how long a packet is and what is in it."""

    head = b""
    """Bytes that every packet begins with."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.damaged = 0
        """Packets that are not as they were sent, by their checksum and form."""
        self.skipped = 0
        """Bytes that belonged to no packet."""

    @abstractmethod
    def length(self, data: bytearray) -> int | None:
        """Bytes of the packet that ``data`` begins with; 0 if none begins here, None if it can't be told yet."""

    @abstractmethod
    def packet(self, data: bytes) -> P | None:
        """What these bytes are, as many as ``length`` told; None if they are damaged."""

    def feed(self, data: bytes) -> list[P]:
        """The packets that are complete now."""
        self._bytes += data
        found = []
        while (packet := self._next()) is not None:
            found.append(packet)
        return found

    def clear(self) -> None:
        """Forget what is not complete."""
        self._skip(len(self._bytes))

    def _next(self) -> P | None:
        data = self._bytes
        while data:
            at = data.find(self.head)
            if at < 0:
                begun = (count for count in range(len(self.head) - 1, 0, -1) if data.endswith(self.head[:count]))
                self._skip(len(data) - next(begun, 0))
                return None
            self._skip(at)
            size = self.length(data)
            if size is None or len(data) < size:
                return None
            if size:
                packet = self.packet(bytes(data[:size]))
                if packet is not None:
                    del data[:size]
                    return packet
                self.damaged += 1
            self._skip(1)
        return None

    def _skip(self, count: int) -> None:
        self.skipped += count
        del self._bytes[:count]
