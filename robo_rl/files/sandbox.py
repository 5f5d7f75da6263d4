"""Try out in another process what a stranger's file makes a parser do: with little memory, little time, no files.

    answer = confined.attempt("robo_rl.deploy.robot.bundle:trial", data, path)          # or Refused, a ValueError,
    in a sentence

The other process calls the function with the arguments (bytes) and gives its answer (bytes) back through a pipe;
nothing is ever unpickled. It may take so much memory and time and no more, can write no file, and whatever becomes of
it, this process goes on.

On Linux the process is a fork of this one, which takes some milliseconds. Where a fork inherits a lock that another
thread held, it waits for ever, without working; then, and on other systems, a new interpreter is started.

The system bounds addresses, not memory, and a fork inherits what this process reserved and left empty (a freed batch of
MuJoCo's arenas: a gigabyte). So what a fork really holds is looked at while it works.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import os
import resource
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence

from robo_rl.files import interpreter

MEMORY = 500 << 20
"""Bytes that it may take in addition to what this process has."""
SECONDS = 8.0
"""Of processor time."""
WAITS = 10.0
"""Times as long as that, on a busy computer, it may take in all."""
MOST_SAID = 1 << 26
LOOK = 0.01
"""s between two looks at a process that works."""
STUCK = 2.0
"""s that a process may sleep, without working: it waits for a lock, or for a pipe that was put in a file's place."""
ANSWER, REFUSAL = b"a", b"x"


class Refused(ValueError):
    """It did not end well. The message says why, without naming the file."""


class _StuckError(Exception):
    """A process that sleeps and works no more."""


def attempt(
    function: str, *arguments: bytes, memory: int = MEMORY, seconds: float = SECONDS, most: int = MOST_SAID
) -> bytes:
    """What ``function`` ("module:name") answers to ``arguments`` in a process of its own: ``most`` bytes.

    Refused if it does not.
    """
    if sys.platform == "linux":
        with contextlib.suppress(_StuckError):
            return _forked(_found(function), arguments, memory, seconds, most)
    return _started(function, arguments, memory, seconds, most)


def follow_no_files() -> None:
    """From now on this process opens nothing more: what is read must not name other files, pipes or devices."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def _found(function: str) -> Callable[..., bytes]:
    module, name = function.split(":")
    return getattr(importlib.import_module(module), name)


def limit(memory: int, seconds: float) -> None:
    """From now on this process may take so much memory, in addition, and time, and write nothing."""
    used = 0
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    for kind, most, room in (
        (resource.RLIMIT_AS, used + memory, 0),
        (resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds), 1),  # the signal SIGXCPU comes first
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, max(hard - room, 0))
        resource.setrlimit(kind, (most, most + room))


def _serve(function: Callable[..., bytes], arguments: Sequence[bytes], to: int) -> None:
    """Call it and write what it answers, or why not."""
    spare = bytearray(1 << 20)
    try:
        said = ANSWER + function(*arguments)
    except MemoryError:
        del spare  # what took all the memory is still held, by the error's traceback
        said = REFUSAL + b"it takes too much memory"
    except RecursionError:
        said = REFUSAL + b"it is nested too deeply"
    except ValueError as error:
        said = REFUSAL + str(error).encode(errors="replace")[:4000]
    except Exception as error:  # a third party's, such as onnxruntime's
        said = REFUSAL + f"{type(error).__name__}: {error}".encode(errors="replace")[:4000]
    while said:
        said = said[os.write(to, said) :]


def _forked(
    function: Callable[..., bytes], arguments: Sequence[bytes], memory: int, seconds: float, most: int = MOST_SAID
) -> bytes:
    ours, theirs = os.pipe()
    held = _held("self")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks of processes with threads: see above
        child = os.fork()
    if child == 0:
        try:
            _leave_all(theirs)
            limit(memory, seconds)
            _serve(function, arguments, theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    try:
        bound = None if held is None else held + memory
        said = _read(ours, time.monotonic() + WAITS * seconds, child, most, bound)
    finally:
        os.close(ours)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return _understood(said, os.waitstatus_to_exitcode(status), memory, seconds)


def _leave_all(kept: int) -> None:
    """In a fork: no terminal, no open files but one, no priority, and signals as they are by default."""
    gc.disable()  # what it would collect may wait for threads, which are not in this process
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, 1 << 12)
    with contextlib.suppress(OSError, AttributeError):  # macOS has no such policies
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _started(function: str, arguments: Sequence[bytes], memory: int, seconds: float, most: int = MOST_SAID) -> bytes:
    ours, theirs = os.pipe()
    words = interpreter.module(__name__, function, str(memory), str(seconds), str(theirs))
    process = subprocess.Popen(
        words, pass_fds=(theirs,), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=interpreter.environment(),
    )  # fmt: skip
    os.close(theirs)
    try:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            for argument in arguments:
                process.stdin.write(len(argument).to_bytes(8, "little") + argument)
            process.stdin.close()
        said = _read(ours, time.monotonic() + WAITS * seconds + START, process.pid, most)
    except _StuckError:
        raise Refused("it waits for something that does not come, such as a pipe; expected files") from None
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    return _understood(said, process.returncode, memory, seconds)


START = 20.0
"""s that a new interpreter may take to begin."""


def _read(source: int, until: float, process: int, most: int, bound: int | None = None) -> bytes | None:
    """All that comes before the end; None where it does not come in time, ``_StuckError`` where the process sleeps.

    Refused where the process holds more than ``bound`` bytes.
    """
    found = bytearray()
    at_work, worked = time.monotonic(), _work(process)
    while len(found) <= most:
        now = time.monotonic()
        if not select.select([source], [], [], max(0.0, min(LOOK, until - now)))[0]:
            if bound is not None and (_held(process) or 0) > bound:
                raise Refused("it takes too much memory")
            work = _work(process)
            if work is None or work != worked:
                at_work, worked = now, work
            if now - at_work > STUCK:
                raise _StuckError
            if now >= until:
                return None
            continue
        at_work = now
        data = os.read(source, 1 << 16)
        if not data:
            return bytes(found)
        found += data
    return b""


def _work(process: int) -> str | None:
    """What a process that sleeps has worked so far; None where it does not sleep, or where that is not known."""
    try:
        with open(f"/proc/{process}/stat") as file:
            told = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return " ".join(told[11:13]) if told[0] == "S" else None


def _held(process: int | str) -> int | None:
    """Bytes of memory of its own that a process holds; None where the system does not tell."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return None


def _understood(said: bytes | None, code: int, memory: int, seconds: float) -> bytes:
    if said is None or code == -signal.SIGXCPU:
        raise Refused(f"it takes more than {seconds:g} s to read; expected less")
    if said[:1] == ANSWER:
        return said[1:]
    if said[:1] == REFUSAL:
        raise Refused(said[1:].decode(errors="replace"))
    most = f"{memory >> 20} MB of memory"
    raise Refused(f"the process that tried to read it ended (code {code}); expected one that takes less than {most}")


def main(function: str, memory: str, seconds: str, to: str) -> None:
    """The new interpreter: arguments from standard input, the answer into a pipe."""
    found = _found(function)
    arguments = []
    while head := sys.stdin.buffer.read(8):
        arguments.append(sys.stdin.buffer.read(int.from_bytes(head, "little")))
    limit(int(memory), float(seconds))
    _serve(found, arguments, int(to))


if __name__ == "__main__":
    main(*sys.argv[1:])
