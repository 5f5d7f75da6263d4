"""Between a program and the keeper of a robot's command topic: one socket pair, one packet per message.

The first byte says what it is. To the keeper: E and C with a LowCmd_ (enable; follow), D (damp), Q (send nothing more),
R with JSON [api_id, parameter] (a request to the motion switcher). From it: S with the time (µs, monotonic) and a
LowState_, A with JSON [api_id, code, data] (the switcher's answer), K with JSON (``Status``), X with a sentence (it
can't work).
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import time
from typing import Protocol

from robo_rl.deploy.robot.drivers.serial_port import LONGEST
from robo_rl.deploy.robot.drivers.unitree.family import GO, Family
from robo_rl.deploy.robot.drivers.unitree.messages import MOTORS
from robo_rl.files import interpreter

BIGGEST = 8192
BUFFER = 1 << 20  # bytes
PACKETS = 1024
"""Of the keeper that are taken in one step."""


class Link(Protocol):
    """The program's end. Nothing waits."""

    def send(self, kind: bytes, data: bytes = b"") -> None:
        """A message to the keeper. OSError when it is gone."""

    def receive(self, timeout: float = 0.0) -> list[tuple[bytes, bytes]]:
        """Messages of the keeper; waits ``timeout`` s for the first. OSError when it is gone."""

    def close(self) -> None:
        """The program has no more to do with the robot."""


class KeeperProcess:
    """A keeper in a process and session of its own: what ends the program, ends it not."""

    def __init__(self, port: str, damp: bool = False, motors: int = MOTORS, family: Family = GO) -> None:
        """``damp``: it damps from the start, in place of one that died. ``motors`` are the robot's."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        for one in (self._socket, theirs):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        arguments = interpreter.module(f"{__package__}.keeper", str(theirs.fileno()), port, family.name, str(motors))
        self.process = subprocess.Popen(
            [*arguments, *(["damp"] if damp else [])], pass_fds=[theirs.fileno()], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=interpreter.environment(),
        )  # fmt: skip
        theirs.close()

    def send(self, kind: bytes, data: bytes = b"") -> None:
        """See ``Link``. A keeper that takes nothing is as good as gone: it damps by itself."""
        with contextlib.suppress(BlockingIOError):
            self._socket.send(kind + data)

    def receive(self, timeout: float = 0.0) -> list[tuple[bytes, bytes]]:
        """See ``Link``."""
        found: list[tuple[bytes, bytes]] = []
        if timeout:
            select.select([self._socket], [], [], timeout)
        end = time.monotonic() + LONGEST
        with contextlib.suppress(BlockingIOError):
            while len(found) < PACKETS and time.monotonic() < end:
                packet = self._socket.recv(BIGGEST)
                if not packet:
                    break
                found.append((packet[:1], packet[1:]))
            if not found:
                raise OSError("the keeper ended")
        return found

    def close(self) -> None:
        """See ``Link``."""
        self._socket.close()
