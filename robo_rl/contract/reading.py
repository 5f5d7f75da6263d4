"""JSON to frozen dataclasses, strictly: nothing unknown, missing or twice, and no number that is not finite."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from robo_rl.contract.checks import ContractError, finite_number, require, require_unique

MAX_JSON_BYTES = 1 << 20  # a contract is a few kilobytes; more is not a contract
MAX_TEXT = 256  # characters of a text in an object of texts


def read_object(text: str | bytes, where: str) -> dict[str, Any]:
    """The JSON object in ``text``. Raises ContractError, beginning with ``where``."""
    if len(text) > MAX_JSON_BYTES:
        raise ContractError(f"{where}: {len(text)} bytes; expected at most {MAX_JSON_BYTES}")
    try:
        data = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except ContractError as error:
        raise ContractError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{where}: not JSON ({error}); expected a contract's JSON object") from None
    if not isinstance(data, dict):
        raise ContractError(f"{where}: contract is {repr(data)[:200]}; expected an object")
    return data


def build(kind: Any, data: Mapping[str, Any], where: str) -> Any:
    """The dataclass ``kind`` that parsed JSON describes. Raises ContractError, beginning with ``where``."""
    try:
        return _parse(kind, data, "")
    except ContractError as error:
        raise ContractError(f"{where}: {error}") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    require_unique(keys, "keys of a JSON object")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise ContractError(f"a number is {name}; expected a finite number")


def _parse(annotation: Any, value: Any, path: str) -> Any:
    """Build ``annotation`` from parsed JSON, strictly: no unknown keys, no missing keys, no coercion."""
    origin = typing.get_origin(annotation)
    if dataclasses.is_dataclass(annotation):
        return _parse_dataclass(annotation, value, path)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in typing.get_args(annotation):
            return None
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        return _parse(members[0] if len(members) == 1 else _member(members, value, path), value, path)
    if origin is typing.Literal:
        choices = typing.get_args(annotation)
        require(isinstance(value, str) and value in choices, path, value, f"one of {list(choices)}")
        return value
    if origin is tuple:
        require(isinstance(value, list), path, value, "a list")
        kinds = typing.get_args(annotation)
        if kinds[-1] is Ellipsis:
            kinds = (kinds[0],) * len(value)
        require(len(value) == len(kinds), path, value, f"a list of {len(kinds)}")
        return tuple(_parse(k, v, f"{path}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if origin is dict:
        require(isinstance(value, dict), path, value, "an object")
        if typing.get_args(annotation)[1] is Any:
            return value  # checked by the dataclass that holds it
        return {_text(key, path): _text(v, f"{path}.{_shown(key)}") for key, v in value.items()}
    if annotation is float:
        return finite_number(value, path)
    if annotation is bool:
        require(isinstance(value, bool), path, value, "true or false")
        return value
    if annotation is int:
        require(isinstance(value, int) and not isinstance(value, bool), path, value, "an integer")
        require(abs(value) < 1 << 53, path, value, "an integer below 2^53")
        return value
    require(isinstance(value, str), path, value, "a string")
    return value


def _text(value: Any, path: str) -> str:
    good = isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()
    require(good, path, value, f"printable text of at most {MAX_TEXT} characters")
    return value


def _member(members: Sequence[Any], value: Any, path: str) -> Any:
    """The member of a union that a value can be: of dataclasses, the one that the object's ``kind`` names."""
    objects: dict[str, Any] = {m.kind: m for m in members if dataclasses.is_dataclass(m)}  # type: ignore[union-attr]
    if isinstance(value, dict) and objects:
        require("kind" in value, f"{path}.kind", "missing", f"a value, one of {sorted(objects)}")
        kind = value["kind"]
        require(isinstance(kind, str) and kind in objects, f"{path}.kind", kind, f"one of {sorted(objects)}")
        return objects[kind]
    fits = {str: (typing.Literal,), list: (tuple,), float: (float,), int: (float,)}.get(type(value), ())
    for member in members:
        if (typing.get_origin(member) or member) in fits:
            return member
    names = [f"an object with a kind, one of {sorted(objects)}"] if objects else []
    plain = [m for m in members if not dataclasses.is_dataclass(m)]
    names += [{tuple: "a list", float: "a number"}.get(typing.get_origin(m) or m, _choices(m)) for m in plain]
    require(False, path, value, " or ".join(names))
    raise AssertionError


def _choices(annotation: Any) -> str:
    return " or ".join(map(repr, typing.get_args(annotation)))


def _shown(key: str) -> str:
    """A key from a file, fit for a message."""
    return key if key.isprintable() and len(key) <= 100 else repr(key[:100])


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    """Annotations of the fields that a file holds."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _parse_dataclass(kind: Any, value: Any, path: str) -> Any:
    require(isinstance(value, dict), path or "contract", value, f"an object with the fields of {kind.__name__}")
    hints = _hints(kind)
    known = list(hints)
    prefix = f"{path}." if path else ""
    for key in value:
        require(key in known, f"{prefix}{_shown(key)}", "an unknown field", f"one of {known}")
    for name in known:
        require(name in value, f"{prefix}{name}", "missing", f"a value; {kind.__name__} has {known}")
    fields = {name: _parse(hints[name], value[name], f"{prefix}{name}") for name in known}
    try:
        return kind(**fields)
    except ContractError as error:
        raise ContractError(f"{prefix.rstrip('.')}: {error}" if prefix else str(error)) from None
