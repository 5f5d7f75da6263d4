"""What every part of a contract is checked with: one error, whose message names field, value and expectation."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Sequence
from typing import Any

Numbers = tuple[float, ...]


class ContractError(ValueError):
    """A contract, or what is held against it, is wrong. The message names field, value and expectation."""


def require(condition: bool, field_name: str, value: object, expected: str) -> None:
    """Raise ContractError unless ``condition`` holds."""
    if not condition:
        shown = repr(value)
        raise ContractError(f"{field_name} is {shown[:200]}; expected {expected}")


def require_name(name: str, field_name: str) -> None:
    """``name`` is fit to name something."""
    allowed = isinstance(name, str) and 0 < len(name) <= 128 and name.isprintable() and name == name.strip()
    require(allowed, field_name, name, "a printable name of 1 to 128 characters without outer spaces")


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
    found = tuple(finite_number(value, f"{field_name}[{i}]") for i, value in enumerate(values))
    require(len(found) == count, field_name, found, f"{count} numbers, one per element")
    return found


def set_numbers(owner: Any, names: Sequence[str], where: str) -> None:
    """Let fields of a frozen dataclass be finite floats."""
    for name in names:
        object.__setattr__(owner, name, finite_number(getattr(owner, name), f"{where}{name}"))
