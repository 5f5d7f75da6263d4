"""A process that keeps time beside others: a real-time priority, memory that is not paged out, cores of its own."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Sequence
from pathlib import Path

PRIORITY = 40
"""SCHED_FIFO: below the kernel's own threads of interrupts, which have 50 (kernel, Documentation, kthreads)."""
SHORTEST = 5e-4
"""s: a control period that a program under a general operating system keeps, at best: a wake-up alone is late by tens
of microseconds, and Python's step takes some hundred."""
CURRENT, FUTURE, ON_FAULT = 1, 2, 4
"""Flags of mlockall(2)."""


def require_period(period: float) -> None:
    """ValueError for a control period (s) that no computer keeps, but a microcontroller does."""
    if period < SHORTEST * (1 - 1e-9):
        raise ValueError(
            f"control_period is {1e6 * period:g} us; a program or a ROS node on a computer keeps {1e6 * SHORTEST:g} us "
            "at best: 'robo-rl firmware' makes C for the drive's microcontroller of this policy"
        )


def keep_time(cores: Sequence[int] = (), priority: int = PRIORITY) -> list[str]:
    """Ask the system for all of that, for this thread and those that it starts; sentences on what it does not grant.

    Call it before threads are started. ValueError for cores that this computer lacks.
    """
    if not hasattr(os, "sched_setscheduler"):
        raise ValueError("real-time priorities need Linux; this system has none that robo-rl can ask for")
    refused = []
    if cores:
        try:
            os.sched_setaffinity(0, cores)
        except OSError:
            known = sorted(os.sched_getaffinity(0))
            raise ValueError(f"cores are {list(cores)}; this process may use {known}") from None
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError:
        refused.append(
            f"no real-time priority: allow it in /etc/security/limits.d ('@realtime - rtprio {priority}'), "
            "or run as root"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(CURRENT | FUTURE | ON_FAULT) != 0:
        refused.append(
            f"memory is not locked ({os.strerror(ctypes.get_errno())}): allow it in /etc/security/limits.d "
            "('@realtime - memlock unlimited'), or run as root"
        )
    return refused


def preemptible(root: Path = Path("/")) -> bool:
    """Whether this computer's kernel is PREEMPT_RT. ``root`` is where /sys is."""
    try:
        told = (root / "sys/kernel/realtime").read_text().strip() == "1"
    except OSError:
        told = False
    return told or "PREEMPT_RT" in platform.version()
