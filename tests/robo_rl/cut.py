"""What a process of ``test_processes`` does: the second is late, as it waits until the first has all of its horizon.

torchrun --nproc-per-node 2 tests/robo_rl/cut.py FOLDER
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.learn.config import PpoConfig
from robo_rl.learn.distributed import processes
from robo_rl.learn.ppo import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import VECTOR
from robo_rl.sim.tasks.loading import load_task

CONFIG = PpoConfig(environments=16, horizon=8, hidden=(16,), critic_hidden=(16,), mini_batches=2, cut=0.5)
LATE_AT = 2
"""Control steps of the second process when it begins to wait."""


def main(folder: Path) -> None:
    processes.join("cpu")
    task = load_task("quadrotor-hover")
    found: dict[str, Any] = {}
    for name, config in (("cut", CONFIG), ("whole", dataclasses.replace(CONFIG, cut=0.0))):
        torch.manual_seed(0)
        learner = Learner(task, PolicyGraph(task, config.hidden, normalize=True), config, seed=0)
        torch.manual_seed(processes.own_seed(0))
        if name == "cut" and processes.rank() == 1:
            wait_within(learner)
        metrics = learner.update()
        found[name] = {
            "observation": learner.samples.observation[VECTOR].clone(), "mean": learner.normalizer.mean.clone(),
            "weights": torch.cat([x.flatten() for x in learner.policy.parameters()]), "metrics": metrics,
        }  # fmt: skip
    torch.save(found, folder / f"{processes.rank()}.pt")
    processes.leave()


def wait_within(learner: Learner) -> None:
    """Let a step of the environments begin by waiting until the other process has collected its horizon."""
    step, taken = learner.env.step, 0

    def late(action: Tensor) -> Any:
        nonlocal taken
        taken += 1
        if taken == LATE_AT:
            while processes.counted("collected/0", 0) == 0:
                pass
        return step(action)

    learner.env.step = late  # type: ignore[method-assign]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
