"""Options and ROS parameters that are lists of texts, each ``name=value``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robo_rl.contract import Contract


def texts_by_name(entries: Sequence[str], option: str) -> dict[str, str]:
    """Texts by name, of the ``option`` that a refusal names. Empty entries are skipped: ROS can't give an empty list a
    type.
    """
    found: dict[str, str] = {}
    for entry in filter(None, entries):
        name, equals, text = entry.partition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise ValueError(f"{option} has the entry {entry!r}; expected 'name=…', each name once")
        found[name.strip()] = text.strip()
    return found


def numbers_by_name(entries: Sequence[str], contract: Contract, option: str) -> dict[str, np.ndarray]:
    """Constant set-points by signal, float32 in its dimensions, for operator signals of the contract."""
    found = {}
    for name, text in texts_by_name(entries, option).items():
        signal = contract.signal(name)
        if signal.source != "operator":
            raise ValueError(f"{option} gives '{name}', which is measured; expected an operator's signal")
        try:
            value = np.array([float(word) for word in text.replace(",", " ").split()], np.float32)
        except ValueError:
            raise ValueError(f"{option}: '{name}' is {text!r}; expected {signal.size} numbers") from None
        if value.shape != (signal.size,) or not np.isfinite(value).all():
            raise ValueError(f"{option}: '{name}' is {text!r}; expected {signal.size} finite numbers")
        found[name] = value.reshape(signal.dimensions)
    return found
