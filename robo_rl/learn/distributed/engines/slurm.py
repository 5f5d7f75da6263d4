"""Jobs as an array of SLURM: ``sbatch`` gets a script of ours, whose every element is one job.

A job that is preempted is told to end a minute before, saves, and is queued again by SLURM, where it resumes. All
nodes must see the sweep's folder under the same path and have the same robo-rl.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from robo_rl.files import interpreter
from robo_rl.files.escaping import shell_word

POLL = 2.0  # s
SCRIPT = """#!/bin/sh
#SBATCH --job-name=robo-rl
#SBATCH --array={array}%{slots}
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@60
#SBATCH --output={log}
export OMP_NUM_THREADS=1
exec {command} {folder} --index "$SLURM_ARRAY_TASK_ID"
"""
"""Options such as a partition or an account are taken from the environment: SBATCH_PARTITION, SBATCH_ACCOUNT."""


def script(folder: Path, indices: Sequence[int], slots: int) -> str:
    """What ``sbatch`` is given."""
    folder = folder.resolve()
    log = str(folder / "logs" / "%a.log")
    if not log.isprintable() or " " in log:
        raise ValueError(f"{folder}: its path has blanks; expected a path that SLURM's options can hold")
    array = ",".join(map(str, indices))
    command = shlex.join(interpreter.module("robo_rl", "work"))
    return SCRIPT.format(array=array, slots=slots, log=log, command=command, folder=shell_word(folder))


def run(folder: Path, indices: Sequence[int], slots: int, done: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """(number, exit code) of each job as it ends: 0 when it is ``done``, 1 when it has left SLURM's queue otherwise."""
    for program in ("sbatch", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise ValueError(f"{program} is not installed; expected a computer from which SLURM takes jobs")
    (folder / "logs").mkdir(exist_ok=True)
    file = folder / "array.sh"
    file.write_text(script(folder, indices, slots))
    answer = subprocess.run(["sbatch", "--parsable", str(file)], capture_output=True, text=True)
    if answer.returncode:
        raise ValueError(f"sbatch: {answer.stderr.strip()[:500]}")
    array = answer.stdout.strip().partition(";")[0]
    left = set(indices)
    try:
        while left:
            queue = subprocess.run(["squeue", "-h", "-j", array, "-o", "%i"], capture_output=True, text=True)
            ended = {index for index in left if done(index)}
            if not queue.stdout.strip():  # an array that has ended is unknown, too
                ended |= left
            for index in sorted(ended):
                yield index, 0 if done(index) else 1
            left -= ended
            if left:
                time.sleep(POLL)
    finally:
        if left:
            subprocess.run(["scancel", "--signal=TERM", array], capture_output=True)
