"""What a robot is sent when the program that commands it falls silent, by a process that outlives it.

python -m robo_rl.deploy.robot.drivers.deadman SOCKET PORT ORDER…     (descriptors; the orders in hexadecimal)

For robots on a serial line that would go on for a while. The process has the line open, but writes nothing as long as
the program tells it by any byte that it is alive. After ``PATIENCE`` of silence, or the program's end, it sends the
orders, again and again for ``LINGER``, and tells the program so. It does not listen to the program any more then.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Protocol

from robo_rl.files import interpreter

PATIENCE, PERIOD, LINGER = 0.1, 0.02, 3.0
"""s of silence, s between orders, and s of orders."""
ALIVE, LEAVE = b"a", b"q"
"""To the process."""
FIRED = b"f"
"""From it."""


class Deadman(Protocol):
    """The program's end."""

    fired: bool
    """Whether it has taken the robot over: the session is over."""

    def beat(self) -> None:
        """The program is alive. The first one starts the watch."""

    def leave(self) -> None:
        """The robot is passive: nothing is to be watched any more."""

    def close(self) -> None:
        """The program goes, or hangs. Where it was not told to leave, the orders are sent. From any thread."""


class DeadmanProcess:
    """The process, and the program's end of it."""

    def __init__(self, port: int, orders: Sequence[bytes]) -> None:
        """``port``: the line's file descriptor."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self.fired = False
        self.process = subprocess.Popen(
            interpreter.module(__name__, str(theirs.fileno()), str(port), *(order.hex() for order in orders)),
            pass_fds=[theirs.fileno(), port], start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, env=interpreter.environment(),
        )  # fmt: skip
        theirs.close()
        ready, _, _ = select.select([self._socket], [], [], 20.0)  # it says that it is there
        if not ready or not self._socket.recv(1):
            raise OSError("the process that watches over this program did not start")

    def beat(self) -> None:
        """See ``Deadman``."""
        self._tell(ALIVE)
        try:
            self.fired = self.fired or self._socket.recv(1) in (FIRED, b"")
        except BlockingIOError:
            pass
        except OSError:
            self.fired = True

    def leave(self) -> None:
        """See ``Deadman``."""
        self._tell(LEAVE)

    def close(self) -> None:
        """See ``Deadman``."""
        self._socket.close()
        self.fired = True

    def _tell(self, what: bytes) -> None:
        try:
            self._socket.send(what)
        except BlockingIOError:
            pass
        except OSError:  # it has ended, or this end is closed
            self.fired = True


def main() -> int:
    """Until the program is gone, and the orders were sent if they were needed."""
    program, port = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    orders = b"".join(bytes.fromhex(order) for order in sys.argv[3:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends when its work is done
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    program.send(ALIVE)
    watching = False
    while True:
        ready, _, _ = select.select([program], [], [], PATIENCE if watching else None)
        said = b"" if not ready else _heard(program)
        if said == ALIVE:
            watching = True
        elif said == LEAVE:
            watching = False
        elif not watching:
            return 0
        else:
            break
    with contextlib.suppress(OSError):
        program.send(FIRED)
    end = time.monotonic() + LINGER
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            os.write(port, orders)
        time.sleep(PERIOD)
    return 0


def _heard(program: socket.socket) -> bytes:
    """One byte; b"" when the program has ended."""
    try:
        return program.recv(1)
    except OSError:
        return b""


if __name__ == "__main__":
    sys.exit(main())
