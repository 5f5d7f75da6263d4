"""Where the jobs of a sweep run: processes of this computer, a Ray cluster, a SLURM cluster.

An engine is a function: of the sweep's folder, the jobs' numbers and so many slots it gives (number, exit code) of
each job as that ends. Each job is the command ``robo-rl work FOLDER --index NUMBER``, wherever it runs; nothing but
these words goes to another process. Negative exit codes are signals', as in ``subprocess``.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from robo_rl.files import interpreter, open_own

MORTAL: tuple[str, ...] = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
"""Put before a command, it is told to end, as by Ctrl-C, when the one that started it has ended."""


def log_file(folder: Path, index: int) -> Path:
    """What the job prints."""
    return folder / "logs" / f"{index}.log"


def start(folder: Path, index: int, threads: int, beside: Path | None = None) -> subprocess.Popen[bytes]:
    """The job as a process of its own, in the folder ``beside`` if that is told. Its output is added to its log."""
    file = log_file(folder, index)
    file.parent.mkdir(exist_ok=True)
    command = [*MORTAL, *interpreter.module("robo_rl", "work", str(folder.resolve()), "--index", str(index))]
    environment = {"OMP_NUM_THREADS": str(threads), **interpreter.environment()}
    with open_own(file, "ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=beside,
            start_new_session=True,
        )  # fmt: skip
