"""Plants: what policies control, n at a time, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    import mujoco

    from robo_rl.sim.plants.indices import ModelIndices


@runtime_checkable
class Plant(Protocol):
    """n simulated robots with state and parameters, stepped in place at one control rate.

    Robots that a push can move have ``push(ids, velocity)``, too: it changes the velocity of the bases of the robots
    ``ids`` by ``velocity`` (3,) m/s, world; the live page asks for it.
    """

    n: int
    nominal: Any
    """The parameters that the robot's card gives, a named tuple of tensors (1, …)."""
    parameters: Any
    """The parameters now: (n, …) where they differ between robots, else (1, …)."""

    @property
    def dynamics(self) -> Callable[..., Any] | None:
        """The state one control period later, as a pure function of state, commands and parameters, or None.

        A plant that has one has its state in ``current``, a named tuple of live tensors (n, …).
        """

    def param(self, name: str) -> Tensor:
        """A live view (n, …) of a physical parameter: what is written into it holds from the next step on."""

    def refresh(self, ids: Tensor) -> None:
        """Compute what follows from the parameters of the robots ``ids`` (m,), after writing to them."""

    def truth(self) -> dict[str, Tensor]:
        """Every physical quantity by name, live views (n, …)."""

    def state(self, ids: Tensor) -> Any:
        """Copies of the states of the robots ``ids`` (m,), a named tuple: all that their future depends on, besides
        parameters."""

    def set_state(self, ids: Tensor, state: Any) -> None:
        """Put the robots ``ids`` (m,) into states that ``state`` gave, here or in another plant like this."""

    def step(self, commands: Mapping[str, Tensor]) -> None:
        """One control period under ``commands`` (n, k), held constant."""

    def drawing(self) -> mujoco.MjModel:
        """A model of one robot with everything that can be seen, its ground and objects included."""

    def poses(self, ids: Tensor) -> np.ndarray:
        """(m, bodies, 7) m and quaternion x, y, z, w: in the world, of every body of ``drawing`` but the world."""

    def save(self) -> dict[str, Tensor]:
        """All that changes, for a checkpoint."""

    def load(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from ``save``, bit by bit."""


class Articulated(Plant, Protocol):
    """Robots with joints, simulated by an engine: what tasks of legs and of arms need of a plant."""

    @property
    def model(self) -> mujoco.MjModel:
        """One robot with its objects and its ground."""

    @property
    def indices(self) -> ModelIndices:
        """What is where in ``model``."""

    @property
    def height(self) -> float:
        """m, of a free base above level ground when the robot stands with its joints at home."""

    def push(self, ids: Tensor, velocity: Tensor) -> None:
        """Change the velocity of the bases of the robots ``ids`` by ``velocity`` (3,) m/s, world."""

    def place(self, ids: Tensor, *parts: Tensor, **named: Tensor) -> None:
        """Put the robots ``ids`` (m,) at rest where ``parts`` or ``named`` quantities (m, …) say, see
        ``robo_rl.sim.plants.articulated``."""


def completed(plant: Any) -> Any:
    """A user's plant with what it may leave out: ``dynamics``, and a ``refresh`` that has nothing to do."""
    for name, default in (("dynamics", None), ("refresh", lambda ids: None)):
        if not hasattr(plant, name):
            setattr(plant, name, default)
    return plant
