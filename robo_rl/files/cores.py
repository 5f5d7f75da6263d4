"""How many cores this process may use."""

from __future__ import annotations

import os


def available() -> int:
    """Those that the system has given it (Linux), or all of the computer's (macOS has no such limit)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
