"""msgpack with openpi's arrays, read within bounds: what a stranger sends becomes plain values, or one sentence.

Values are None, booleans, integers, floats, str, bytes, lists, dictionaries with str keys, and numpy arrays of numbers.
An array is a map with the keys (bytes) ``__ndarray__``, ``data``, ``dtype``, ``shape``, as openpi's
``msgpack_numpy`` writes it (openpi 15a9616, packages/openpi-client/src/openpi_client/msgpack_numpy.py). Extension types
and arrays of objects are refused, and nothing is ever unpickled. The format: github.com/msgpack/msgpack, spec.md.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

MOST_ITEMS, MOST_DEPTH = 4096, 8
"""Values of a message, and maps and lists inside each other."""
DTYPES = frozenset(
    f"{order}{kind}" for order in "<|" for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "b1")
)
"""Numbers, little-endian."""
ARRAY, GENERIC = b"__ndarray__", b"__npgeneric__"


class MessageError(ValueError):
    """It is not such a message. The text says why."""


def pack(value: Any) -> bytes:
    """The bytes of a value."""
    out = bytearray()
    _pack(value, out)
    return bytes(out)


def _pack(value: Any, out: bytearray) -> None:
    if value is None or isinstance(value, bool):
        out.append({None: 0xC0, False: 0xC2, True: 0xC3}[value])
    elif isinstance(value, int):
        out += struct.pack(">Bq", 0xD3, value)
    elif isinstance(value, float):
        out += struct.pack(">Bd", 0xCB, value)
    elif isinstance(value, str):
        data = value.encode()
        out += struct.pack(">BI", 0xDB, len(data)) + data
    elif isinstance(value, bytes):
        out += struct.pack(">BI", 0xC6, len(value)) + value
    elif isinstance(value, list | tuple):
        out += struct.pack(">BI", 0xDD, len(value))
        for item in value:
            _pack(item, out)
    elif isinstance(value, dict):
        out += struct.pack(">BI", 0xDF, len(value))
        for key, item in value.items():
            _pack(key, out)
            _pack(item, out)
    elif isinstance(value, np.ndarray) and value.dtype.str in DTYPES:
        data = np.ascontiguousarray(value).tobytes()
        _pack({ARRAY: True, b"data": data, b"dtype": value.dtype.str, b"shape": list(value.shape)}, out)
    else:
        raise TypeError(f"a {type(value).__name__} can't be packed")


def unpack(data: bytes) -> Any:
    """The one value that ``data`` is. MessageError where it is not msgpack, or more than the bounds allow."""
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise MessageError("it is a pickle, which runs code when it is read; expected msgpack")
    reader = _Reader(data)
    value = reader.value(0)
    if reader.place != len(data):
        raise MessageError(f"{len(data) - reader.place} bytes follow its end; expected one value")
    return value


NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
           0xD3: ">q"}  # fmt: skip
LENGTHS = {0: ">B", 1: ">H", 2: ">I"}


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.place, self.items = data, 0, 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.place:
            raise MessageError(f"it ends within a value of {size} bytes")
        self.place += size
        return self.data[self.place - size : self.place]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self, depth: int) -> Any:
        self.items += 1
        if self.items > MOST_ITEMS or depth > MOST_DEPTH:
            raise MessageError(f"it has more than {MOST_ITEMS} values, or more than {MOST_DEPTH} inside each other")
        code = self.take(1)[0]
        if code <= 0x7F:
            return code
        if code >= 0xE0:
            return code - 0x100
        if code in NUMBERS:
            return self.number(NUMBERS[code])
        if code in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[code]
        if code <= 0x8F:
            return self.map(code & 0x0F, depth)
        if code <= 0x9F:
            return self.list(code & 0x0F, depth)
        if code <= 0xBF:
            return self.text(code & 0x1F)
        if 0xC4 <= code <= 0xC6:
            return self.take(self.number(LENGTHS[code - 0xC4]))
        if 0xD9 <= code <= 0xDB:
            return self.text(self.number(LENGTHS[code - 0xD9]))
        if code in (0xDC, 0xDD):
            return self.list(self.number(LENGTHS[code - 0xDB]), depth)
        if code in (0xDE, 0xDF):
            return self.map(self.number(LENGTHS[code - 0xDD]), depth)
        raise MessageError(f"it has a value of type 0x{code:02x}; expected no extension types")

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError:
            raise MessageError("a text of it is not UTF-8") from None

    def list(self, count: int, depth: int) -> Any:
        if count > len(self.data) - self.place:
            raise MessageError(f"it ends within a list of {count} values")
        return [self.value(depth + 1) for _ in range(count)]

    def map(self, count: int, depth: int) -> Any:
        if 2 * count > len(self.data) - self.place:
            raise MessageError(f"it ends within a map of {count} keys")
        found: dict[Any, Any] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, str | bytes) or key in found:
                raise MessageError("a map of it has a key twice, or one that is no text")
            found[key] = self.value(depth + 1)
        if ARRAY in found or GENERIC in found:
            return _array(found)
        if any(isinstance(key, bytes) for key in found):
            raise MessageError("a map of it has keys that are bytes and is no array")
        return found


def _array(found: dict[Any, Any]) -> Any:
    shape: Any = found.get(b"shape", [] if GENERIC in found else None)
    dtype, data = found.get(b"dtype"), found.get(b"data")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise MessageError(f"an array of it has the dtype {str(dtype)[:20]!r}; expected numbers, such as '<f4'")
    if GENERIC in found and not isinstance(data, bytes):
        if isinstance(data, int | float):
            return data
        raise MessageError("a number of it has no value")
    good = isinstance(shape, list) and len(shape) <= 8
    if not good or not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= 1 << 31 for n in shape):
        raise MessageError("an array of it has a strange shape; expected at most 8 sizes")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not isinstance(data, bytes) or len(data) != size:
        raise MessageError(f"an array of it has the shape {shape}, which is {size} bytes, and other bytes than that")
    return np.frombuffer(data, dtype).reshape(shape)
