"""Residual learning: a network corrects what a frozen base does, by a bounded amount that is nothing at first.

The base is another policy of the same task (mostly one that was cloned from demonstrations), or the task's own script.
It is in the graph that trains and in the one that is exported. So an untrained policy is the base, to the bit, and
whatever is learnt stays within ``bound`` of it. The correction sees the base's action beside the observation.

After Silver et al. 2018 (Residual Policy Learning), Johannink et al. 2019 (Residual Reinforcement Learning for Robot
Control) and Yuan et al. 2024 (Policy Decorator), from whom the bound is.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from robo_rl.contract import Base
from robo_rl.files import read_bytes
from robo_rl.learn.experience.demonstrations import contract_of
from robo_rl.learn.runs import checkpoint
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import MLP, Normalizer, vector_of
from robo_rl.sim.tasks import Task

FILE_NAME = "base.safetensors"
"""In the folder of a run that corrects a network: its tensors, and in the header its layers."""
SCRIPT = "script"
"""What the base is called that needs no file."""


class BaseError(ValueError):
    """Something can't be a base. The message says why."""


class LastColumns(nn.Module):
    """The base that is a script: its actions are the last numbers of the observation (``with_script``)."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, observation: Tensor) -> Tensor:
        return observation[:, -self.count :]


class Correction(MLP):
    """Actions (n, a) of features (n, k) whose last a are the base's actions: those, and what the layers add."""

    def __init__(self, inputs: int, hidden: tuple[int, ...], outputs: int, activation: str, bound: float) -> None:
        super().__init__(inputs, hidden, outputs, activation)
        self.outputs, self.bound = outputs, bound
        last = self[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)

    def forward(self, features: Tensor) -> Tensor:
        return features[:, -self.outputs :] + self.bound * torch.tanh(super().forward(features))


class ResidualGraph(PolicyGraph):
    """A policy graph with a frozen base; its task is the one that it was given, or that with the script in view."""

    def __init__(self, task: Task, hidden: tuple[int, ...], activation: str, normalize: bool, base: Base) -> None:
        seen, acted = task.observation_size, task.action_size
        super().__init__(with_script(task) if base.kind == SCRIPT else task, hidden, activation, normalize, encoders=())
        self.shape = dataclasses.replace(self.shape, base=base)
        self.base = (
            LastColumns(acted)
            if base.kind == SCRIPT
            else nn.Sequential(
                Normalizer(seen) if base.normalize else nn.Identity(),
                MLP(seen, base.hidden, acted, base.activation),
            )
        ).requires_grad_(False)
        self.network = Correction(self.task.observation_size + acted, hidden, acted, activation, base.bound)

    def features(self, observation: Tensor | Mapping[str, Tensor]) -> Tensor:
        """(n, k) what the correction sees: the normalised observation, and the base's actions."""
        vector = vector_of(observation)
        return torch.cat([self.normalizer(vector), self.base(vector)], 1)


def with_script(task: Task) -> Task:
    """The task, whose observation ends with the actions (n, action_size) of its script."""
    shown: Any = copy.copy(task)

    def observe(signals: Mapping[str, Any], memory: Mapping[str, Any]) -> Any:
        action = torch.clamp(task.script(signals, memory), -1.0, 1.0)  # type: ignore[attr-defined]
        return torch.cat([task.observe(signals, memory), action], -1)

    shown.observe, shown.observation_size = observe, task.observation_size + task.action_size
    return shown


def require_script(task: Task) -> None:
    """BaseError unless a task has a script that can be a base."""
    if not hasattr(task, "script") or task.encoders:
        raise BaseError(f"task '{task.name}' has no script that could be corrected; expected --base RUN or BUNDLE")


def file_of(policy: PolicyGraph, task: Task, where: str) -> bytes:
    """The file FILE_NAME of a policy that a run is to correct at ``task``; BaseError, about ``where``, if it can't."""
    shape, theirs = policy.shape, policy.task
    if contract_of(theirs).interface_digest != contract_of(task).interface_digest:
        raise BaseError(
            f"{where} is a policy of '{theirs.name}' with {theirs.spec.robot.name}; expected one of '{task.name}' with "
            f"{task.spec.robot.name}, with the same signals, commands and limits"
        )
    if type(policy) is not PolicyGraph or shape.recurrent or shape.encoders:
        raise BaseError(
            f"{where} is more than a network of a vector; expected layers alone, as bc, sac, apg and ppo learn"
        )
    tensors = {f"0.{name}": value for name, value in policy.normalizer.state_dict().items()}
    tensors |= {f"1.{name}": value for name, value in policy.network.state_dict().items()}
    layers = {"hidden": list(shape.hidden), "activation": shape.activation, "normalize": shape.normalize}
    return checkpoint.packed(tensors, layers)


def network_of(folder: Path, base: str, bound: float) -> Base:
    """What the run in ``folder`` corrects, of which it knows that it is the "script", or the digest of a file."""
    if base == SCRIPT:
        return Base("script", bound)
    _, layers = checkpoint.load(_file(folder, base))
    return Base("network", bound, **layers)


def put_base(policy: PolicyGraph, folder: Path, base: str) -> None:
    """Give an untrained policy the base in a run's folder."""
    if base and base != SCRIPT:
        assert isinstance(policy, ResidualGraph)
        policy.base.load_state_dict(checkpoint.load(_file(folder, base))[0])


def _file(folder: Path, digest: str) -> Path:
    path = folder / FILE_NAME
    if not path.is_file() or hashlib.sha256(read_bytes(path, checkpoint.MOST_BYTES)).hexdigest() != digest:
        raise BaseError(f"{path}: not the base that the run began with; expected SHA-256 {digest}")
    return path
