"""What a process of ``test_processes`` does: learns with the others, then alone what all of them saw.

torchrun --nproc-per-node 2 tests/robo_rl/joined.py FOLDER
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import torch
from rsl_rl.algorithms import PPO
from tensordict import TensorDict
from torch import distributed

from robo_rl import processes
from robo_rl.algorithms.config import PpoConfig
from robo_rl.algorithms.ppo import Learner
from robo_rl.policy import PolicyGraph
from sim.tasks.loading import load_task

CONFIG = PpoConfig(environments=16, horizon=6, hidden=(16,), critic_hidden=(16,), mini_batches=1, epochs=3)


def main(folder: Path) -> None:
    processes.join("cpu")
    torch.manual_seed(0)
    task = load_task("quadrotor-hover")
    learner = Learner(task, PolicyGraph(task, CONFIG.hidden, normalize=True), CONFIG, seed=0)
    torch.manual_seed(processes.own_seed(0))
    learner.update()
    learner.collect()
    whole = copy.deepcopy(learner.ppo)
    join_storage(whole)
    rewards = learner.ppo.storage.rewards.clone()
    learner.ppo.update()
    torch.save({"rewards": rewards, **weights(learner.ppo)}, folder / f"together{processes.rank()}.pt")
    processes.leave()
    whole.is_multi_gpu = False
    whole.update()
    torch.save(weights(whole), folder / f"alone{processes.rank()}.pt")


def join_storage(ppo: PPO) -> None:
    """Put the samples of all processes into the storage of this one."""
    storage = ppo.storage
    for name in ("rewards", "actions", "dones", "values", "actions_log_prob", "returns", "advantages"):
        setattr(storage, name, gathered(getattr(storage, name)))
    storage.distribution_params = tuple(gathered(value) for value in storage.distribution_params)
    seen = {name: gathered(value) for name, value in storage.observations.items()}
    storage.num_envs *= processes.count()
    storage.observations = TensorDict(seen, batch_size=[CONFIG.horizon, storage.num_envs])


def gathered(value: torch.Tensor) -> torch.Tensor:
    """(steps, environments of all processes, k)."""
    parts = [torch.empty_like(value) for _ in range(processes.count())]
    distributed.all_gather(parts, value.contiguous().clone())
    return torch.cat(parts, 1)


def weights(ppo: PPO) -> dict[str, torch.Tensor]:
    models = {"actor": ppo.actor, "critic": ppo.critic}
    return {f"{model}/{name}": x for model, made in models.items() for name, x in made.state_dict().items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
