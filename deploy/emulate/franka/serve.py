"""An emulated Franka in real time, on an address of this computer."""

from __future__ import annotations

import time
from collections.abc import Callable

from robo_rl.deploy.emulate.franka import TICK
from robo_rl.deploy.emulate.franka.wire import FrankaWire

PATIENCE = 0.5
"""s of real time that a tick waits for a command: neither side has a computer that keeps time, and a robot that is
gentler than a real one would stop for every other program."""


def serve(wire: FrankaWire, each: Callable[[float], None], seconds: float = float("inf")) -> None:
    """For some seconds; ``each(s)`` is called with the time since then."""
    begun = due = time.monotonic()
    while (now := time.monotonic()) - begun < seconds:
        each(now - begun)
        while due < now - TICK:  # a computer that is too slow loses states, but the robot's clock is right
            wire.station.server.skip_state()
            due += TICK
        wire.advance(PATIENCE)
        due += TICK
        time.sleep(max(0.0, due - time.monotonic()))
