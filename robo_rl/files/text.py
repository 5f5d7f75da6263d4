"""TOML and JSON files that others wrote: of a bounded size and depth, read in bounded time, refused in a sentence."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robo_rl.files import read_bytes
from robo_rl.files import sandbox as confined
from robo_rl.files.escaping import printable

if sys.version_info >= (3, 11):  # noqa: UP036 (a robot runs 3.10)
    import tomllib
else:  # Python 3.10, as in ROS 2 Humble
    import tomli as tomllib

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_VALUES = 4_000_000
"""Of one file: as many as are checked in some seconds."""
MAX_TEXT = 1000
"""Characters of a text or a key."""
SECONDS = 2.0
BOM = b"\xef\xbb\xbf"
"""A byte order mark, with which some editors begin a text."""
OURS = Path(__file__).resolve().parents[1]
"""Files that robo-rl came with are read at once."""


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file: texts of one line, finite and infinite numbers, lists and tables; no dates.

    ValueError says what is wrong, and names the file. A file that robo-rl did not come with is read by another process:
    there are files of a few kilobytes that take the parser minutes.
    """
    data = read_bytes(path, MAX_BYTES)
    if path.resolve().is_relative_to((OURS / "sim" / "robots").resolve()):
        return _checked(tomllib.loads(data.decode()), path)
    try:
        return _checked(loads_toml(data), path)
    except ValueError as error:
        raise error if str(error).startswith(str(path)) else ValueError(f"{path}: {error}") from None


def loads_toml(data: bytes) -> dict[str, Any]:
    """The table that a stranger's bytes are: another process parses them. ValueError if it is none."""
    data = data.removeprefix(BOM)
    try:
        found = json.loads(confined.attempt("robo_rl.files.text:parse_toml", data, seconds=SECONDS))
    except confined.Refused as error:
        raise ValueError(f"not TOML ({error}); expected TOML") from None
    return found


def parse_toml(data: bytes) -> bytes:
    """TOML as JSON: what a process that is confined does with a stranger's file."""
    found = tomllib.loads(data.decode())
    _check(found, "", MAX_DEPTH)  # in this process: JSON as deep as that would be no better
    return json.dumps(found, default=_refuse_date).encode()


def read_json(path: Path, most: int = MAX_BYTES) -> dict[str, Any]:
    """The object in a JSON file of at most so many bytes, as ``read_toml``."""
    data = read_bytes(path, most)
    require_few_values(path, data, MAX_VALUES)
    try:
        found = loads_json(data)
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: {str(found)[:100]!r}; expected an object")
    return _checked(found, path)


VALUES = (b",", b"[", b"{")
"""What is before a value, in JSON, of an object or a list."""


def require_few_values(path: Path, data: bytes, most: int, marks: tuple[bytes, ...] = VALUES) -> None:
    """ValueError where JSON has more values than that: each takes some time, and a hundred bytes of memory."""
    values = sum(map(data.count, marks))
    if values > most:
        raise ValueError(f"{path}: some {values} values; expected at most {most}")


def loads_json(data: bytes | str) -> Any:
    """The value that JSON is. ValueError if it is none, or names a field of an object twice: readers differ in which
    of the two counts.
    """
    try:
        return json.loads(data, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError(f"nested too deeply; expected at most {MAX_DEPTH} levels") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the field {twice[:100]!r} is there twice; expected each once")
    return found


@contextlib.contextmanager
def fits(path: Path | str, what: str, refusal: type[ValueError]) -> Iterator[None]:
    """While a file's content is taken apart, whatever is not of the type that is needed there becomes a ``refusal``:
    the file does not fit ``what``. Refusals of that type by the block itself stay as they are.
    """
    try:
        yield
    except refusal:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError) as error:
        told = printable(f"{type(error).__name__}: {error}")[:300]
        raise refusal(f"{path} does not fit {what} ({told})") from None


def _checked(found: dict[str, Any], path: Path) -> dict[str, Any]:
    try:
        _check(found, "", MAX_DEPTH)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return found


def _check(value: Any, where: str, depth: int) -> None:
    if depth < 0:
        raise ValueError(f"{where[:100]}… is nested too deeply; expected at most {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check(key, where, depth)
            _check(inner, f"{where}.{key}" if where else key, depth - 1)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _check(inner, f"{where}[{i}]", depth - 1)
    elif isinstance(value, str):
        if len(value) > MAX_TEXT or not value.isprintable():
            raise ValueError(f"{where or 'a key'} is {value[:100]!r}; expected a line of at most {MAX_TEXT} characters")
    elif isinstance(value, int) and abs(value) > 1 << 63:
        raise ValueError(f"{where} is a number of {value.bit_length()} bits; expected at most 64")


def _refuse_date(value: object) -> None:
    raise ValueError(f"{value} is a date or a time; expected numbers and texts")
