"""A kind of robot of one's own: a cart on a track, with a pole that swings on it. The card, and what a contract tells.

Nothing of robo-rl knows this kind. The task in ``balance.py`` names it, and every command takes the task's path.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from robo_rl.contract import Actuator, Robot
from robo_rl.sim.robots.figures import figure, require

UNITS = {
    "cart_mass": "kg",
    "pole_mass": "kg",
    "pole_length": "m",
    "friction": "N*s/m",
    "force": "N",
    "track": "m",
}
"""The figures of a card and the one unit that each may have."""


@dataclass(frozen=True)
class CartPoleCard:
    """Figures of a cart with a pole, in SI units."""

    kind: ClassVar[str] = "cartpole"
    name: str
    title: str
    cart_mass: float
    """kg, without the pole."""
    pole_mass: float
    """kg, of a slender rod."""
    pole_length: float
    """m, from the pivot to the pole's centre of mass: half of its length."""
    friction: float
    """N s/m, of the cart on its track."""
    force: float
    """N, the greatest of the motor in either direction."""
    track: float
    """m, from the middle of the track to either end."""
    sources: dict[str, str]

    def facts(self) -> Robot:
        """What a contract tells about this robot."""
        motor = Actuator("cart", "effort", "N", -self.force, self.force, safe=0.0)
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name in UNITS}
        return Robot(self.name, self.kind, (motor,), own)

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance."""
        return {"mass_kg": self.cart_mass + self.pole_mass, "pole_m": 2 * self.pole_length, "force_n": self.force}

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: none."""
        return ()

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> CartPoleCard:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        where = str(path)
        for key in card:
            known = sorted({"kind", "title", *UNITS})
            require(key in known, where, key, "an unknown field", f"one of {known}")
        figures = {key: figure(card.get(key), key, unit, 1, where)[0] for key, unit in UNITS.items()}
        for key, value in figures.items():
            require(value > 0, where, f"{key}.value", value, "a positive number")
        require(isinstance(card.get("title"), str), where, "title", card.get("title"), "a text")
        sources = {key: str(card[key]["source"]) for key in UNITS}
        return cls(name=name, title=card["title"], sources=sources, **figures)
