"""Steps per second of ``gymnasium.make_vec`` beside the environment below it, ``VecEnv``, in turns in one process.

    python benchmarks/gymnasium_batch.py [TASK]

Both sides make the same episodes: VecEnv gets the commands that follow from the actions, so that as many episodes end
and begin. What gymnasium's side has to do besides: actions to commands, the policy's memory, observations and
privileged observations, infos and final observations. Writes results/gymnasium_batch.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from results import words, write

from robo_rl.adapters.gym import ACTION_SCALE
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

SIZES = {True: (256, 1024, 4096, 16384), False: (64, 256)}  # by whether the plant is a pure function
CONTROL_STEPS = {True: 200_000, False: 5_000}  # of all robots, in a round
ROUNDS = 9


def compare(task_name: str, n: int) -> dict[str, float]:
    """Steps per second of both, the best round of each."""
    envs = gymnasium.make_vec(task_name, num_envs=n, evaluation=True)
    inner: Any = envs.unwrapped
    task, learning = inner.observed.task, inner.observed
    steps = max(20, CONTROL_STEPS[learning.env.fused] // n)
    generator = np.random.default_rng(0)
    actions = [(0.1 * generator.standard_normal((n, task.action_size))).astype(np.float32) for _ in range(steps)]
    envs.reset(seed=1)
    commands = []
    for action in actions:
        sent = task.command(torch.from_numpy(ACTION_SCALE * action), learning.memory)
        commands.append({name: value.clone() for name, value in sent.items()})
        envs.step(action)
    below, seed = VecEnv(task, n, evaluation=True), int(np.random.default_rng(1).integers(1 << 63))

    def again() -> None:
        below.seed(seed)
        below.reset()

    sides: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
        "gymnasium": (lambda: envs.reset(seed=1), lambda i: envs.step(actions[i])),
        "VecEnv": (again, lambda i: below.step(commands[i])),
    }
    best = dict.fromkeys(sides, 0.0)
    for _ in range(ROUNDS):
        for name, (begin, step) in sides.items():
            begin()
            start = time.perf_counter()
            for i in range(steps):
                step(i)
            best[name] = max(best[name], n * steps / (time.perf_counter() - start))
    return best


def main() -> None:
    chosen = words(__doc__ or "", most=1)
    found: dict[str, Any] = {}
    for name in chosen or ["quadrotor-hover", "go2-flat"]:
        fused = VecEnv(load_task(name), 1).fused
        for n in SIZES[fused]:
            rates = compare(name, n)
            found[f"{name}, {n}"] = {**rates, "ratio": rates["gymnasium"] / rates["VecEnv"]}
            print(f"{name}, {n} robots: " + ", ".join(f"{side} {rate:,.0f}/s" for side, rate in rates.items()), end="")
            print(f", ratio {found[f'{name}, {n}']['ratio']:.2f}", flush=True)
    if not chosen:
        write("gymnasium_batch", found)


if __name__ == "__main__":
    main()
