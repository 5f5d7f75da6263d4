"""The newest signals of all environments: rows of one block, and beside them those that are too large for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from robo_rl.contract import Signal
from robo_rl.sim.accelerate.fuse import spaced


class NewestSignals:
    """Signals that were handed out are not written any more: the next ones lie in new memory."""

    def __init__(self, signals: Sequence[Signal], shapes: Mapping[str, torch.Size], block: Tensor) -> None:
        """``shapes`` are those of the signals of one environment that lie in ``block`` (numbers, n)."""
        self._order, self._shapes = [signal.name for signal in signals], dict(shapes)
        self._sizes = [shape.numel() for shape in shapes.values()]
        self.block = block
        self.large: dict[str, Tensor] = {}
        self.given_away = False
        """Whether anyone may hold signals that lie in ``block``."""

    def small(self, block: Tensor) -> dict[str, Tensor]:
        """The signals (m, …) that lie in a block (numbers, m)."""
        parts = block.mT.split_with_sizes(self._sizes, 1)
        return {
            name: part if len(shape) == 1 else part.unflatten(1, shape)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def _ordered(self, small: dict[str, Tensor], large: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: small[name] if name in small else large[name] for name in self._order} if large else small

    def named(self) -> dict[str, Tensor]:
        """All of them, (n, …) by name."""
        self.given_away = True
        return self._ordered(self.small(self.block), self.large)

    def rows(self, ids: Tensor, of: tuple[Tensor, Mapping[str, Tensor]] | None = None) -> dict[str, Tensor]:
        """Copies of those of the environments ``ids`` (m,), or of earlier ones (block, large)."""
        block, large = of or (self.block, self.large)
        return self._ordered(self.small(block[:, ids]), {name: value[ids] for name, value in large.items()})

    def move(self) -> None:
        """Go on in other memory."""
        self.block, self.given_away = spaced(*self.block.shape, device=self.block.device).copy_(self.block), False
        self.large = {name: value.clone() for name, value in self.large.items()}
