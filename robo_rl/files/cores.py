"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

CONTROL_GROUP = Path("/sys/fs/cgroup/cpu.max")
"""A container's share of the processor: µs in every so many µs, or "max" (Linux, control groups of version 2)."""


def available() -> int:
    """Those that the system has given it (Linux), or all of the computer's (macOS has no such limit).

    In a container with a share of the processor, as many as that share is, rounded up.
    """
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        most, period = CONTROL_GROUP.read_text().split()
        return given if most == "max" else max(1, min(given, math.ceil(int(most) / int(period))))
    except (OSError, ValueError):  # no control groups
        return given
