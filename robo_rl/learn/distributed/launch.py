"""One policy trained by several processes of this computer, which torchrun's own launcher starts and watches.

A training whose process was lost, to a signal or to a computer's fault, goes on from its newest checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from robo_rl.console import say
from robo_rl.files import cores, interpreter
from robo_rl.learn.distributed.engines import MORTAL

MOST = 4096
RESTARTS = 3
"""In a row, without a newer checkpoint in between."""


def train(first: Sequence[str], again: Sequence[str], folder: Path, processes: int, quiet: bool) -> int:
    """Run ``robo-rl`` with the words ``first`` in each of so many processes, with ``again`` where one was lost.

    Returns the exit code.
    """
    saved, left = _saved(folder), RESTARTS
    now = list(first)
    while True:
        codes = _together(now, processes)
        if not codes:
            return 0
        if 130 in codes:
            return 130
        newer = _saved(folder) != saved
        if not newer and not any(code < 0 for code in codes):
            return 1  # it said what is wrong, and would again
        left, saved = RESTARTS if newer else left - 1, _saved(folder)
        begun = (folder / "run.json").is_file()
        if not left:
            raise ValueError(f"{folder}: a process was lost {RESTARTS} times without a newer checkpoint between")
        say(f"A process was lost (exit codes {codes}); the training goes on from its newest checkpoint", quiet)
        now = list(again if begun else first)


def checked(processes: int) -> int:
    """The number of processes that are to be started. ValueError if it is none."""
    if not 1 <= processes <= MOST:
        raise ValueError(f"--processes is {processes}; expected 1 to {MOST}")
    if processes > 1 and "RANK" in os.environ:
        raise ValueError(f"--processes is {processes}, but torchrun has started this one; expected one of the two")
    return processes


OWN = ("--processes", "--name", "--wandb")


def without(words: Sequence[str]) -> list[str]:
    """Words of a command line without what the process that starts the others does itself, with their values."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in OWN:
            skip = True
        elif word.split("=")[0] not in OWN:
            kept.append(word)
    return kept


def _together(words: Sequence[str], processes: int) -> list[int]:
    """Exit codes of the processes that failed, in the order in which they did; negative ones are signals'."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores.available() // processes)))
    os.environ["PYTHONPATH"] = interpreter.environment()["PYTHONPATH"]
    command: list[str] = [*MORTAL, *interpreter.module("robo_rl", *words)]
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=processes, run_id=f"robo-rl-{os.getpid()}", rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=0, monitor_interval=0.1,
    )  # fmt: skip
    try:
        with interpreter.safe_path():
            elastic_launch(config, command[0])(*command[1:])
    except ChildFailedError as failed:
        by_time = sorted(failed.failures.values(), key=lambda failure: failure.timestamp)
        return [failure.exitcode for failure in by_time]
    except SignalException:
        return [130]
    return []


def _saved(folder: Path) -> int:
    """When the newest checkpoint was written (ns); 0 if there is none."""
    file = folder / "checkpoint.safetensors"
    return file.stat().st_mtime_ns if file.is_file() else 0
