"""Learning algorithms, one file each, with a ``Learner`` (see ``robo_rl.learn.runs.training``)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from robo_rl.learn.config import CONFIGS

if TYPE_CHECKING:
    from robo_rl.learn.runs.folder import Run
    from robo_rl.learn.runs.training import Learner
    from robo_rl.policy import PolicyGraph

FROM_FILES = ("bc", "ppo", "sac")
"""Those that learn from files in the run's folder."""


def config_of(run: Run) -> Any:
    """A run's hyperparameters."""
    settings = {name: tuple(x) if isinstance(x, list) else x for name, x in run.hyperparameters.items()}
    return CONFIGS[run.algorithm](**settings)


def new_learner(run: Run, policy: PolicyGraph, device: str = "cpu") -> Learner:
    """The learner of a run's algorithm, with the run's hyperparameters and seed."""
    module = importlib.import_module(f"robo_rl.learn.{run.algorithm}")
    config = config_of(run)
    if run.algorithm in FROM_FILES:
        return module.Learner(policy.task, policy, config, run.seed, device, run.folder)
    return module.Learner(policy.task, policy, config, run.seed, device)
