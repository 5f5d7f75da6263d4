"""Start ``robo-rl`` by a fork of a process that has imported PyTorch and MuJoCo, which take most of a node's start."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

MODULES = (
    "numpy", "torch", "mujoco", "tyro", "robo_rl.cli", "robo_rl.commands.running.ros",
)  # fmt: skip
"""Imported before the fork. Those of ROS 2 and ONNX Runtime start threads, which a fork loses: they come after it."""
POSSIBLE = hasattr(os, "pidfd_open")
"""Whether this system tells a process's end by a file."""
PR_SET_PDEATHSIG = 1  # linux/prctl.h
LARGEST = 1 << 17
"""Bytes of a request: words and environment."""


class Started:
    """A process of ``start``, with those methods of subprocess.Popen that tests use."""

    def __init__(self, status: int) -> None:
        """``status`` is a file that tells the process's id, and its return code when it has ended."""
        self._status = os.fdopen(status, "rb", buffering=0)
        self.pid = self._read()
        self.returncode: int | None = None

    def _read(self) -> int:
        text = b""
        while not text.endswith(b"\n"):
            part = self._status.read(1)
            if not part:
                raise RuntimeError("the process that forks has ended")
            text += part
        return int(text)

    def wait(self, timeout: float | None = None) -> int:
        """The return code; raises subprocess.TimeoutExpired after ``timeout`` s."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = self._read()
            self._status.close()
        return self.returncode

    def poll(self) -> int | None:
        """The return code; None while the process runs."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)


def start(words: Sequence[str], out: int, env: Mapping[str, str], stdin: int | None = None) -> Started:
    """Run ``robo-rl`` with ``words`` as the first process of a new session; it dies with this process.

    ``out`` is a file for what it prints, ``env`` its whole environment, except what is read when Python starts.
    """
    ours, theirs = os.pipe()
    request = json.dumps({"words": list(words), "env": dict(env), "folder": os.getcwd()}).encode()
    assert len(request) <= LARGEST
    with open(os.devnull, "rb") as nothing:
        socket.send_fds(_forking(), [request], [theirs, nothing.fileno() if stdin is None else stdin, out])
    os.close(theirs)
    return Started(ours)


@functools.cache
def _forking() -> socket.socket:
    """The process that forks, one for each process of pytest; it ends with this connection."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # OpenBLAS would start threads
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# --- the process that forks --------------------------------------------------------------------------------------


def _next_command(requests: socket.socket) -> list[str] | None:
    """Fork for each request: the words of the command in the new process, and None when nobody asks any more."""
    running: dict[int, tuple[int, int]] = {}  # a file that tells its end: the process and where to tell it
    while True:
        for ready in select.select([requests.fileno(), *running], [], [])[0]:
            if ready != requests.fileno():
                pid, status = running.pop(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                _tell(status, code)
                os.close(status)
                os.close(ready)
                continue
            request, files, *_ = socket.recv_fds(requests, LARGEST, 3)
            if not request:
                return None
            if (pid := os.fork()) == 0:
                for file in (*running, *(status for _, status in running.values()), files[0]):
                    os.close(file)
                requests.close()
                return _become(json.loads(request), *files[1:])
            _tell(files[0], pid)
            running[os.pidfd_open(pid)] = pid, files[0]
            for file in files[1:]:
                os.close(file)


def _tell(file: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # whoever asked may have forgotten the process
        os.write(file, b"%d\n" % number)


def _become(asked: dict[str, Any], stdin: int, out: int) -> list[str]:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    path = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one not in sys.path]
    sys.path[:0] = [asked["folder"], *path]
    for target, file in enumerate((stdin, out, out)):
        os.dup2(file, target)
    os.close(stdin)
    os.close(out)
    sys.argv = ["robo-rl", *asked["words"]]
    return asked["words"]


if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    from robo_rl.sim.tasks.loading import load_task

    load_task("quadrotor-hover")  # which imports every task
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit(f"one of the modules {MODULES} has started a thread")
    gc.collect()
    gc.freeze()
    words = _next_command(socket.socket(fileno=int(sys.argv[1])))
    if words is not None:
        from robo_rl.cli import main

        main(words)
