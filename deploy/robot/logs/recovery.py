"""What is whole in an MCAP file that may be damaged: cut off, with changed bytes, or with blocks of zeros.

Messages are in chunks, each with its length and a checksum. Lengths lead from one record to the next only as long as
none of them is damaged; so chunks are searched for by what they look like, and one counts if its checksum is right.
All else is reported as damaged, by the place in the file.
Format: https://mcap.dev/spec
"""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"\x89MCAP0\r\n"
CHUNK, METADATA, FOOTER = 0x06, 0x0C, 0x02
SCHEMA, CHANNEL, MESSAGE = 0x03, 0x04, 0x05
KNOWN = range(0x01, 0x10)
HEAD = 9  # bytes of a record's opcode and length
FOOTER_BYTES = HEAD + 20
LARGEST_CHUNK, LARGEST_METADATA = 1 << 25, 1 << 23
"""Bytes, those of a chunk decompressed."""
RATIO, FREE = 60, 1 << 25
"""A file may decompress to this many times its size, and to ``FREE`` bytes in any case."""
CUT = "cut off, or still being recorded"


@dataclass(frozen=True)
class Damage:
    """A part of a file that could not be read."""

    begin: int
    end: int
    """Bytes of the file, ``end`` not included."""
    what: str

    def __str__(self) -> str:
        return f"bytes {self.begin:,} to {self.end:,}: {self.what}"


@dataclass(frozen=True)
class Piece:
    """A whole chunk, or a whole metadata record."""

    begin: int
    end: int
    opcode: int
    packed: bytes
    """As it is in the file: all chunks of a file, decompressed, may be more than the memory holds."""
    size: int
    compression: bytes

    @property
    def data(self) -> bytes:
        """The decompressed records of a chunk, or what is in a metadata record."""
        data = _decompressed(self.packed, self.size, self.compression)
        assert data is not None  # it was, when the piece was found
        return data


@dataclass(frozen=True)
class Recovered:
    """What is in a file, in its order."""

    pieces: list[Piece]
    damage: list[Damage]
    ended: bool
    """The file has its end: it was closed, not cut off."""


def recover(path: Path, metadata_name: str) -> Recovered:
    """Find all whole chunks of the file, and all metadata records of that name."""
    size = path.stat().st_size
    if size == 0:
        return Recovered([], [Damage(0, 0, "the file is empty")], False)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        pieces = list(_pieces(data, metadata_name.encode()))
        ended = data[-len(MAGIC) :] == MAGIC and data[-len(MAGIC) - FOOTER_BYTES] == FOOTER if size > 45 else False
        return Recovered(pieces, _damage(data, pieces, ended), ended)


def records(chunk: bytes) -> Iterator[tuple[int, memoryview]]:
    """Opcode and content of each record in a chunk; ends at one that is cut off."""
    at, view = 0, memoryview(chunk)
    while at + HEAD <= len(view):
        opcode, length = struct.unpack_from("<BQ", view, at)
        if length > len(view) - at - HEAD:
            return
        yield opcode, view[at + HEAD : at + HEAD + length]
        at += HEAD + length


def record_text(data: bytes | memoryview, at: int) -> tuple[str, int]:
    """A string with its length before it, and the place behind it. ValueError where that is not one."""
    if at + 4 > len(data):
        raise ValueError("a string is cut off")
    (length,) = struct.unpack_from("<I", data, at)
    if length > len(data) - at - 4:
        raise ValueError("a string is cut off")
    return bytes(data[at + 4 : at + 4 + length]).decode(), at + 4 + length


def record_texts(data: bytes | memoryview, at: int) -> dict[str, str]:
    """A map of strings with its length in bytes before it."""
    if at + 4 > len(data):
        raise ValueError("a map is cut off")
    (length,) = struct.unpack_from("<I", data, at)
    at, end, found = at + 4, at + 4 + length, {}
    if end > len(data):
        raise ValueError("a map is cut off")
    while at < end:
        key, at = record_text(data, at)
        found[key], at = record_text(data, at)
    return found


