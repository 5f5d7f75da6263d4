"""How much of a simulator's error learning on the microcontroller closes: the generated C on this computer, on motors
that are not those of the training.

    robo-rl train pmsm-speed --name drawn
    robo-rl train pmsm-speed --name there --bounds inertia:0.25:0.25 torque_factor:1.4:1.4
    robo-rl export runs/drawn --out drawn.onnx
    python benchmarks/streaming.py drawn.onnx --fixed inertia 0.25 torque_factor 1.4 --against runs/there

Each seed has a motor and a copy of the compiled C of its own. Errors are those of the task's last measure, without
exploration, in held-out episodes of the same motor: before, and with the weights that a slot holds afterwards.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.learning import learned_policy, learning_of
from robo_rl.deploy.build.verify import task_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.stream import StreamConfig
from robo_rl.sim.env import VecEnv


class Chip:
    """One robot's microcontroller: the generated C with its learner."""

    def __init__(self, bundle: Bundle, learning: Any, folder: Path) -> None:
        made = generate(bundle, folder, Options(learning=learning))
        compile_host(made)
        self.functions = ctypes.CDLL(str(made.folder / f"lib{made.name}.so"))
        self.functions.policy_learn_allow(ctypes.c_uint8(1))
        self.slot = np.zeros(88 + 4 * len(learning.start.actor), np.uint8)

    def step(self, row: int, signals: np.ndarray, state: np.ndarray, commands: np.ndarray) -> None:
        """Commands of a row (n, k) for signals (n, k); the state (n, S) goes on."""
        places = (ctypes.c_void_p(x.ctypes.data + row * x.strides[0]) for x in (signals, state, commands))
        self.functions.policy_step_many(ctypes.c_uint32(1), *places)

    def weights(self) -> bytes:
        """A slot."""
        self.functions.policy_learn_save(ctypes.c_uint32(1), self.slot.ctypes)
        return self.slot.tobytes()

    def progress(self) -> dict[str, float]:
        now = np.zeros(7, np.uint32)
        self.functions.policy_learn_progress_now(now.ctypes)
        names = ("steps", "learnt", "spikes", "returns", "off")
        return dict(zip(names, now[:5].tolist(), strict=True)) | dict(
            zip(("first", "last"), now[5:].view(np.float32).tolist(), strict=True)
        )


def main(
    file: Annotated[Path, tyro.conf.Positional],
    fixed: dict[str, float],
    seconds: float = 600.0,
    seeds: int = 5,
    episodes: int = 500,
    against: str | None = None,
    reports: int = 6,
    out: Path | None = None,
) -> None:
    """Learn, and report.

    Args:
        file: A bundle.
        fixed: Ranges of the task at the values of the motor that is there, as NAME VALUE pairs.
        seconds: Time of the motors.
        seeds: Number of motors and learners.
        episodes: Held-out episodes of an evaluation.
        against: A run or bundle that was trained for this motor, whose error is the other end of the gap.
        reports: Evaluations on the way.
        out: Write the results here (*.json).
    """
    torch.set_num_threads(1)
    bundle = Bundle.read(file)
    task = task_of(bundle)
    measure = task.measures[-1]
    conditions = Conditions(episodes, fixed=fixed)

    def error(policy: Any) -> float:
        return float(rollout(task, policy, conditions, None).summary()[measure.key])

    rows: dict[str, Any] = {"fixed": fixed, "seconds": seconds, "unit": measure.unit}
    learning = learning_of(bundle, task, StreamConfig(**task.settings.get("stream", {})))
    learnings = [
        dataclasses.replace(learning, config=dataclasses.replace(learning.config, seed=seed)) for seed in range(seeds)
    ]
    rows["frozen"] = error(GraphPolicy(learned_policy(bundle, task, None)))
    if against is not None:
        from robo_rl.policies.loading import load

        rows["retrained"] = error(load(against, task).policy)
    print({k: v for k, v in rows.items() if k != "fixed"}, flush=True)
    with tempfile.TemporaryDirectory() as name:
        chips = [Chip(bundle, learning, Path(name) / str(seed)) for seed, learning in enumerate(learnings)]
        env = VecEnv(task, seeds, 1000, fixed=fixed)
        signals = env.signals()
        initial = bundle.contract.initial_state
        state = np.tile(initial, (seeds, 1))
        sizes = [command.size for command in bundle.contract.commands]
        commands = np.zeros((seeds, sum(sizes)), np.float32)
        given = dict(
            zip([c.name for c in bundle.contract.commands], torch.from_numpy(commands).split(sizes, 1), strict=True)
        )
        steps = round(seconds / task.spec.control_period)
        rows["on_the_way"] = []
        begun = time.perf_counter()
        for step in range(1, steps + 1):
            packed = np.concatenate([signals[s.name].flatten(1).numpy() for s in bundle.contract.signals], 1)
            for i, chip in enumerate(chips):
                chip.step(i, packed, state, commands)
            after = env.step(given)
            signals = after.signals
            for i in after.ids.tolist():
                chips[i].functions.policy_learn_pause()
                state[i] = initial
            if step % (steps // reports) == 0:
                errors = [error(GraphPolicy(learned_policy(bundle, task, chip.weights()))) for chip in chips]
                rows["on_the_way"].append({"seconds": step * task.spec.control_period, "errors": errors})
                print(
                    f"{step * task.spec.control_period:8.1f} s  {np.round(errors, 3)}  {chips[0].progress()}",
                    flush=True,
                )
        rows["computing_seconds"] = time.perf_counter() - begun
        rows["progress"] = [chip.progress() for chip in chips]
    if against is not None:
        gap = rows["frozen"] - rows["retrained"]
        rows["closed"] = [(rows["frozen"] - e) / gap for e in rows["on_the_way"][-1]["errors"]]
        print("closed", np.round(rows["closed"], 3))
    if out is not None:
        out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
