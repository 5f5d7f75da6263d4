"""robo-rl work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro


def main(sweep: Annotated[Path, tyro.conf.Positional], index: int) -> int:
    """Do one job of a sweep in this process: train, or resume, or nothing if it is done.

    For schedulers: every engine of 'robo-rl sweep' runs this command. Exit code 75 if another process works on the job.

    Args:
        sweep: The sweep's folder.
        index: The job's number, from 0.
    """
    from robo_rl.sweeps.sweep import work

    return work(sweep, index, _carry_out)


def _carry_out(words: list[str]) -> int:
    """``robo-rl train`` or ``robo-rl resume`` with these words, in this process."""
    from robo_rl.commands.training import resume, train

    name, *rest = words
    command = train.command(rest) if name == "train" else resume.main
    return tyro.cli(command, prog=f"robo-rl {name}", args=rest, config=(tyro.conf.FlagCreatePairsOff,))
