"""What plants of motors have in common: states and parameters by name, that are read, set and saved by robot."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse import empty_block
from robo_rl.sim.drawing import Poser
from robo_rl.sim.plants import saving
from robo_rl.sim.plants.motor.drawing import draw_motor


class MotorPlant:
    """n motors; subclasses step ``current`` in place by ``parameters``, both named tuples of live tensors."""

    def __init__(self, n: int, nominal: Any, state: type, shapes: Sequence[tuple[int, ...]], device: Any) -> None:
        """``nominal`` has the card's figures, (1, …) each; ``state`` is a named tuple, of parts (n, *shape)."""
        self.n, self.device, self.nominal = n, torch.device(device), nominal
        _, parts = empty_block(n, [figure.shape[1:] for figure in nominal], device)
        self.parameters = type(nominal)(*parts)
        for mine, figure in zip(self.parameters, nominal, strict=True):
            mine[:] = figure
        self._block, states = empty_block(n, shapes, device)
        self._block.zero_()
        self.current = state(*states)

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter."""
        return getattr(self.parameters, name)

    def refresh(self, ids: Tensor) -> None:
        """Nothing follows from the parameters."""

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, k)."""
        return self.current._asdict()

    def state(self, ids: Tensor) -> Any:
        """A copy of the state of the motors ``ids`` (m,)."""
        return type(self.current)(*(part[ids] for part in self.current))

    def set_state(self, ids: Tensor, state: Any) -> None:
        """Put the motors ``ids`` (m,) into a state."""
        for mine, given in zip(self.current, state, strict=True):
            mine[ids] = given

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return saving.save(self)  # type: ignore[arg-type]

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        saving.load(self, saved)  # type: ignore[arg-type]

    def drawing(self) -> Any:
        """A housing, and a shaft that turns."""
        return self._poser.model

    @functools.cached_property
    def _poser(self) -> Poser:
        return Poser(draw_motor())
