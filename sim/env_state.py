"""States of environments: all that their future depends on, to go back to, to begin from, to keep in a file.

A state is one tensor (m, …) per quantity, so that thousands of them are indexed, joined and saved like one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robo_rl.files import require_file

MOST_BYTES = 3 << 27
"""Of a file of states."""


@dataclass(frozen=True)
class EnvState:
    """The states of m environments."""

    tensors: dict[str, Tensor]
    """(m, …) by name: "stream", "episode/step", "plant/position", "parameter/mass", …"""

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def at(self, index: Any) -> EnvState:
        """Some of the states: by a tensor of numbers or truth values, or a slice."""
        return EnvState({name: value[index] for name, value in self.tensors.items()})

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with ``prefix``, by the rest of their names."""
        return {name.removeprefix(prefix): v for name, v in self.tensors.items() if name.startswith(prefix)}

    @staticmethod
    def concatenated(states: Sequence[EnvState]) -> EnvState:
        """All states of some, one after the other."""
        first = states[0].tensors
        for state in states:
            state.require(first)
        return EnvState({name: torch.cat([state[name] for state in states]) for name in first})

    def require(self, expected: Mapping[str, Tensor]) -> None:
        """ValueError where a tensor is missing, or has another shape for one environment."""
        for name, value in expected.items():
            found = tuple(self.tensors[name].shape[1:]) if name in self.tensors else "missing"
            if found != tuple(value.shape[1:]):
                raise ValueError(
                    f"a state of another task or environment: '{name}' is {found}; expected {tuple(value.shape[1:])}"
                )

    def save(self, path: str | Path) -> None:
        """Write a safetensors file."""
        import safetensors.torch

        solid = {name: value.detach().cpu().contiguous().clone() for name, value in self.tensors.items()}
        safetensors.torch.save_file(solid, path)

    @staticmethod
    def load(path: str | Path) -> EnvState:
        """Read what ``save`` wrote."""
        import safetensors

        require_file(Path(path), MOST_BYTES)
        try:
            with safetensors.safe_open(path, "pt") as file:
                return EnvState({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 (not a dict)
        except (OSError, safetensors.SafetensorError) as error:
            raise ValueError(f"{path}: states of environments can't be read ({error})") from None


def named(value: Any, prefix: str = "") -> dict[str, Tensor]:
    """The tensors of nested tuples and dictionaries by the path to them, "episode/step"."""
    if isinstance(value, Tensor):
        return {prefix.removesuffix("/"): value}
    if isinstance(value, dict):
        items = list(value.items())
    else:
        items = list(zip(getattr(value, "_fields", map(str, range(len(value)))), value, strict=True))
    return {name: tensor for key, item in items for name, tensor in named(item, f"{prefix}{key}/").items()}


def plant_state(plant: Any, ids: Tensor) -> dict[str, Tensor]:
    """The state and all parameters of the robots ``ids`` of a plant."""
    parameters = {
        f"parameter/{name}": (value if len(value) == plant.n else value.expand(plant.n, *value.shape[1:]))[ids]
        for name, value in plant.parameters._asdict().items()
    }
    return {**parameters, **named(plant.state(ids), "plant/")}


def set_plant_state(plant: Any, ids: Tensor, state: EnvState) -> None:
    """Put robots into a state, after their parameters: of those, what differs from what is there."""
    given = state.part("parameter/")
    current = plant.parameters._asdict()
    current = {name: value for name, value in current.items() if value[:1].numel()}  # robots without cameras have none
    state.require({f"parameter/{name}": value for name, value in current.items()})
    for name, now in current.items():
        value = given[name].to(now)
        here = now[ids] if len(now) == plant.n else now
        if not torch.equal(here.expand_as(value), value):
            plant.param(name)[ids] = value
    if hasattr(plant, "refresh"):
        plant.refresh(ids)
    template = plant.state(ids[:0])
    parts = state.part("plant/")
    state.require(named(template, "plant/"))
    plant.set_state(ids, type(template)(**{name: parts[name].to(value.device) for name, value in _fields(template)}))


def _fields(template: Any) -> list[tuple[str, Tensor]]:
    return list(template._asdict().items())
