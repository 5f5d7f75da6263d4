"""Plants in checkpoints: state and parameters of all robots by name, for plants whose ``set_state`` takes all of it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from robo_rl.sim.plants import Plant


def save(plant: Plant) -> dict[str, Tensor]:
    """All that changes of a plant, for a checkpoint."""
    state = plant.state(torch.arange(plant.n))._asdict()
    return {**{f"state/{name}": value for name, value in state.items()}, **plant.parameters._asdict()}


def load(plant: Plant, saved: Mapping[str, Tensor]) -> None:
    """Let a plant continue from ``save``, bit by bit."""
    every = torch.arange(plant.n)
    for name in plant.parameters._fields:
        plant.param(name).copy_(saved[name])
    plant.refresh(every)
    state_type = type(plant.state(every[:0]))
    plant.set_state(every, state_type(*(saved[f"state/{name}"] for name in state_type._fields)))
