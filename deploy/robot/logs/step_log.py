"""Steps of a robot for a learner: a file that grows, written on the robot and read by another process meanwhile.

    robo-rl steps 1\\n      then one line of JSON: the contract's digest, and how many numbers a frame has
    frame, frame, …         each of the same size, little-endian

A frame is what one control step was: its number, its time, who commanded, which policy there was, all signals, the
policy's memory before the step, and the command that was sent. The frame after the last step of an episode has the flag
``LAST``: what came of that step, and how the episode ended. Each frame ends with a digest of itself and of the frame
before, so that no reader takes a frame that was half written, changed, or left out. Nothing is pickled.

A process that is killed leaves a file that ends in a whole frame or in a part of one, which readers never take; the
next one writes another file.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import stat
import threading
from collections import deque
from collections.abc import Callable
from enum import IntFlag
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robo_rl.contract import Contract

NAME = re.compile(r"steps-([0-9]{1,9})\.log")
MOST_FILES = 10**9 - 1
MAGIC = b"robo-rl steps 1\n"
DIGEST = 16
"""Bytes of BLAKE2b at the end of a frame."""
EVERY = 0.2
"""s after which frames are brought to the disk."""
MOST_WAITING = 100_000
"""Frames that may wait for the disk."""
HEAD_BYTES = 1000
MOST_READ = 1 << 26
"""Bytes that are read at a time."""


class StepLogError(ValueError):
    """A file can't be read or written. The message names it."""


class Flag(IntFlag):
    """What a frame tells beside numbers."""

    NONE = 0
    OPERATOR = 1
    """The operator had the robot in this step; else the policy."""
    LAST = 2
    """No step any more: the signals and the memory after the last one of an episode. There is no command."""
    SUCCEEDED = 4
    FAILED = 8
    LIMITED = 16
    """The gate sent another command than was proposed, such as one at the rate limit."""


class Sizes(NamedTuple):
    """How many float32 a frame has."""

    signals: int
    memory: int
    commands: int

    @classmethod
    def of(cls, contract: Contract) -> Sizes:
        """Those of a contract."""
        signals, commands = sum(s.size for s in contract.signals), sum(c.size for c in contract.commands)
        return cls(signals, contract.state_size, commands)

    @property
    def frame(self) -> np.dtype:
        """The layout of a frame."""
        fields = [
            ("number", "<u8"), ("time", "<i8"), ("flags", "<i8"), ("policy", "S8"), ("signals", "<f4", self.signals),
            ("memory", "<f4", self.memory), ("command", "<f4", self.commands), ("digest", f"V{DIGEST}"),
        ]  # fmt: skip
        return np.dtype(fields)


def meaning(contract: Contract) -> str:
    """Digest of what the numbers of a contract mean: of all but where its policy comes from."""
    told = json.loads(contract.to_json())
    del told["provenance"]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _chained(before: bytes, frame: bytes) -> bytes:
    return hashlib.blake2b(before + frame, digest_size=DIGEST).digest()


