"""What a process that asks for real time gets of the system, as the kernel tells it of another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from robo_rl.deploy.robot.realtime import PRIORITY, keep_time

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys, threading
from robo_rl.deploy.robot.realtime import keep_time
print(len(keep_time([min(os.sched_getaffinity(0))])), flush=True)
thread = threading.Thread(target=sys.stdin.readline)
thread.start()
print(thread.native_id, flush=True)
"""


def test_threads_that_are_started_later_keep_time_too() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert program.stdout is not None
    refused, thread = int(program.stdout.readline()), int(program.stdout.readline())
    try:
        assert os.sched_getaffinity(thread) == {min(os.sched_getaffinity(0))}
        if refused:
            pytest.skip("this system allows no real time")
        assert os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
        assert os.sched_getparam(thread).sched_priority == PRIORITY
        status = Path(f"/proc/{program.pid}/status").read_text()
        assert int(next(line for line in status.splitlines() if line.startswith("VmLck")).split()[1]) > 0
    finally:
        program.communicate("\n")


def test_cores_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match=r"cores are \[9999\]; this process may use \[0"):
        keep_time([9999])
