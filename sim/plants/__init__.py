"""Plants: what policies control, n at a time, behind one protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    import mujoco


class Plant(Protocol):
    """n simulated robots with state and parameters, stepped in place at one control rate.

    Robots that a push can move have ``push(ids, velocity)``, too: it changes the velocity of the bases of the robots
    ``ids`` by ``velocity`` (3,) m/s, world; the live page asks for it.
    """

    nominal: Any
    """The parameters that the robot's card gives, a named tuple of tensors (1, …)."""
    parameters: Any
    """The parameters now: (n, …) where they differ between robots, else (1, …)."""

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter: what is written into it holds from the next step on."""

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""

    def step(self, commands: dict[str, Tensor]) -> None:
        """One control period under ``commands`` (n, k), held constant."""

    def drawing(self) -> mujoco.MjModel:
        """A model of one robot with everything that can be seen, its ground and objects included."""

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: in the world, of every body of ``drawing`` but the world."""

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""

    def load(self, saved: dict[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""
