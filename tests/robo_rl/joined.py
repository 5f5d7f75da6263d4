"""What a process of ``test_processes`` does: learns with the others, then alone what all of them saw.

torchrun --nproc-per-node 2 tests/robo_rl/joined.py FOLDER
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

from robo_rl.learn.config import PpoConfig
from robo_rl.learn.distributed import processes
from robo_rl.learn.experience.samples import Samples
from robo_rl.learn.ppo import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task

CONFIG = PpoConfig(environments=16, horizon=6, hidden=(16,), critic_hidden=(16,), mini_batches=1, epochs=3)


def main(folder: Path) -> None:
    processes.join("cpu")
    torch.manual_seed(0)
    task = load_task("quadrotor-hover")
    learner = Learner(task, PolicyGraph(task, CONFIG.hidden, normalize=True), CONFIG, seed=0)
    torch.manual_seed(processes.own_seed(0))
    learner.update()
    alone = copy.deepcopy({name: part.state_dict() for name, part in parts(learner).items()})
    rate = learner.learning_rate
    learner.collect()
    joined, rewards = Samples(*(gathered(value) for value in learner.samples)), learner.samples.reward.clone()
    learner.learn()
    torch.save({"rewards": rewards, **weights(learner)}, folder / f"together{processes.rank()}.pt")
    processes.leave()
    for name, part in parts(learner).items():
        part.load_state_dict(alone[name])
    learner.samples, learner.learning_rate = joined, rate
    learner.learn()
    torch.save(weights(learner), folder / f"alone{processes.rank()}.pt")


def parts(learner: Learner) -> dict[str, Any]:
    """All that an update changes."""
    return {
        "policy": learner.policy,
        "critic": learner.critic,
        "normalizer": learner.normalizer,
        "deviation": nn.ParameterList([learner.deviation]),
        "optimizer": learner.optimizer,
    }


def gathered(value: Any) -> Any:
    """(steps, environments of all processes, …), of groups too."""
    if isinstance(value, dict):
        return {name: gathered(one) for name, one in value.items()}
    found = [torch.empty_like(value) for _ in range(processes.count())]
    distributed.all_gather(found, value.contiguous().clone())
    return torch.cat(found, 1)


def weights(learner: Learner) -> dict[str, torch.Tensor]:
    made = {name: part.state_dict() for name, part in parts(learner).items() if name != "optimizer"}
    return {f"{part}/{name}": x.clone() for part, state in made.items() for name, x in state.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
