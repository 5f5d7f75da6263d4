"""A policy's graph in a process of its own: whatever it does there, this process goes on.

    policy = Policy.load("policy.onnx", 100, isolate=True)

A graph that hangs, even with Python's global lock in its hand, that is killed for memory or crashes the interpreter
takes nothing else with it. The step that waits for it gets SignalError when that process ends, which it does by itself
after ``PATIENCE``; until then the watchdog makes the robot's steps. The price is a change of process and back in every
step: docs/safety.md has figures.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.runtime import BoundGraph, SignalError
from robo_rl.files import interpreter

PATIENCE = 5.0
"""s that a step may take before its process ends itself."""
READY, ANSWER, REFUSAL = b"r", b"a", b"x"


class IsolatedGraph:
    """Runs a bundle's graph as ``BoundGraph`` does, in another process."""

    def __init__(self, bundle: Bundle, command: Sequence[str] = ()) -> None:
        """``command``: what that process runs in place of this module."""
        contract = bundle.contract
        self._signals = [(s.name, s.dimensions) for s in contract.signals]
        sizes = [command.size for command in contract.commands]
        self._ends, self._names = np.cumsum(sizes), [command.name for command in contract.commands]
        self._answer = np.zeros(sum(sizes) + contract.state_size, np.float32)
        (theirs, self._to), (self._from, ours) = os.pipe(), os.pipe()
        python = interpreter.program(*command) if command else interpreter.module(__name__)
        words = [*python, str(theirs), str(ours), str(bundle.path), bundle.digest]
        self._process = subprocess.Popen(
            words, pass_fds=(theirs, ours), stdin=subprocess.DEVNULL, env=interpreter.environment()
        )
        os.close(theirs)
        os.close(ours)
        if self._read(1) != READY:
            raise SignalError(f"{bundle.path}: the process for it did not start")

    def run(self, signals: Mapping[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """As ``BoundGraph.run``; SignalError, too, when the process has ended."""
        given = [np.asarray(signals[name], np.float32).reshape(-1) for name, _ in self._signals]
        try:
            _write(self._to, np.concatenate([*given, state[0]]).tobytes())
            kind = self._read(1)
            if kind == REFUSAL:
                raise SignalError(self._read(int.from_bytes(self._read(4), "little")).decode(errors="replace"))
            data = self._read(self._answer.nbytes) if kind == ANSWER else b""
        except OSError:
            data = b""
        if not data:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=0.01)
            raise SignalError(f"the policy's process has ended (code {self._process.returncode})")
        flat = np.frombuffer(data, np.float32).copy()
        *commands, following = np.split(flat, self._ends)
        return dict(zip(self._names, commands, strict=True)), following[None]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for end in (self._to, self._from):
            os.close(end)

    def _read(self, size: int) -> bytes:
        return _read(self._from, size)


def _read(source: int, size: int) -> bytes:
    """All of so many bytes; b"" when the other end is closed."""
    data = os.read(source, size)
    while data and len(data) < size:
        more = os.read(source, size - len(data))
        if not more:
            return b""
        data += more
    return data


def _write(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


def main(arguments: Sequence[str]) -> None:
    """The other process: run the graph of a bundle on whatever comes, until nothing comes any more."""
    source, to = map(int, arguments[:2])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the robot's process decides when this one ends
    _yield_to_the_robot()
    bundle = Bundle.read(Path(arguments[2]), tried=arguments[3], expected=arguments[3])
    serve(source, to, bundle)


def serve(source: int, to: int, bundle: Bundle) -> None:
    """Answer signals and state on one pipe with commands and state on the other."""
    contract, graph = bundle.contract, BoundGraph(bundle)
    ends = np.cumsum([signal.size for signal in contract.signals])
    size = 4 * (int(ends[-1]) + contract.state_size)
    _write(to, READY)
    while data := _read(source, size):
        *values, state = np.split(np.frombuffer(data, np.float32), ends)
        signals = {s.name: value.reshape(s.dimensions) for s, value in zip(contract.signals, values, strict=True)}
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)  # SIGALRM ends a process, whatever it is at
        try:
            commands, following = graph.run(signals, state[None])
            flat = np.concatenate([*(commands[c.name] for c in contract.commands), following[0]], dtype=np.float32)
            answer = ANSWER + flat.tobytes()
        except Exception as error:  # the robot's process turns it into its own
            text = str(error).encode()[:1000]
            answer = REFUSAL + len(text).to_bytes(4, "little") + text
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(to, answer)


def _yield_to_the_robot() -> None:
    """One step below the robot's process where that has real-time priority: a graph that spins must not keep it out."""
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        priority = os.sched_getparam(0).sched_priority
        os.sched_setscheduler(0, os.sched_getscheduler(0), os.sched_param(max(1, priority - 1)))


if __name__ == "__main__":
    main(sys.argv[1:])
