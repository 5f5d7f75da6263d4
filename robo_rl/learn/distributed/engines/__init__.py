"""Where the jobs of a sweep run: processes of this computer, a Ray cluster, a SLURM cluster.

An engine is a function: of the sweep's folder, the jobs' numbers and so many slots it gives (number, exit code) of
each job as that ends. Each job is the command ``robo-rl work FOLDER --index NUMBER``, wherever it runs; nothing but
these words goes to another process. Negative exit codes are signals', as in ``subprocess``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

MORTAL: tuple[str, ...] = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
"""Put before a command, it is told to end, as by Ctrl-C, when the one that started it has ended."""


def log_file(folder: Path, index: int) -> Path:
    """What the job prints."""
    return folder / "logs" / f"{index}.log"


def start(folder: Path, index: int, threads: int) -> subprocess.Popen[bytes]:
    """The job as a process of its own. Its output is added to its log."""
    file = log_file(folder, index)
    file.parent.mkdir(exist_ok=True)
    command = [*MORTAL, sys.executable, "-m", "robo_rl", "work", str(folder.resolve()), "--index", str(index)]
    environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
    with file.open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
