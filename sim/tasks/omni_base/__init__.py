"""Tasks of omnidirectional bases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robo_rl.sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from robo_rl.sim.tasks.omni_base.navigate import OmniNav

    return (OmniNav,)
