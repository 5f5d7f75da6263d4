"""Whether an emulated Cortex-M4F and this computer learn the same, in every bit of the commands and of what is learnt.

    python benchmarks/streaming_bits.py drawn.onnx --fixed inertia 0.25 torque_factor 1.4 --out bits.json

Signals are recorded in simulation, with motors that are not those of the training. Both sides get them step by step and
learn from all of them in a row.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro

from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.c.host import HostPolicy, compile_host
from robo_rl.deploy.build.firmware.build import build_replay
from robo_rl.deploy.build.firmware.emulate import replay
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.build.learning import learned_policy, learning_of
from robo_rl.deploy.build.verify import task_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.learn.stream import StreamConfig
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task

ALLOWED = ["-DPOLICY_LEARN_ALLOWED=1u"]


@torch.no_grad()
def recorded(bundle: Bundle, task: Task, flights: int, steps: int, fixed: dict[str, float]) -> np.ndarray:
    """Signals (flights, steps, N) float32 of the exported policy."""
    policy = learned_policy(bundle, task, None)
    env, state = VecEnv(task, flights, 0, fixed=fixed), policy.initial_state(flights)
    rows, signals = [], env.signals()
    for _ in range(steps):
        rows.append(np.concatenate([signals[s.name].flatten(1).numpy() for s in bundle.contract.signals], 1))
        commands, state = policy(signals, state)
        signals = env.step(commands).signals
    return np.stack(rows, 1).astype(np.float32)


def answered(ours: HostPolicy, bundle: Bundle, signals: np.ndarray) -> np.ndarray:
    """Commands (flights, steps, M) of the same C on this computer, one learner for all flights."""
    ends = np.cumsum([s.size for s in bundle.contract.signals])[:-1]
    pause = ours.library.policy_learn_pause
    given = []
    for flight in signals:
        state = bundle.contract.initial_state[None]
        pause()
        for row in flight:
            parts = np.split(row[None], ends, 1)
            named = {s.name: part for s, part in zip(bundle.contract.signals, parts, strict=True)}
            commands, state = ours.run(named, state)
            given.append(np.concatenate([commands[c.name][0] for c in bundle.contract.commands]))
    return np.stack(given).reshape(*signals.shape[:2], -1)


def main(
    file: Annotated[Path, tyro.conf.Positional],
    fixed: dict[str, float],
    steps: int = 1_000_000,
    out: Path | None = None,
) -> None:
    """Learn on both, and compare.

    Args:
        file: A bundle.
        fixed: Ranges of the task at the values of the motor that is there, as NAME VALUE pairs.
        steps: Control steps.
        out: Write the results here (*.json).
    """
    torch.set_num_threads(1)
    bundle = Bundle.read(file)
    task = task_of(bundle)
    learning = learning_of(bundle, task, StreamConfig(**task.settings.get("stream", {})))
    each = task.spec.episode_steps
    signals = recorded(bundle, task, -(-steps // each), each, fixed)
    size = sum(command.size for command in bundle.contract.commands)
    target = TARGETS["cortex-m4"]
    with tempfile.TemporaryDirectory() as name:
        made = generate(bundle, name, Options(learning=learning))
        here = answered(compile_host(made, ALLOWED), bundle, signals)
        print(f"this computer: {here.size // size:,} steps", flush=True)
        begun = time.perf_counter()
        there = replay(build_replay(made, target, ALLOWED), target, signals, size, timeout=6 * 3600.0)
        seconds = time.perf_counter() - begun
    apart = int((here.view(np.uint32) != there.view(np.uint32)).any(-1).sum())
    rows = {"target": target.name, "steps": here.size // size, "different": apart, "seconds": round(seconds)}
    print(rows)
    if out is not None:
        out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
