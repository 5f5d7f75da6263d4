"""robo-rl demonstrate."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.console import Progress, give, require_place, say

if TYPE_CHECKING:
    from robo_rl.sim.tasks import Task


def main(
    task: Annotated[str, tyro.conf.Positional],
    episodes: int = 20,
    out: Path = Path("demonstrations.safetensors"),
    seed: int = 0,
    robot: str | None = None,
    bounds: tuple[str, ...] = (),
    json: bool = False,
) -> int:
    """Record a task's script, to learn from with 'robo-rl train TASK --algorithm sac --demonstrations FILE'.

    Episodes are drawn over the task's full ranges; those that succeed are kept. The file tells signals, commands and
    their units, and fits no other task. With --json: file, task, episodes, tried, control_steps, duration_mean_s.

    Args:
        task: Name of a task that has a script, or FILE.py:CLASS.
        episodes: Number of episodes that succeed.
        out: The file to write (*.safetensors); it must not exist.
        seed: Random seed of the episodes.
        robot: Another robot: a name from 'robo-rl tasks', or the path of a card (*.toml).
        bounds: NAME:LOW:HIGH, one or several: other bounds for these ranges, as in clearance:0.001:0.001.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.learn.experience.demonstrations import demonstrate, write

    if not 1 <= episodes <= 100_000:
        raise ValueError(f"--episodes is {episodes}; expected 1 to 100000")
    loaded = task_within(task, robot, bounds, seed, out)
    with Progress("demonstrating", episodes) as progress:
        tensors, tried = demonstrate(loaded, episodes, seed, progress.update)
    write(out, loaded, tensors)
    steps = len(tensors["episode"])
    seconds = steps * loaded.spec.control_period / episodes
    say(f"{out}: {episodes} of {tried} episodes, {steps:,} control steps, {seconds:.2f} s each", json)
    found = {"episodes": episodes, "tried": tried, "control_steps": steps, "duration_mean_s": seconds}
    give({"file": str(out), "task": loaded.name, **found}, json)
    return 0


def task_within(name: str, robot: str | None, bounds: Sequence[str], seed: int, out: Path) -> Task:
    """The task within the bounds of --bounds; ValueError where it, --seed or --out can't be used to record it."""
    from robo_rl.learn.runs.folder import HELD_OUT
    from robo_rl.sim.ranges import parse_bounds, replaced
    from robo_rl.sim.tasks.loading import load_task

    if not 0 <= seed < HELD_OUT:
        raise ValueError(f"--seed is {seed}; expected 0 to {HELD_OUT - 1}: larger ones are reserved for evaluation")
    require_place(out, "--out", ".safetensors")
    if out.exists():
        raise ValueError(f"--out is {out}, which exists; expected the name of a new file")
    task = load_task(name, robot)
    ranges = replaced(task.spec.ranges, parse_bounds(bounds, task.name, task.spec.ranges))
    task.spec = dataclasses.replace(task.spec, ranges=ranges)
    return task
