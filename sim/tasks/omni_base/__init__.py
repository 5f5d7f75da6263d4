"""Tasks of omnidirectional bases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.tasks import Task


def tasks() -> tuple[type[Task], ...]:
    """All of them."""
    from sim.tasks.omni_base.navigate import OmniNav

    return (OmniNav,)
