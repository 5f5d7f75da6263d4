"""Words for hints: what a command needs to find a policy's own task."""

from __future__ import annotations

from deploy.attachment import INSIDE
from deploy.bundle import Bundle


def inside(bundle: Bundle) -> str:
    """ " --task inside" where the task is a program that the bundle brings, else nothing."""
    return f" --task {INSIDE}" if bundle.attached.source_digest else ""
