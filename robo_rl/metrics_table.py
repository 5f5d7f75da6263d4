"""Metrics of a training for people: grouped, in a table for terminals, and as lines of text.

A metric's name is GROUP/NAME, as TensorBoard groups them; those without a group are the algorithm's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.columns import Columns

TITLES = {
    "": "learning",
    "loss": "losses",
    "reward": "reward terms, per step",
    "error": "errors at the end of the update",
    "episode": "episodes",
    "failure": "causes of failure",
    "level": "levels of ranges",
    "at_limit": "commands at limits",
}
HIDDEN = ("update", "environment_steps", "loss/entropy")
QUIET = ("failure", "at_limit")
"""Groups of which lines of text leave out what is zero."""
FRACTIONS = ("failure/", "at_limit/", "episode/failure", "episode/success", "episode/timeout")
"""Names that begin so are parts of one, and shown in percent."""


def grouped(metrics: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Metrics by their group, in the order of ``TITLES``, and by their name in it."""
    found: dict[str, dict[str, float]] = {group: {} for group in TITLES}
    for name, value in metrics.items():
        group, separator, rest = name.partition("/")
        group, rest = (group, rest) if separator else ("", name)
        if name not in HIDDEN:
            found.setdefault(group, {})[rest] = value
    return {group: values for group, values in found.items() if values}


def number(name: str, value: float, units: Mapping[str, str] = MappingProxyType({})) -> str:
    """A metric's value with three digits and its unit, or in percent. ``units``: of errors, by their name."""
    if name.startswith(FRACTIONS):
        return f"{value:.1%}"
    if name in ("episode/count", "episode/diverged"):
        return f"{value:.0f}"
    unit = "s" if name.startswith("episode/length") else units.get(name.removeprefix("error/"), "")
    return f"{value:.3g} {unit}".removesuffix(" 1").strip()  # "1" is a number without a unit


def title(name: str) -> str:
    """A metric's name without its group, as people read it; its unit is beside its value."""
    return name.removesuffix("_s").replace("_", " ") if name.startswith("length_") else name.replace("_", " ")


def table(metrics: Mapping[str, float]) -> Columns:
    """The groups side by side, as wide as the terminal has room."""
    from rich.columns import Columns
    from rich.table import Table
    from rich.text import Text

    tables: list[Any] = []
    for group, values in grouped(metrics).items():
        one = Table(title=TITLES.get(group, group), title_justify="left", box=None, show_header=False, padding=(0, 1))
        one.add_column(max_width=32, no_wrap=True)
        one.add_column(justify="right")
        for name, value in values.items():
            told = number(f"{group}/{name}" if group else name, value)
            one.add_row(Text(title(name)), told)
        tables.append(one)
    return Columns(tables, padding=(0, 3))


def lines(metrics: Mapping[str, float], units: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """A line of text for each group but the algorithm's own. ``units``: of errors, by their name."""
    told = []
    for group, values in grouped(metrics).items():
        if group in ("", "loss", "level"):
            continue
        parts = [
            f"{title(name)} {number(f'{group}/{name}', value, units)}"
            for name, value in values.items()
            if not name.startswith("length_p") and not (group in QUIET and value == 0.0)
        ]
        if parts:
            told.append(f"{TITLES.get(group, group)}: {', '.join(parts)}")
    return told
