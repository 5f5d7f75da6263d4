"""JSON to frozen dataclasses, strictly: nothing unknown, missing or twice, and no number that is not finite."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Sequence
from typing import Any

from robo_rl.contract.checks import ContractError, finite_number, require, require_unique

MAX_JSON_BYTES = 1 << 20  # a contract is a few kilobytes; more is not a contract


def parse_json(kind: Any, text: str | bytes, where: str) -> Any:
    """The dataclass ``kind`` that the JSON ``text`` describes. Raises ContractError, beginning with ``where``."""
    if len(text) > MAX_JSON_BYTES:
        raise ContractError(f"{where}: {len(text)} bytes; expected at most {MAX_JSON_BYTES}")
    try:
        data = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except ContractError as error:
        raise ContractError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{where}: not JSON ({error}); expected a contract's JSON object") from None
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
        return _parse(members[0] if len(members) == 1 else _of_kind(members, value, path), value, path)
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
        return {key: _parse(str, v, f"{path}.{_shown(key)}") for key, v in value.items()}
    if annotation is float:
        return finite_number(value, path)
    if annotation is bool:
        require(isinstance(value, bool), path, value, "true or false")
        return value
    if annotation is int:
        require(isinstance(value, int) and not isinstance(value, bool), path, value, "an integer")
        return value
    require(isinstance(value, str), path, value, "a string")
    return value


def _of_kind(choices: Sequence[Any], value: Any, path: str) -> Any:
    """The dataclass among ``choices`` that the object's ``kind`` names."""
    kinds = {choice.kind: choice for choice in choices}
    require(isinstance(value, dict), path, value, f"an object with a kind, one of {sorted(kinds)}")
    require("kind" in value, f"{path}.kind", "missing", f"a value, one of {sorted(kinds)}")
    kind = value["kind"]
    require(isinstance(kind, str) and kind in kinds, f"{path}.kind", kind, f"one of {sorted(kinds)}")
    return kinds[kind]


def _shown(key: str) -> str:
    """A key from a file, fit for a message."""
    return key if key.isprintable() and len(key) <= 100 else repr(key[:100])


def _parse_dataclass(kind: Any, value: Any, path: str) -> Any:
    require(isinstance(value, dict), path or "contract", value, f"an object with the fields of {kind.__name__}")
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    prefix = f"{path}." if path else ""
    for key in value:
        require(key in known, f"{prefix}{_shown(key)}", "an unknown field", f"one of {known}")
    if kind.__name__ == "Signal":
        value = {**dict.fromkeys(("shape", "period", "timeout", "age_of")), **value}
    for name in known:
        require(name in value, f"{prefix}{name}", "missing", f"a value; {kind.__name__} has {known}")
    fields = {name: _parse(hints[name], value[name], f"{prefix}{name}") for name in known}
    try:
        return kind(**fields)
    except ContractError as error:
        raise ContractError(f"{prefix.rstrip('.')}: {error}" if prefix else str(error)) from None
