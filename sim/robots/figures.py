"""Figures of robot cards: a value with its one allowed unit and its source, or a refusal in a sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

LEAST, MOST = 1e-18, 1e12
"""Sizes of figures in SI units, between which squares and ratios of figures are floats too."""


class CardError(ValueError):
    """A robot card is missing or wrong. The message names file, field, value and expectation, in 900 characters."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 900 else f"{message[:899]}…")


def require(condition: bool, where: str, field: str, value: object, expected: str) -> None:
    """Raise CardError unless ``condition``. ``where`` is the file."""
    if not condition:
        shown = repr(value)
        raise CardError(f"{where}: {field[:80]} is {shown[:200]}; expected {expected}")


def is_number(value: Any) -> bool:
    """Whether ``value``, from TOML or JSON, is a finite number; an integer, one that a float can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def label(name: str) -> str:
    """A name of a model as signals and topics have it: dm_control's ``left/waist`` is ``left.waist``."""
    return name.replace("/", ".")


def names(value: Any, field: str, where: str) -> tuple[str, ...]:
    """The texts of a list, which all differ from each other, as labels."""
    good = isinstance(value, list) and len(value) > 0 and all(isinstance(x, str) for x in value)
    require(good and len(set(value)) == len(value), where, field, value, "a list of different names")
    return tuple(label(name) for name in value)


def model_beside(card: dict[str, Any], path: Path) -> Path:
    """The file that the card's field ``model`` names, in the folder of the card's own file ``path``."""
    model = path.parent / card["model"]
    if path.is_symlink() and not os.path.isfile(model):  # a link to a card in another folder
        model = path.resolve().parent / card["model"]
    beside = model.name == card["model"] and os.path.isfile(model)  # a Path of 300 letters raises an error
    require(beside, str(path), "model", card["model"], f"the name of a file beside the card; there is no {model}")
    return model


def figure(entry: Any, field: str, unit: str | list[str], count: int, where: str) -> list[float]:
    """The ``count`` finite numbers of the figure ``field``: a table with value, unit, or a list of them, and source."""
    require(isinstance(entry, dict), where, field, entry, f"a table [{field}] with value, unit and source")
    for part in ("value", "unit", "source"):
        require(part in entry, where, f"{field}.{part}", "missing", "value, unit and source for each figure")
    require(entry["unit"] == unit, where, f"{field}.unit", entry["unit"], repr(unit))
    require(bool(str(entry["source"]).strip()), where, f"{field}.source", entry["source"], "where the figure is from")
    numbers = entry["value"] if isinstance(entry["value"], list) else [entry["value"]]
    good = len(numbers) == count and all(is_number(x) and (x == 0 or LEAST <= abs(x) <= MOST) for x in numbers)
    expected = f"{count} finite number{'s' if count > 1 else ''}, 0 or {LEAST:g} to {MOST:g} in size"
    require(good, where, f"{field}.value", entry["value"], expected)
    return [float(x) for x in numbers]


def flat_card(
    card: Mapping[str, Any], units: Mapping[str, str], counts: Mapping[str, int], may_be_zero: Collection[str],
    any_sign: Collection[str], where: str,
) -> tuple[dict[str, Any], dict[str, str]]:  # fmt: skip
    """Figures, with the title, and sources of a card that has nothing else: arguments for the card's class.

    ``units``: the one unit of each figure; ``counts``: how many numbers those have that are several. All are positive
    but those that ``may_be_zero`` and those of ``any_sign``. ``where`` is the file.
    """
    known = sorted({"kind", "title", *units})
    for key in card:
        require(key in known, where, key, "an unknown field", f"one of {known}")
    found: dict[str, Any] = {}
    for key, unit in units.items():
        numbers = figure(card.get(key), key, unit, counts.get(key, 1), where)
        good = min(numbers) > 0 or key in any_sign or (key in may_be_zero and min(numbers) == 0)
        expected = "numbers of 0 or more" if key in may_be_zero else "positive numbers"
        require(good, where, f"{key}.value", card[key]["value"], expected)
        found[key] = tuple(numbers) if key in counts else numbers[0]
    require(isinstance(card.get("title"), str), where, "title", card.get("title"), "a text")
    return {"title": card["title"], **found}, {key: str(card[key]["source"]) for key in units}
