"""A test rig: an emulated board with devices on it, whose wire and whose time are in our hands.

    with Board(build_device(made, target, "rig", devices=3), target) as board:
        (answer,) = board.exchange([Request(device=0, data=bytes_on_the_wire, time=1_000)])

Beside the bytes of the wire the rig says what time it is, and reads what the actuators get. Time passes for a device
only when the rig says so: neither a slow emulator nor a busy computer changes what comes out. ``image/rig.c`` is the
other end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from robo_rl.deploy.build.c.device import Answer, Request
from robo_rl.deploy.build.firmware.emulator import Emulator
from robo_rl.deploy.build.firmware.targets import Target

AHEAD = 16  # requests that are sent before the first one's answer is read
RESTART = 0xFFFF
_REQUEST = struct.Struct("<qHHI")


class Board:
    """An emulated board that runs a rig's image. A context manager: it is powered off at the end."""

    def __init__(self, image: Path, target: Target, command_size: int) -> None:
        self._answer = struct.Struct(f"<II{4 * command_size}s")
        self._board = Emulator(image, target, serial=False)
        self._wire = self._board.wire
        try:
            self._read_answer()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Power off."""
        self._board.close()

    def restart(self) -> None:
        """Reset the processor: all devices restart, at time 0, after the self-test."""
        self._wire.write(_REQUEST.pack(0, RESTART, 0, 0))
        self._read_answer()

    def exchange(self, requests: Sequence[Request]) -> list[Answer]:
        """What devices answer, one after the other."""
        answers = []
        for start in range(0, len(requests), AHEAD):
            part = requests[start : start + AHEAD]
            self._wire.write(b"".join(_REQUEST.pack(r.time, r.device, 0, len(r.data)) + r.data for r in part))
            answers += [self._read_answer() for _ in part]
        return answers

    def _read_answer(self) -> Answer:
        size, enabled, motors = self._answer.unpack(self._wire.take(self._answer.size))
        return Answer(self._wire.take(size), np.frombuffer(motors, "<f4"), bool(enabled))


class Boards:
    """Several boards that run at the same time, with ``each`` devices on every one of them."""

    def __init__(self, boards: Sequence[Callable[[], Board]], each: int) -> None:
        """``boards`` power one on, each."""
        self._each, self._opened = each, ExitStack()
        try:
            self._boards = [self._opened.enter_context(power_on()) for power_on in boards]
            self._threads = self._opened.enter_context(ThreadPoolExecutor(len(boards)))
        except BaseException:
            self._opened.close()
            raise

    def __enter__(self) -> Boards:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def restart(self) -> None:
        """As ``Board.restart``."""
        for board in self._boards:
            board.restart()

    def exchange(self, requests: Sequence[Request]) -> list[Answer]:
        """As ``Board.exchange``."""
        parts: list[list[tuple[int, Request]]] = [[] for _ in self._boards]
        for place, request in enumerate(requests):
            board, device = divmod(request.device, self._each)
            parts[board].append((place, request._replace(device=device)))
        asked = self._threads.map(lambda board, part: board.exchange([r for _, r in part]), self._boards, parts)
        answers = zip((place for part in parts for place, _ in part), (a for part in asked for a in part), strict=True)
        return [answer for _, answer in sorted(answers, key=lambda pair: pair[0])]