def _pieces(data: mmap.mmap, name: bytes) -> Iterator[Piece]:
    named = re.escape(struct.pack("<I", len(name)) + name)
    looks = re.compile(rb"\x06.{5}\0\0\0|\x0c.{5}\0\0\0" + named, re.DOTALL)
    at, allowed = 0, FREE + RATIO * len(data)
    while (found := looks.search(data, at)) is not None:
        at = found.start() + 1
        opcode, length = struct.unpack_from("<BQ", data, found.start())
        begin, end = found.start(), found.start() + HEAD + length
        if end > len(data) or length < 8 + len(name):
            continue
        if opcode == METADATA:
            told = struct.unpack_from("<I", data, begin + HEAD + 4 + len(name))[0]
            if told == length - 8 - len(name) and length <= LARGEST_METADATA:
                yield Piece(begin, end, opcode, data[begin + HEAD : end], length, b"")
                at = end
            continue
        head = _chunk_head(data, begin + HEAD, end)
        if head is None:
            continue
        size, checksum, compression, start = head
        allowed -= max(size, end - start)
        if allowed < 0:
            return  # the rest is reported as not read
        piece = Piece(begin, end, opcode, data[start:end], size, compression)
        content = _decompressed(piece.packed, size, compression)
        if content is not None and (checksum == 0 or zlib.crc32(content) == checksum):
            yield piece
            at = end


def _chunk_head(data: mmap.mmap, at: int, end: int) -> tuple[int, int, bytes, int] | None:
    """Decompressed size, checksum, compression and where the content begins; None if it is not a chunk."""
    if end - at < 40:
        return None
    _, _, size, checksum, letters = struct.unpack_from("<QQQII", data, at)
    if letters not in (0, 3, 4):
        return None
    compression = data[at + 32 : at + 32 + letters]
    start = at + 32 + letters + 8
    if compression not in (b"", b"lz4", b"zstd") or start > end or size > LARGEST_CHUNK:
        return None
    (length,) = struct.unpack_from("<Q", data, start - 8)
    return (size, checksum, compression, start) if length == end - start else None


def _decompressed(content: bytes, size: int, compression: bytes) -> bytes | None:
    """Exactly ``size`` bytes, or None. Not more than one byte too many is ever made."""
    import lz4.frame
    import zstandard

    try:
        if compression == b"zstd":
            content = zstandard.ZstdDecompressor().stream_reader(content).read(size + 1)
        elif compression == b"lz4":
            content = lz4.frame.LZ4FrameDecompressor().decompress(content, max_length=size + 1)
    except (zstandard.ZstdError, RuntimeError, EOFError, MemoryError):
        return None
    return content if len(content) == size else None


def _damage(data: mmap.mmap, pieces: list[Piece], ended: bool) -> list[Damage]:
    """What lies between whole pieces and is not a row of other records; and how the file begins and ends."""
    damage = []
    if data[: len(MAGIC)] != MAGIC:
        damage.append(Damage(0, min(len(data), len(MAGIC)), "not the beginning of an MCAP file"))
    last = len(data) - len(MAGIC) if ended else len(data)
    begins = [len(MAGIC), *(piece.end for piece in pieces)]
    ends = [*(piece.begin for piece in pieces), last]
    for begin, end in zip(begins, ends, strict=True):
        at = begin
        while at + HEAD <= end:
            opcode, length = struct.unpack_from("<BQ", data, at)
            if opcode not in KNOWN or opcode == CHUNK or at + HEAD + length > end:
                break
            at += HEAD + length
        if at < end:
            cut = end == last and not ended
            damage.append(Damage(at, end, CUT if cut else "damaged"))
    if not ended and not (damage and damage[-1].end == last):
        damage.append(Damage(last, last, CUT))
    return damage
