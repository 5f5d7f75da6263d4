"""States of environments: all that their future depends on, to go back to, to begin from, to keep in a file.

A state is one tensor (m, …) per quantity, so that thousands of them are indexed, joined and saved like one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from robo_rl.files import require_file
from robo_rl.sim.plants import Plant

if TYPE_CHECKING:
    from robo_rl.sim.episode import Kept
    from robo_rl.sim.episode_statistics import EpisodeStatistics
    from robo_rl.sim.large_signals import LargeSignals
    from robo_rl.sim.ranges import Levels
    from robo_rl.sim.teams import Teams

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


def copied(value: Any, n: int) -> Any:
    """Nested tuples and dictionaries with a copy (n, …) of every tensor, which is (n, …) or (1, …)."""
    if isinstance(value, Tensor):
        return value.expand(n, *value.shape[1:]).clone()
    if isinstance(value, dict):
        return {name: copied(item, n) for name, item in value.items()}
    parts = [copied(item, n) for item in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def write(targets: Any, values: Any, ids: Any = slice(None)) -> None:
    """Write nested tensors (m, …) or (1, …) into the rows ``ids`` (m,) of such as these (n, …), or into all."""
    given = {name: value.clone() for name, value in named(values).items()}  # they may be views of the targets
    rows = named(targets)
    for name, value in given.items():
        rows[name][ids] = value


def plant_state(plant: Plant, ids: Tensor) -> dict[str, Tensor]:
    """The state and all parameters of the robots ``ids`` of a plant."""
    parameters = {
        f"parameter/{name}": (value if len(value) == plant.n else value.expand(plant.n, *value.shape[1:]))[ids]
        for name, value in plant.parameters._asdict().items()
    }
    return {**parameters, **named(plant.state(ids), "plant/")}


def set_plant_state(plant: Plant, ids: Tensor, state: EnvState) -> None:
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
    plant.refresh(ids)
    template = plant.state(ids[:0])
    parts = state.part("plant/")
    state.require(named(template, "plant/"))
    plant.set_state(ids, type(template)(**{name: parts[name].to(value.device) for name, value in _fields(template)}))


def _fields(template: Any) -> list[tuple[str, Tensor]]:
    return list(template._asdict().items())


class Restorable:
    """An environment that goes back to states of its own and of other environments, and on from a checkpoint."""

    n: int
    device: torch.device
    plant: Any
    stream: Tensor
    levels: Levels
    drawn_block: Tensor
    kept: Kept
    teams: Teams | None
    large: LargeSignals | None
    statistics: EpisodeStatistics | None

    def parts(self) -> dict[str, Tensor]:
        """All that changes, (n, …) by name, but for the plant and the large signals' sensors."""
        parts = {"stream": self.stream, "levels": self.levels.level, "drawn": self.drawn_block, **named(self.kept)}
        neighbours = self.teams.neighbours if self.teams else {}
        return {**parts, **named(self.signals(), "signal/"), **named(neighbours, "neighbours/")}

    def signals(self) -> dict[str, Tensor]:
        """The newest signals, (n, …) by name."""
        raise NotImplementedError

    def renew_signals(self) -> None:
        """Go on in other memory: signals that were handed out are not written any more."""
        raise NotImplementedError

    def _all_rows(self) -> Tensor:
        return torch.arange(self.n, device=self.device)

    def state(self, ids: Tensor) -> EnvState:
        """The complete state of the environments ``ids`` (m,), to restore it here or in other environments.

        What ranges are fixed to and the length of episodes are not part of it.
        """
        parts = {name: value[ids] for name, value in self.parts().items()}
        large = named(self.large.state(ids), "large/") if self.large else {}
        return EnvState({**parts, **large, **plant_state(self.plant, ids)})

    def set_state(self, ids: Tensor, state: EnvState) -> None:
        """Put the environments ``ids`` (m,) into states (m) that environments of this task have been in.

        Under the same commands they repeat what followed, bit by bit. With the "stream" of another place, they go on
        with that one's random numbers.
        """
        self.renew_signals()
        parts = self.parts()
        state.require({**parts, **(named(self.large.state(ids[:0]), "large/") if self.large else {})})
        for name, value in parts.items():
            value[ids] = state[name].to(self.device)
        if self.large:
            self.large.set_state(ids, state.part("large/"))
        set_plant_state(self.plant, ids, state)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        large = named(self.large.state(self._all_rows()), "large/") if self.large else {}
        told = named(self.statistics.save(), "statistics/") if self.statistics else {}
        return {**self.parts(), **large, **named(self.plant.save(), "plant/"), **told}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        self.renew_signals()
        state = EnvState(dict(saved))
        for name, value in self.parts().items():
            value.copy_(state[name])
        if self.large:
            self.large.set_state(self._all_rows(), state.part("large/"))
        self.plant.load(state.part("plant/"))
        if self.statistics is not None:
            self.statistics.load(state.part("statistics/"))
