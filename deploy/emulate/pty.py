"""An emulated robot behind a pseudo-terminal, in real time: any program opens it as it would a serial port."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
import tty
from collections.abc import Callable

AT_ONCE = 4096
LONGEST = 0.1
"""s that the robot moves on at once: after a pause of this computer it does not jump."""


def serve(
    announce: Callable[[str], None], exchange: Callable[[bytes], bytes], advance: Callable[[float], None], tick: float,
    seconds: float = float("inf"),
) -> None:  # fmt: skip
    """Answer what comes on a new pseudo-terminal, whose path is announced, for some seconds.

    Who opens it may close it, or die, and another one open it. OSError of ``exchange``: the cable was pulled.
    """
    ours, theirs = os.openpty()
    tty.setraw(theirs)  # ours to hold open, so that the last one who closes it does not end the line
    announce(os.ttyname(theirs))
    begun = last = time.monotonic()
    try:
        while last - begun < seconds:
            ready, _, _ = select.select([ours], [], [], tick)
            now = time.monotonic()
            advance(min(now - last, LONGEST))
            last = now
            if ready and (answer := exchange(_read(ours))):
                with contextlib.suppress(BlockingIOError):
                    os.write(ours, answer)
    finally:
        os.close(ours)
        os.close(theirs)


def _read(file: int) -> bytes:
    try:
        return os.read(file, AT_ONCE)
    except OSError as error:
        if error.errno != errno.EIO:  # nobody has it open
            raise
        return b""
