"""Where a policy's task is, for hints, and what is made of it goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from robo_rl.zoo import PREFIX

if TYPE_CHECKING:
    from robo_rl.deploy.robot.bundle import Bundle


def inside(bundle: Bundle) -> str:
    """ " --task inside" where the task is a program that the bundle brings, else nothing."""
    from robo_rl.deploy.robot.bundle.attachment import INSIDE

    return f" --task {INSIDE}" if bundle.attached.source_digest else ""


def derived(file: Path, ending: str) -> Path:
    """The name of what is made of a policy's file: beside it, or, of the zoo's policies, in this folder."""
    name = str(file)
    return (
        Path(f"{name.removeprefix(PREFIX)}{ending}") if name.startswith(PREFIX) else file.with_name(file.stem + ending)
    )
