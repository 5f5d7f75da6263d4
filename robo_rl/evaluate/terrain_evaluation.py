"""Terrain evaluation: how often a policy gets from the middle of a patch to its edge, by kind and height.

Each episode starts on the platform of a patch, in any direction, with one command: straight on. The robot has
crossed when it has passed all obstacles of the patch, on its way out, without a fall and in time. Everything else is
drawn from the task's full ranges, pushes included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from robo_rl.console import Progress
from robo_rl.evaluate.proportion import wilson
from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.sim.env import VecEnv
from robo_rl.sim.scenes.terrain import CELL, PLATFORM, STEPS, TREAD, described
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.legged.rough import RoughWalk

SPEED = 0.5  # m/s
SECONDS = 15.0
WAY = CELL * (PLATFORM + TREAD * STEPS)  # m, along x or y
COMMAND = {"command/x": SPEED, "command/y": 0.0, "command/yaw": 0.0, "command/stand": 1.0}


def require_rough_ground(task: Task) -> None:
    """ValueError unless it is a task on rough ground."""
    if not isinstance(task, RoughWalk):
        name = task.spec.name
        raise ValueError(f"--ground is for tasks on rough ground; '{name}' is not one, try --task go2-rough")


def evaluate_terrain(
    task: RoughWalk,
    policy: Any,
    each: int = 50,
    seed: int = 0,
    seconds: float = SECONDS,
    fixed: Mapping[str, float] | None = None,
    make_plant: Callable[[int], Any] | None = None,
) -> list[dict[str, Any]]:
    """Walks across every patch, ``each`` times: kind, height ("10 cm", "20°"), walks, crossed with its interval (95 %,
    Wilson), fell. ``fixed``: ranges of the task held at one value; those of the ground choose among the patches."""
    fixed = fixed or {}
    rows, kinds, _ = task.ground.starts.shape
    at, of = fixed.get("ground/difficulty"), fixed.get("ground/kind")  # as ``Ground.start`` takes them
    heights = list(range(rows)) if at is None else [min(max(int(at * rows), 0), rows - 1)]
    columns = list(range(kinds)) if of is None else [int(of * kinds) % kinds]
    row, kind = (
        part.flatten().repeat_interleave(each)
        for part in torch.meshgrid(torch.tensor(heights), torch.tensor(columns), indexing="ij")
    )
    held = {**COMMAND, **fixed, "ground/difficulty": (row + 0.5) / rows, "ground/kind": (kind + 0.5) / kinds}
    n = len(row)
    env = VecEnv(
        task, n, HELD_OUT + 1000 * seed, fixed=held, evaluation=True, episode_length=2 * seconds, make_plant=make_plant
    )
    middle = torch.from_numpy(task.ground.starts)[row, kind].float()
    signals, state = env.signals(), policy.initial_state(n)
    under_way, crossed = torch.ones(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool)
    steps = round(seconds / task.spec.control_period)
    with Progress("crossing", steps) as progress:
        for k in range(steps):
            commands, state = policy(signals, state)
            step = env.step(commands)
            signals = step.signals
            under_way &= ~step.failed
            away = (env.plant.truth()["position"][:, :2] - middle).abs().amax(1)
            crossed |= under_way & (away > WAY)
            under_way &= ~crossed
            progress.update(k + 1, f"{int(crossed.sum())} of {n} have crossed")
            if not under_way.any():
                break
    fell = ~crossed & ~under_way
    table = []
    for j in columns:
        for i in heights:
            name, here = task.ground.kinds[j], (row == i) & (kind == j)
            count = int(crossed[here].sum())
            low, high = wilson(count, each)
            table.append(
                {
                    "kind": name,
                    "height": described(name, (i + 1) / rows),
                    "walks": each,
                    "crossed": count / each,
                    "crossed_low": low,
                    "crossed_high": high,
                    "fell": float(fell[here].float().mean()),
                }
            )
    return table