class StepWriter:
    """The robot's end. ``add`` takes microseconds; a thread writes."""

    def __init__(self, folder: Path, contract: Contract, on_failure: Callable[[str], None]) -> None:
        """Begins the next file in ``folder``. ``on_failure`` hears, once, why nothing more can be written."""
        self._on_failure = on_failure
        self._layout = Sizes.of(contract).frame
        head = json.dumps({"contract": meaning(contract), "sizes": Sizes.of(contract)}).encode() + b"\n"
        self.path, self._file = _next_file(folder)
        self._chain = hashlib.blake2b(head, digest_size=DIGEST).digest()
        self._file.write(MAGIC + head)
        self._waiting: deque[bytes] = deque()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="step log", daemon=True)
        self._thread.start()

    def add(
        self, number: int, time: int, flags: Flag, policy: str, signals: np.ndarray, memory: np.ndarray,
        command: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """A frame. ``time`` in µs; ``policy``: the digest of its bundle; no command in a frame that is the last."""
        frame = np.zeros((), self._layout)
        frame["number"], frame["time"], frame["flags"], frame["policy"] = number, time, int(flags), policy[:8].encode()
        frame["signals"], frame["memory"] = signals, memory
        if command is not None:
            frame["command"] = command
        body = frame.tobytes()[:-DIGEST]
        self._chain = _chained(self._chain, body)
        self._waiting.append(body + self._chain)

    def _run(self) -> None:
        try:
            while not self._closing.wait(EVERY):
                self._write()
                if len(self._waiting) > MOST_WAITING:
                    raise OSError(f"{len(self._waiting)} frames wait for the disk")
            self._write()
        except OSError as error:
            self._on_failure(f"{self.path}: {error.strerror or error}")

    def _write(self) -> None:
        frames = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if frames:
            self._file.write(b"".join(frames))
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write what waits, and end."""
        self._closing.set()
        self._thread.join()
        self._file.close()


def _next_file(folder: Path) -> tuple[Path, io.FileIO]:
    folder.mkdir(parents=True, exist_ok=True)
    number = max(map(_number, files(folder)), default=0)
    while True:
        number = number % MOST_FILES + 1  # a name with the last number was planted
        path = folder / f"steps-{number:06d}.log"
        try:
            return path, path.open("xb", buffering=0)
        except FileExistsError:
            continue


def files(folder: Path) -> list[Path]:
    """The files of a folder, the oldest first."""
    found = [path for path in folder.glob("steps-*.log") if NAME.fullmatch(path.name)]
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _regular(path: Path) -> io.BufferedReader:
    """A file that is opened to be read, unless it is a pipe, a device, a link or a folder: StepLogError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StepLogError(f"{path}: it is a link; expected a file of its own") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StepLogError(f"{path}: it is not a regular file; expected one that a robot writes")
    return os.fdopen(descriptor, "rb")


class StepReader:
    """The learner's end: what has been added to one file since it was asked last."""

    def __init__(self, path: Path, contract: Contract) -> None:
        """StepLogError where the file is of another robot, task or layout."""
        self.path, self._layout = path, Sizes.of(contract).frame
        self._wanted, self._sizes = meaning(contract), Sizes.of(contract)
        self._place, self._chain = 0, b""
        self.damage = ""
        """Why nothing more is read, a sentence; "" while all is well."""
        self.left_out = 0
        """Damaged frames that were read over."""

    def new(self, over_damage: bool = False) -> np.ndarray:
        """(s,) frames, each checked, of at most ``MOST_READ`` bytes. Those before a damaged one are good.

        After that, nothing is read but ``over_damage``: then damaged frames are left out, and others go on. Each frame
        tells of the one before it by the digest there, so that it can be checked without the rest of that one.
        """
        if self.damage and not over_damage:
            return np.zeros(0, self._layout)
        self.damage = ""
        with _regular(self.path) as file:
            if self._place == 0 and not self._begin(file.readline(len(MAGIC)), file.readline(HEAD_BYTES)):
                return np.zeros(0, self._layout)
            file.seek(self._place)
            data = file.read(MOST_READ)
        size = self._layout.itemsize
        read, kept = 0, []
        for start in range(0, len(data) - size + 1, size):
            body, digest = data[start : start + size - DIGEST], data[start + size - DIGEST : start + size]
            if _chained(self._chain, body) == digest:
                kept.append(body + digest)
            else:
                self.damage = f"{self.path}: damaged at byte {self._place + start}; what comes after it is left out"
                if not over_damage:
                    break
                self.left_out += 1
            self._chain, read = digest, start + size
        self._place += read
        if over_damage:
            self.damage = ""
        return np.frombuffer(b"".join(kept), self._layout)

    def _begin(self, magic: bytes, head: bytes) -> bool:
        """Read the head; whether it is there by now."""
        if not MAGIC.startswith(magic):
            raise StepLogError(f"{self.path}: it begins with {magic!r}; expected {MAGIC!r}")
        if magic != MAGIC or not head.endswith(b"\n"):
            if len(head) == HEAD_BYTES:
                raise StepLogError(f"{self.path}: its first line is longer than {HEAD_BYTES} bytes")
            return False
        try:
            told = json.loads(head)
            found = told["contract"], tuple(told["sizes"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StepLogError(f"{self.path}: its first line can't be read ({error}); expected JSON") from None
        if found != (self._wanted, self._sizes):
            raise StepLogError(
                f"{self.path}: recorded under another contract, {str(found)[:120]}; expected {self._wanted[:12]}… with "
                f"{tuple(self._sizes)} numbers: steps of another task or robot can't be learnt from"
            )
        self._chain = hashlib.blake2b(head, digest_size=DIGEST).digest()
        self._place = len(magic) + len(head)
        return True
