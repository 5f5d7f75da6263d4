"""An emulated Crazyflie in real time: a port of this computer, where cflib expects a simulated one."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

from robo_rl.deploy.emulate.crazyflie import TICK
from robo_rl.deploy.emulate.crazyflie.wire import RadioWire
from robo_rl.files.ports import opening

LONGEST = 0.1
"""s that it moves on at once: after a pause of this computer it does not jump."""
DATAGRAM = 65535
LEFT = 3.0
"""s of silence after which another client may have the link."""


def serve(
    wire: RadioWire, port: int, each: Callable[[float], None], seconds: float = float("inf"),
    announce: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """For some seconds; ``each(s)`` is called with the time since then, ``announce()`` once it listens.

    It answers one client, until that has sent nothing for ``LEFT``: a radio has one owner.
    """
    begun = last = time.monotonic()
    left = 0.0
    peer: tuple[str, int] | None = None
    heard = begun
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        with opening(port, "give another one by --port"):
            line.bind(("127.0.0.1", port))
        announce()
        line.settimeout(TICK)
        while last - begun < seconds:
            came: list[bytes] = []
            with contextlib.suppress(OSError):  # nothing came, nobody listens, or the radio is pulled out
                data, sender = line.recvfrom(DATAGRAM)
                if sender == peer or time.monotonic() - heard > LEFT or peer is None:
                    peer, heard = sender, time.monotonic()
                    came = wire.send(data)
            now = time.monotonic()
            left += min(now - last, LONGEST)
            last = now
            each(now - begun)
            while left >= TICK:
                left -= TICK
                came += wire.advance()
            for packet in came:
                with contextlib.suppress(OSError):
                    if peer is not None:
                        line.sendto(packet, peer)
