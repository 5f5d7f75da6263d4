"""The recorder: a separate process, so that no disk can delay the control loop.

    recorder = Recorder(path, bundle, on_failure=lambda reason: …)
    recorder.note(step)        # a few microseconds: into a pipe, never waiting
    recorder.close()

The recording process ends the file properly when the pipe closes, also when the controlling process was killed. When
it can't write (the disk is full) it says so, once, through ``on_failure``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import COUNTED, GATE_FIELDS, LogError, LogWriter, StepRecord
from robo_rl.files import interpreter

PIPE_BYTES = 1 << 20
MOST_PENDING = 1 << 23
"""Bytes that may wait for the recording process before the recorder counts as failed."""
START_TIME = 30.0
"""s that the recording process may take to open its file."""
TOLD = tuple(name for name in GATE_FIELDS if name not in COUNTED)
_HEAD = struct.Struct(f"<IqqBII{len(TOLD)}d")


class Recorder:
    """The end of the pipe that the control loop holds."""

    def __init__(self, path: Path, bundle: Bundle, *others: Bundle, on_failure: Callable[[str], None]) -> None:
        """Starts recording into the new file ``path``; raises LogError if that is not possible.

        ``others`` are the bundles that ``bundle`` may take turns with, in the order of their numbers.
        """
        self.path, self._on_failure = path, on_failure
        self._closing = self._failed = False
        self._count = 0
        self._process = subprocess.Popen(
            interpreter.module(__name__, str(path)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            start_new_session=True, env=interpreter.environment(),
        )  # fmt: skip
        assert self._process.stdin is not None
        self._pipe = self._process.stdin.fileno()
        about = {"digest": bundle.digest, "bundle": bundle.path.name, "wall": str(time.time_ns())}
        if others:
            about["digests"] = " ".join(one.digest for one in (bundle, *others))
        first = json.dumps({"contract": bundle.contract.to_json(), "about": about}).encode()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(struct.pack("<I", len(first)) + first)
        self._await_start()
        with contextlib.suppress(OSError):  # a larger pipe is a comfort, not a need
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(self._pipe, False)
        self._pending = bytearray()
        self._watcher = threading.Thread(target=self._watch, name="recorder", daemon=True)
        self._watcher.start()

    def _await_start(self) -> None:
        timer = threading.Timer(START_TIME, self._process.kill)
        timer.start()
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode(errors="replace").strip()
        timer.cancel()
        if line != "ready":
            self._process.wait()
            raise LogError(f"{self.path}: the recorder can't start: {line or 'it ended at once'}")

    def _watch(self) -> None:
        """Report why the recording process ended, if it was not closed."""
        assert self._process.stdout is not None
        said = self._process.stdout.read().decode(errors="replace").strip()
        code = self._process.wait()
        if not self._closing:
            self._fail(said or f"its process ended with {code}")

    def _fail(self, reason: str) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(reason)

    def note(self, step: StepRecord) -> None:
        """Hand a step to the recording process, without waiting for it."""
        if self._failed:
            return
        self._count += 1
        self._pending += pack(step, self._count)
        try:
            written = os.write(self._pipe, self._pending)
        except BlockingIOError:
            written = 0
        except OSError:
            return  # the watcher tells why
        del self._pending[:written]
        if len(self._pending) > MOST_PENDING:
            self._fail(f"it fell behind by {MOST_PENDING >> 20} MB")

    def close(self) -> None:
        """End the recording; the file is whole after that."""
        self._closing = True
        with contextlib.suppress(OSError):
            os.set_blocking(self._pipe, True)
            while self._pending:
                del self._pending[: os.write(self._pipe, self._pending)]
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def pack(step: StepRecord, number: int = 0) -> bytes:
    """A step as one frame: lengths and times, which arrays there are, its number, then all numbers."""
    optional = (step.proposed, step.command, step.fallback)
    present = sum(1 << i for i, array in enumerate(optional) if array is not None)
    arrays = [step.signals, step.memory, step.sent, *(array for array in optional if array is not None)]
    body = b"".join(
        [
            *(np.asarray(array, "<f4").tobytes() for array in arrays),
            np.array(step.stamps, "<i8").tobytes(),
            step.sentence.encode(),
        ]
    )
    told = (float(step.gate.get(name, 0)) for name in TOLD)
    head = _HEAD.pack(
        _HEAD.size + len(body), step.time, step.wall, present, len(step.memory), number & 0xFFFFFFFF, *told
    )
    return head + body


def unpack(frame: bytes, contract: Contract) -> StepRecord:
    """The step in a frame."""
    _, at, wall, present, remembered, number, *told = _HEAD.unpack_from(frame)
    place = _HEAD.size
    signals, commands = sum(s.size for s in contract.signals), sum(c.size for c in contract.commands)

    def take(count: int, kind: str = "<f4") -> np.ndarray:
        nonlocal place
        array = np.frombuffer(frame, kind, count, place)
        place += array.nbytes
        return array

    seen, memory, sent = take(signals), take(remembered), take(commands)
    proposed, command, fallback = (take(commands) if present >> i & 1 else None for i in range(3))
    stamps = tuple(int(x) for x in take(len(contract.signals), "<i8"))
    gate = dict(zip(TOLD, told, strict=True))
    sentence = frame[place:].decode()
    return StepRecord(at, wall, seen, stamps, memory, proposed, command, fallback, sent, gate, sentence, number)


def main(path: str) -> int:
    """The recording process: frames from standard input into the file, until the pipe closes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends when the other end does
    source = sys.stdin.buffer
    try:
        (size,) = struct.unpack("<I", source.read(4))
        first = json.loads(source.read(size))
        contract = Contract.from_json(first["contract"])
        writer = LogWriter(Path(path), contract, first["about"])
        print("ready", flush=True)
        while len(head := source.read(4)) == 4:
            rest = source.read(int.from_bytes(head, "little") - 4)
            frame = head + rest
            if len(frame) < int.from_bytes(head, "little"):
                break  # cut off in the middle of a frame
            writer.write(unpack(frame, contract))
        writer.close()
    except OSError as error:
        print(f"{error.strerror}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
