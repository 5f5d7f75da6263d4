"""RTDE's packages, big-endian: size (u16, all of it), type (u8), payload (Universal Robots, "RTDE Guide").

What is exchanged is agreed by name: a recipe is a list of fields, the controller answers with a type for each, and
packages of data have its number and the values in that order.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

PORT, VERSION = 30004, 2
PROTOCOL, CONTROLLER, TEXT, DATA, OUTPUTS, INPUTS, START, PAUSE = b"V", b"v", b"M", b"U", b"O", b"I", b"S", b"P"
LARGEST = 4096
"""Bytes of a package; a line whose packages are larger is not this protocol."""
FORMATS = {
    "BOOL": "?", "UINT8": "B", "UINT32": "I", "UINT64": "Q", "INT32": "i", "DOUBLE": "d", "VECTOR3D": "3d",
    "VECTOR6D": "6d", "VECTOR6INT32": "6i", "VECTOR6UINT32": "6I",
}  # fmt: skip
MISSING, TAKEN = "NOT_FOUND", "IN_USE"
"""In place of a type: there is no such field, or another program writes it."""
Values = dict[str, tuple[float, ...]]


def package(kind: bytes, payload: bytes = b"") -> bytes:
    """As it is sent."""
    return struct.pack(">Hc", 3 + len(payload), kind) + payload


class Packages:
    """Cuts a stream of bytes into packages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Types and payloads that are whole now. ValueError where the stream can't be RTDE."""
        came, at, found = self._rest + data, 0, []
        while len(came) - at >= 3:
            size = int.from_bytes(came[at : at + 2], "big")
            if not 3 <= size <= LARGEST:
                raise ValueError(f"a package of {size} bytes; expected 3 to {LARGEST}")
            if len(came) - at < size:
                break
            found.append((came[at + 2 : at + 3], came[at + 3 : at + size]))
            at += size
        self._rest = came[at:]
        return found


class Recipe:
    """Fields and their types, as both sides agreed."""

    def __init__(self, number: int, names: Sequence[str], types: Sequence[str]) -> None:
        """ValueError where a field is missing, taken, or of a type that RTDE does not have."""
        if len(names) != len(types):
            raise ValueError(f"{len(types)} types came for {len(names)} fields")
        for name, kind in zip(names, types, strict=True):
            if kind not in FORMATS:
                raise ValueError(f"the field {name} is {kind[:40]}; expected one of {', '.join(FORMATS)}")
        self.number, self.names = number, tuple(names)
        self._formats = tuple(struct.Struct(">" + FORMATS[kind]) for kind in types)
        self.size = 1 + sum(one.size for one in self._formats)

    def encode(self, values: Mapping[str, Sequence[float]]) -> bytes:
        """The payload of a package of data."""
        rows = zip(self.names, self._formats, strict=True)
        return bytes([self.number]) + b"".join(one.pack(*values[name]) for name, one in rows)

    def decode(self, payload: bytes) -> Values:
        """By name. ValueError where it is another recipe's, or not as long."""
        if len(payload) != self.size or payload[0] != self.number:
            raise ValueError(
                f"{len(payload)} bytes of recipe {payload[:1].hex()}; expected {self.size} of {self.number}"
            )
        found: Values = {}
        at = 1
        for name, one in zip(self.names, self._formats, strict=True):
            found[name] = one.unpack_from(payload, at)
            at += one.size
        return found
