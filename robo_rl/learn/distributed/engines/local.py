"""Jobs as processes of this computer, so many at once."""

from __future__ import annotations

import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from robo_rl.files import cores
from robo_rl.learn.distributed.engines import start

POLL = 0.05  # s
SAVING = 60.0
"""s that a job may take to save when it is told to end."""


def run(folder: Path, indices: Sequence[int], slots: int) -> Iterator[tuple[int, int]]:
    """(number, exit code) of each job as it ends. When the caller stops, those that run save and end."""
    waiting, running = deque(indices), dict[int, subprocess.Popen[bytes]]()
    threads = max(1, cores.available() // slots)
    try:
        while waiting or running:
            while waiting and len(running) < slots:
                index = waiting.popleft()
                running[index] = start(folder, index, threads)
            ended = {index: code for index, job in running.items() if (code := job.poll()) is not None}
            for index, code in ended.items():
                del running[index]
                yield index, code
            if not ended:
                time.sleep(POLL)
    finally:
        for job in running.values():
            job.terminate()
        for job in running.values():
            try:
                job.wait(SAVING)
            except subprocess.TimeoutExpired:
                job.kill()
                job.wait()
