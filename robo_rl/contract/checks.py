"""What every part of a contract is checked with: one error, whose message names field, value and expectation."""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

Numbers = tuple[float, ...]

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""Signals, commands, blocks of memory, kinds: they become members of C structures, tensors and topics."""
LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")
"""Elements, which have the names that a robot gives its joints."""
NAME = re.compile(r"(?!.*\.(?:py|toml)\Z)[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?", re.IGNORECASE)
"""Tasks and robots, which become parts of names of files, and are names of ours or of packages, never a file's."""
PHRASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.,:;()/+-]{0,127}")
"""Frames and the like, for people."""


class ContractError(ValueError):
    """A contract, or what is held against it, is wrong. The message names field, value and expectation."""


def require(condition: bool, field_name: str, value: object, expected: str) -> None:
    """Raise ContractError unless ``condition`` holds."""
    if not condition:
        shown = repr(value)
        raise ContractError(f"{field_name} is {shown[:200]}; expected {expected}")


def require_identifier(name: str, field_name: str) -> None:
    """``name`` is fit to be a variable in any language."""
    good = isinstance(name, str) and IDENTIFIER.fullmatch(name) is not None
    require(good, field_name, name, "a letter, then at most 63 letters, digits and underscores")


def require_label(name: str, field_name: str) -> None:
    """``name`` is fit to name a joint."""
    good = isinstance(name, str) and LABEL.fullmatch(name) is not None
    require(good, field_name, name, "1 to 64 letters, digits, and _ . : - after the first")


def require_name(name: str, field_name: str) -> None:
    """``name`` is fit to name a task or a robot."""
    good = isinstance(name, str) and NAME.fullmatch(name) is not None
    require(good, field_name, name, "1 to 64 letters, digits, and _ . - after the first; no file, *.py or *.toml")


def require_phrase(text: str, field_name: str) -> None:
    """``text`` is a few plain words."""
    good = isinstance(text, str) and PHRASE.fullmatch(text) is not None and text == text.strip()
    require(good, field_name, text, "1 to 128 letters, digits, spaces and _ . , : ; ( ) / + -")


def require_unique(names: Sequence[str], field_name: str) -> None:
    """No name stands twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    require(not twice, field_name, twice, "names that differ from each other")


def finite_number(value: Any, field_name: str) -> float:
    """A finite float; integers and numpy's numbers become one."""
    try:
        found = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        found = math.inf
    require(math.isfinite(found), field_name, value, "a finite number")
    return found


def finite_numbers(values: Sequence[float], count: int, field_name: str) -> Any:
    """``count`` finite floats."""
    require(not isinstance(values, str | dict) and hasattr(values, "__iter__"), field_name, values, f"{count} numbers")
    found = tuple(finite_number(value, f"{field_name}[{i}]") for i, value in enumerate(values))
    require(len(found) == count, field_name, found, f"{count} numbers, one per element")
    return found


def set_numbers(owner: Any, names: Sequence[str], where: str) -> None:
    """Let fields of a frozen dataclass be finite floats."""
    for name in names:
        object.__setattr__(owner, name, finite_number(getattr(owner, name), f"{where}{name}"))
