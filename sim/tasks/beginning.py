"""What a project for a robot of one's own begins with: a task of the robot's kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robo_rl.contract.kinds import kinds_in, of_kind

if TYPE_CHECKING:
    from robo_rl.sim.robots import Card
    from robo_rl.sim.tasks import Task

PACKAGE = "robo_rl.sim.tasks"


@dataclass(frozen=True)
class Beginning:
    """A task to begin with."""

    task: type[Task]
    verb: str
    """What the robot does, in the names of a task of one's own: my-robot-hover."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Ranges, and what they are fixed to where the classical controller has to succeed."""


def beginning(card: Card) -> Beginning:
    """That of a card's kind: what ``beginning`` of the kind's folder in ``robo_rl.sim.tasks`` says.

    ValueError for a kind that has none.
    """
    found: Beginning | None = getattr(of_kind(PACKAGE, card.kind), "beginning", lambda card: None)(card)
    if found is None:
        known = [kind for kind in kinds_in(PACKAGE) if hasattr(of_kind(PACKAGE, kind), "beginning")]
        raise ValueError(f"robot '{card.name}' is of the kind '{card.kind}'; expected one of {known}")
    return found
