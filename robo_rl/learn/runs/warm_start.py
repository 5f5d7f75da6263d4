"""Begin with what another policy has learnt, at a task whose observation goes on where the other one's ends.

The further inputs of a first layer have no weight yet, so at first the networks do what they did there. A student,
whose observation ends earlier than its teacher's, begins with the teacher's weights of what it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from robo_rl.learn import apg, sac
from robo_rl.learn.ppo import Learner
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run


def begin_from(learner: Any, run: Run) -> None:
    """Let a learner of PPO begin with the networks and normalisers of a run of PPO, or of a student distilled from one.

    A learner of APG begins with the network of a run of APG, one of SAC with that of a run of BC. Where ranges and
    rules are the same, the robots begin at that run's levels too.
    """
    if run.algorithm == "apg" and isinstance(learner, apg.Learner):
        tensors, _ = checkpoint.load(run.checkpoint_file)
        widen(learner.policy, checkpoint.part(tensors, "policy/"), f"{run.folder}: policy")
        if _same_levels(learner, run):
            learner.begin_at(tensors["env/levels"])
        return
    if run.algorithm == "bc" and isinstance(learner, sac.Learner):
        tensors, _ = checkpoint.load(run.checkpoint_file)
        widen(learner.policy, checkpoint.part(tensors, "policy/"), f"{run.folder}: policy")
        if learner.anchor:
            learner.anchor.place(learner.policy)
        return
    if run.algorithm not in ("ppo", "distilled") or not isinstance(learner, Learner):
        raise ValueError(
            f"{run.folder} was trained by {run.algorithm}; expected one by this training's algorithm, or for ppo "
            "a distilled one, for sac one of bc"
        )
    tensors, _ = checkpoint.load(run.checkpoint_file)
    if "deviation" not in tensors:
        raise ValueError(f"{run.checkpoint_file} is of an older version, without the tensors needed; train it again")
    for name, model in (("policy", learner.policy), ("critic", learner.critic), ("normalizer", learner.normalizer)):
        widen(model, checkpoint.part(tensors, f"{name}/"), f"{run.folder}: {name}")
    with torch.no_grad():
        learner.deviation.copy_(tensors["deviation"])
    if _same_levels(learner, run):
        learner.env.begin_at(tensors["env/env/levels"])


def _same_levels(learner: Any, run: Run) -> bool:
    """Whether levels mean the same in a training and in the run that it begins from."""
    theirs, ours = run.task().spec, learner.policy.task.spec
    return theirs.rules == ours.rules and list(theirs.ranges) == list(ours.ranges)


def widen(model: nn.Module, known: Mapping[str, Tensor], where: str) -> None:
    """Put the tensors ``known`` of a model with fewer inputs into the leading inputs of ``model``."""
    own = model.state_dict()
    for name, value in own.items():
        if name not in known:
            raise ValueError(f"{where} has no '{name}'; expected a network of the same layers")
        found = known[name]
        if found.shape[:-1] != value.shape[:-1] or found.shape[-1:] > value.shape[-1:]:
            raise ValueError(
                f"{where} has '{name}' of shape {tuple(found.shape)}; expected {tuple(value.shape)}, or fewer inputs"
            )
        with torch.no_grad():
            if "weight" in name:
                value.zero_()
            value[..., : found.shape[-1]].copy_(found) if found.ndim else value.copy_(found)


def narrow(student: nn.Module, teacher: nn.Module) -> None:
    """Give ``student`` the tensors of ``teacher``, as far as its own inputs go."""
    theirs = teacher.state_dict()
    with torch.no_grad():
        for name, value in student.state_dict().items():
            value.copy_(theirs[name][..., : value.shape[-1]])
