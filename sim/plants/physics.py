"""How an engine computes: time step, solver, contacts. A task chooses; the defaults are fast, for walking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

LONGEST_DELAY = 0.06
"""s, of a target on its way to the motors: room for it is kept in every environment's state."""

CHOICES = {
    "solver": ("newton", "cg", "pgs"),
    "cone": ("pyramidal", "elliptic"),
    "contacts": ("points", "all", "self", "model"),
    "condim": (None, 1, 3, 4, 6),
    "integrator": ("implicitfast", "implicit", "euler", "rk4"),
    "jacobian": ("dense", "sparse", "auto"),
}


@dataclass(frozen=True)
class Physics:
    """Choices of a simulation by MuJoCo. Bullet has its own, and takes from here only what can touch what."""

    timestep: float = 0.01
    """s; a control period must be a whole number of them."""
    solver: str = "newton"
    """newton, cg or pgs."""
    cone: str = "pyramidal"
    """pyramidal or elliptic friction cones. Pyramidal ones are fast; in them whatever is held slides slowly."""
    contacts: str = "points"
    """What of the robot can touch ground and objects: its contact points alone, or all shapes; all shapes, and one
    another too (self); what the model file says (model: its contype and conaffinity)."""
    tolerance: float = 1e-6
    """At which the solver stops, as a part of the model's scale (MuJoCo's own choice is 1e-8)."""
    impratio: float = 1.0
    """How much harder friction is than the normal force, in elliptic cones: 100 holds what is grasped."""
    condim: int | None = None
    """1 no friction, 3 sliding, 4 also turning about the normal, 6 also rolling, in every contact. None: 3 on ground
    and objects, else as the model file has it."""
    solref: tuple[float, float] | None = None
    """Time constant (s, at least two steps) and damping ratio of every contact; None: as the model file has it."""
    solimp: tuple[float, float, float, float, float] | None = None
    """Impedance of every contact, as MuJoCo's; None: as the model file has it."""
    noslip: int = 0
    """Iterations of the solver that takes out what slip is left."""
    integrator: str = "implicitfast"
    """implicitfast, implicit, euler or rk4."""
    jacobian: str = "dense"
    """dense, sparse or auto. The Newton solver of MuJoCo 4.0.0 has a wrong Hessian where it is sparse (mujoco#3767)."""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value: Any = getattr(self, name)
            if value not in choices:
                raise ValueError(f"physics: {name} is {value!r}; expected one of {choices}")
        if self.solref is not None and 0 < self.solref[0] < 2 * self.timestep:
            raise ValueError(
                f"physics: the contacts' time constant is {self.solref[0]:g} s; expected at least two time steps, "
                f"{2 * self.timestep:g} s"
            )


GRASP = Physics(
    timestep=0.005, cone="elliptic", impratio=100.0, condim=4, solref=(0.01, 1.0), contacts="all", tolerance=1e-8
)
"""Holds what two fingers grasp, at rest; what is swung in them needs 2 ms steps and half the time constant."""


def substeps(period: float, timestep: float) -> int:
    """Physics steps of ``timestep`` (s) per control period (s)."""
    count = round(period / timestep)
    if count < 1 or not math.isclose(count * timestep, period, rel_tol=1e-6):
        raise ValueError(f"the control period is {period:g} s; expected a multiple of {timestep:g} s")
    return count
