"""An emulated vehicle with PX4 in real time: it sends to a port of this computer, as PX4 does, and like PX4 keeps the
first address that it hears from for as long as it runs (mavlink_receiver.cpp).
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

from robo_rl.deploy.emulate.px4 import TICK
from robo_rl.deploy.emulate.px4.wire import PilotWire

LONGEST = 0.1
"""s that it moves on at once: after a pause of this computer it does not jump."""
DATAGRAM = 65535


def serve(wire: PilotWire, port: int, each: Callable[[float], None], seconds: float = float("inf")) -> None:
    """For some seconds; ``each(s)`` is called with the time since then."""
    begun = last = time.monotonic()
    left = 0.0
    peer: tuple[str, int] | None = None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.1", 0))
        line.settimeout(TICK)
        while last - begun < seconds:
            came: list[bytes] = []
            with contextlib.suppress(OSError):  # nothing came, nobody listens, or the line is gone
                data, sender = line.recvfrom(DATAGRAM)
                peer = peer or sender
                came = wire.send(data) if sender == peer else []
            now = time.monotonic()
            left += min(now - last, LONGEST)
            last = now
            each(now - begun)
            while left >= TICK:
                left -= TICK
                came += wire.advance()
            for message in came:
                line.sendto(message, peer or ("127.0.0.1", port))
