"""What the files of a run may hold, which somebody else may have written: metrics.jsonl and done.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from robo_rl.contract.checks import require
from robo_rl.files import read_bytes
from robo_rl.files.text import VALUES, require_few_values
from robo_rl.sim.robots.figures import is_number

MOST_METRICS = 1 << 26
"""Bytes of metrics.jsonl."""
MOST_VALUES = 2_000_000
"""Values in it, and lines: a value with its name takes 30 bytes and more."""
LARGEST = float(torch.finfo(torch.float32).max)


def is_metric(value: Any) -> bool:
    """Whether it is a number as a training writes it: of 32 bits, or NaN or infinite, where it diverged."""
    return (isinstance(value, float) or is_number(value)) and not LARGEST < abs(value) < math.inf


def require_result(file: Path, told: Mapping[str, Any]) -> None:
    """ValueError unless what done.json tells of versions and scores is what a training writes."""
    versions, success = told.get("versions", {}), told.get("success")
    good = isinstance(versions, dict) and all(isinstance(x, str) for x in versions.values())
    require(good, f"{file}: versions", versions, "texts by name")
    good = success is None or (is_number(success) and 0 <= success <= 1)
    require(good, f"{file}: success", success, "a number from 0 to 1")
    for name, value in told.items():
        good = not isinstance(value, float) or abs(value) <= LARGEST
        require(good, f"{file}: {name}", value, "a finite number of 32 bits")


def metrics_lines(file: Path) -> list[str]:
    """The lines of metrics.jsonl, and what is behind the last one. ValueError where they would fill the memory."""
    data = read_bytes(file, MOST_METRICS)
    require_few_values(file, data, MOST_VALUES, (*VALUES, b"\n"))
    return data.decode(errors="replace").split("\n")
