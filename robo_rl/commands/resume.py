"""robo-rl resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import say


def main(
    run: Annotated[Path, tyro.conf.Positional],
    device: str = "cpu",
    episodes: int = 500,
    checkpoint_seconds: float = 5.0,
    json: bool = False,
) -> int:
    """Continue a training from its newest checkpoint.

    On a CPU the result is the same, bit by bit, as if there had been no interruption; but a distillation goes on with
    new walks. With --json: as 'train'.

    Args:
        run: The run's folder.
        device: cpu or cuda.
        episodes: Number of held-out episodes after training; 0 for none.
        checkpoint_seconds: Seconds between checkpoints.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl import processes
    from robo_rl.checkpoint import load
    from robo_rl.commands.train import learn, require_device, require_plant
    from robo_rl.runs import Run

    require_device(device)
    opened = Run.open(run)
    require_plant(opened.plant, opened.task_source, device)
    _, numbers = load(opened.checkpoint_file)
    if numbers["finished"]:
        say(f"{run} is finished; there is nothing to resume", json)
    return learn(opened, processes.join(device), episodes, checkpoint_seconds, json, resumed=True)
