"""Ports of this computer that another program has already."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator


@contextlib.contextmanager
def opening(port: int, remedy: str) -> Iterator[None]:
    """ValueError, in place of the system's error, where ``port`` is taken.

    ``remedy``: what one can do, other than to end that program.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ValueError(
            f"port {port} is taken by another program, perhaps by the same command in another terminal; end that, "
            f"or {remedy}"
        ) from None
