"""SCIP 2, the protocol of Hokuyo's lidars: lines of ASCII, numbers of 6 bits a character, a checksum a line.

A command is a line; the answer repeats it, then a status with its checksum, then data, then an empty line. MD makes the
lidar send scans until QT: time stamp (ms, 24 bits) and distances (mm, 18 bits) in lines of 64 characters
(Hokuyo, URG series communication protocol specification SCIP 2.0; UST-10LX protocol specification).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

LINE = 64
"""Characters of a line of data, without its checksum."""
LONGEST = 16384
"""Bytes of an answer: 1,081 beams are 3.4 kB."""
CLOCK = 1 << 24
"""ms at which the lidar's clock begins anew."""
NOTHING = 65533
"""mm: nothing was met (UST-10LX)."""
OK, ALREADY, SCANNING = "00", "02", "99"
"""Status: done; BM, the laser is on; MD, a scan."""


@dataclass(frozen=True)
class Answer:
    """What comes back for a command."""

    command: str
    status: str
    lines: tuple[bytes, ...]
    """Data, with their checksums."""


@dataclass(frozen=True)
class Layout:
    """How a lidar scans, by PP."""

    model: str
    nearest: int
    """mm, below which a distance is an error."""
    farthest: int
    """mm"""
    steps: int
    """Beams in a full turn."""
    first: int
    last: int
    front: int
    """The beam that looks ahead."""
    turns: int
    """Scans per minute."""


@dataclass(frozen=True)
class Distances:
    """A scan."""

    tick: int
    """ms of the lidar's clock, 24 bits."""
    first: int
    """Its first beam."""
    millimetres: np.ndarray
    """(n,) from the first beam on, counter-clockwise."""


def checksum(data: bytes) -> bytes:
    """One character."""
    return bytes([(sum(data) & 0x3F) + 0x30])


def command(text: str) -> bytes:
    """A line."""
    return text.encode("ascii") + b"\n"


def scan_command(first: int, last: int) -> str:
    """Scans of these beams, each, for ever."""
    return f"MD{first:04d}{last:04d}01000"


class Parser:
    """Answers out of a stream of bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.damaged = 0
        """Answers that could not be read, whatever of them."""

    def feed(self, data: bytes) -> list[Answer]:
        """The answers that are complete now."""
        self._bytes += data
        found = []
        while (end := self._bytes.find(b"\n\n")) >= 0:
            block = bytes(self._bytes[:end])
            del self._bytes[: end + 2]
            answer = _answer(block)
            if answer is None:
                self.damaged += 1
            else:
                found.append(answer)
        if len(self._bytes) > LONGEST:
            self.damaged += 1
            self._bytes.clear()
        return found


def _answer(block: bytes) -> Answer | None:
    lines = block.lstrip(b"\n").split(b"\n")
    if len(lines) < 2 or len(lines[1]) != 3 or checksum(lines[1][:2]) != lines[1][2:]:
        return None
    try:
        return Answer(lines[0].decode("ascii"), lines[1][:2].decode("ascii"), tuple(lines[2:]))
    except UnicodeDecodeError:
        return None


def read_layout(answer: Answer) -> Layout:
    """Of the answer to PP. ValueError if it is none."""
    found: dict[str, str] = {}
    for line in answer.lines:
        body, mark, check = line[:-1].rpartition(b";")
        if not mark or check or checksum(body) != line[-1:] or b":" not in body:
            raise ValueError(f"a line of PP is {line[:40]!r}; expected NAME:VALUE;CHECKSUM")
        name, _, value = body.decode("ascii", "replace").partition(":")
        found[name] = value
    numbers = {name: _number(found, name) for name in ("DMIN", "DMAX", "ARES", "AMIN", "AMAX", "AFRT", "SCAN")}
    layout = Layout(found.get("MODL", "unknown")[:40], *numbers.values())
    if not (layout.first <= layout.front <= layout.last < 4096 and 0 < layout.steps < 1 << 16):
        raise ValueError(f"the lidar tells of beams {layout.first} to {layout.last}, {layout.front} ahead")
    return layout


def _number(found: Mapping[str, str], name: str) -> int:
    text = found.get(name, "")
    if not (text.isascii() and text.isdigit()) or len(text) > 6:
        raise ValueError(f"{name} is {text[:20]!r}; expected a number")
    return int(text)


def write_layout(layout: Layout) -> list[bytes]:
    """The lines of PP."""
    rows = {
        "MODL": layout.model, "DMIN": layout.nearest, "DMAX": layout.farthest, "ARES": layout.steps,
        "AMIN": layout.first, "AMAX": layout.last, "AFRT": layout.front, "SCAN": layout.turns,
    }  # fmt: skip
    bodies = [f"{name}:{value}".encode("ascii") for name, value in rows.items()]
    return [body + b";" + checksum(body) for body in bodies]


def read_scan(answer: Answer) -> Distances:
    """Of an answer to MD with the status ``SCANNING``. ValueError for one that is damaged, or none."""
    name = answer.command
    if not (name.startswith("MD") and len(name) == 15 and name[2:].isdigit() and name[10:12] in ("00", "01")):
        raise ValueError(f"{name[:20]!r} is no command for scans of single beams")
    first, last = int(name[2:6]), int(name[6:10])
    if answer.status != SCANNING or not answer.lines or len(answer.lines[0]) != 5:
        raise ValueError(f"status {answer.status!r}, {len(answer.lines)} lines; expected a scan")
    body = b"".join(_checked(line) for line in answer.lines[1:])
    count = last - first + 1
    if len(body) != 3 * count:
        raise ValueError(f"{len(body)} characters for {count} beams; expected three a beam")
    (tick,) = _decode(_checked(answer.lines[0]), 4)
    return Distances(int(tick), first, _decode(body, 3))


def write_scan(name: str, distances: Distances) -> bytes:
    """The whole answer, as the lidar sends it."""
    body = _encode(distances.millimetres, 3)
    lines = [_encode(np.array([distances.tick % CLOCK]), 4), *(body[i : i + LINE] for i in range(0, len(body), LINE))]
    return whole(name, SCANNING, [line + checksum(line) for line in lines])


def whole(name: str, status: str, lines: list[bytes]) -> bytes:
    """An answer."""
    code = status.encode("ascii")
    return b"\n".join([name.encode("ascii"), code + checksum(code), *lines]) + b"\n\n"


def _checked(line: bytes) -> bytes:
    if len(line) < 2 or checksum(line[:-1]) != line[-1:]:
        raise ValueError(f"a line ends in {line[-1:]!r}, which is not its checksum")
    return line[:-1]


def _decode(characters: bytes, each: int) -> np.ndarray:
    """Numbers of so many characters each, of 6 bits, the first the highest."""
    values = np.frombuffer(characters, np.uint8).astype(np.int64).reshape(-1, each) - 0x30
    if values.size and not (values.min() >= 0 and values.max() < 64):
        raise ValueError("a character holds no 6 bits")
    return values @ (64 ** np.arange(each - 1, -1, -1))


def _encode(numbers: np.ndarray, each: int) -> bytes:
    values = numbers[:, None].astype(np.int64) // 64 ** np.arange(each - 1, -1, -1) % 64
    return (values + 0x30).astype(np.uint8).tobytes()
