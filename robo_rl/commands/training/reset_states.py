"""robo-rl reset-states."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import Progress, give, say


def main(
    task: Annotated[str, tyro.conf.Positional],
    states: int = 1000,
    out: Path = Path("reset_states.safetensors"),
    seed: int = 0,
    robot: str | None = None,
    bounds: tuple[str, ...] = (),
    json: bool = False,
) -> int:
    """Store states on the way to success, to begin from with 'robo-rl train TASK --reset-states FILE'.

    They are moments of the task's script, disturbed in half of the episodes, over the task's full ranges, that hold for
    half a second while the robot keeps what it has. The file fits no other task. With --json: file, task, families,
    states, held, size_bytes.

    Args:
        task: Name of a task with families of states, or FILE.py:CLASS.
        states: Number of states of each family.
        out: The file to write (*.safetensors); it must not exist.
        seed: Random seed of the episodes.
        robot: Another robot: a name from 'robo-rl tasks', or the path of a card (*.toml).
        bounds: NAME:LOW:HIGH, one or several: other bounds for these ranges, as in cube_mass:1:1.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.commands.training.demonstrate import task_within
    from robo_rl.learn.experience.reset_states import collect, write

    if not 1 <= states <= 100_000:
        raise ValueError(f"--states is {states}; expected 1 to 100000")
    loaded = task_within(task, robot, bounds, seed, out)
    with Progress("collecting", states * len(loaded.families)) as progress:
        found, held = collect(loaded, states, seed, progress.update)
    write(out, loaded, found)
    size = out.stat().st_size
    shares = ", ".join(f"{name} {part:.0%}" for name, part in held.items())
    say(f"{out}: {states} states of each family, {size / 1e6:.1f} MB; of the moments tried, these held: {shares}", json)
    told = {"families": list(found.families), "states": states, "held": held, "size_bytes": size}
    give({"file": str(out), "task": loaded.name, **told}, json)
    return 0
