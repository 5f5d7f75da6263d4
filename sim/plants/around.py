"""Plants around another one, to which they add quantities of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from robo_rl.sim.plants import Articulated

if TYPE_CHECKING:
    import mujoco

    from robo_rl.sim.plants.indices import ModelIndices


class Around:
    """A plant that is ``inner`` but for what a subclass adds; ``look`` follows each change of the state."""

    dynamics = None
    n: int
    nominal: Any
    parameters: Any
    model: mujoco.MjModel
    indices: ModelIndices
    height: float
    """These and all that is not here are the inner plant's."""

    def __init__(self, inner: Articulated) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def look(self, ids: Tensor) -> None:
        """Bring what is added up to date: the robots ``ids`` (m,) were put somewhere, or pushed."""
        raise NotImplementedError

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter."""
        return self.inner.param(name)

    def refresh(self, ids: Tensor) -> None:
        """As the inner plant's."""
        self.inner.refresh(ids)
        self.look(ids)

    def place(self, ids: Tensor, *parts: Tensor, **named: Tensor) -> None:
        """As the inner plant's."""
        self.inner.place(ids, *parts, **named)
        self.look(ids)

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """As the inner plant's."""
        self.inner.push(ids, velocity)
        self.look(ids)

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""
        return self.inner.truth()

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """As the inner plant's."""
        self.inner.step(commands)

    def state(self, ids: Tensor) -> Any:
        """Copies of the states of the robots ``ids`` (m,)."""
        return self.inner.state(ids)

    def set_state(self, ids: Tensor, state: Any) -> None:
        """As the inner plant's."""
        self.inner.set_state(ids, state)
        self.look(ids)

    def drawing(self) -> mujoco.MjModel:
        """As the inner plant's."""
        return self.inner.drawing()

    def poses(self, ids: Tensor) -> np.ndarray:
        """As the inner plant's."""
        return self.inner.poses(ids)

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""
        return self.inner.save()

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
        self.inner.load(saved)
