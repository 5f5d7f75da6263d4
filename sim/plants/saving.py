"""What plants share whose states and parameters are named tuples of tensors: read, written and saved by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block


class Saved:
    """A plant whose ``state`` and ``set_state`` have all that changes besides ``parameters``."""

    n: int
    parameters: Any

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter; call ``refresh`` after those that something follows from."""
        return getattr(self.parameters, name)

    def refresh(self, ids: Tensor) -> None:
        """Nothing follows from the parameters."""

    def state(self, ids: Tensor) -> Any:
        """A copy of the state of the robots ``ids`` (m,)."""
        raise NotImplementedError

    def set_state(self, ids: Tensor, state: Any) -> None:
        """Put the robots ``ids`` (m,) into a state."""
        raise NotImplementedError

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        state = self.state(torch.arange(self.n))._asdict()
        return {**{f"state/{name}": value for name, value in state.items()}, **self.parameters._asdict()}

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        every = torch.arange(self.n)
        for name in self.parameters._fields:
            self.param(name).copy_(saved[name])
        self.refresh(every)
        state_type = type(self.state(every[:0]))
        self.set_state(every, state_type(*(saved[f"state/{name}"] for name in state_type._fields)))


class ClosedForm(Saved):
    """n robots; subclasses step ``current`` in place by ``parameters``, both named tuples of live tensors."""

    def __init__(self, n: int, nominal: Any, state: type, shapes: Sequence[tuple[int, ...]], device: Any) -> None:
        """``nominal`` has the card's figures, (1, …) each; ``state`` is a named tuple, of parts (n, *shape)."""
        self.n, self.device, self.nominal = n, torch.device(device), nominal
        self.parameters = type(nominal)(*live(n, nominal, device))
        self.block, parts = empty_block(n, shapes, device)
        """Live: the rows of the state's parts in order."""
        self.block.zero_()
        self.current = state(*parts)
        """Live."""

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return self.current._asdict()

    def state(self, ids: Tensor) -> Any:
        return type(self.current)(*(part[ids] for part in self.current))

    def set_state(self, ids: Tensor, state: Any) -> None:
        for mine, given in zip(self.current, state, strict=True):
            mine[ids] = given


def live(n: int, figures: Any, device: Any = "cpu") -> list[Tensor]:
    """(n, …) each, of parameters that are ``figures`` (1, …) at first."""
    _, parts = empty_block(n, [figure.shape[1:] for figure in figures], device)
    for mine, figure in zip(parts, figures, strict=True):
        mine[:] = figure
    return list(parts)
