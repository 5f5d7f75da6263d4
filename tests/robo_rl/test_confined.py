"""A process that tries out what a stranger's file does: whatever it does there, this process goes on."""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from robo_rl.files import sandbox as confined

HERE = "tests.robo_rl.test_confined"
Attempt = Callable[..., bytes]


def answers(*arguments: bytes) -> bytes:
    return b"|".join(arguments) + str(os.getpid()).encode()


def refuses() -> bytes:
    raise ValueError("field is 7; expected 8")


def fails() -> bytes:
    raise KeyError("what")


def nests() -> bytes:
    return nests()


def hoards() -> bytes:
    kept = []
    while True:
        kept.append(bytearray(1 << 24))


def spins() -> bytes:
    while True:
        pass


def sleeps() -> bytes:
    time.sleep(1000)
    return b""


def crashes() -> bytes:
    os.kill(os.getpid(), signal.SIGSEGV)
    return b""


def leaves() -> bytes:
    os._exit(0)


def writes(path: bytes) -> bytes:
    Path(path.decode()).write_bytes(b"written")
    return b""


def floods() -> bytes:
    return bytes(confined.MOST_SAID + 10)


def prints() -> bytes:
    os.write(1, b"on the terminal")
    os.write(2, b"on the terminal")
    return b""


def limits() -> bytes:
    return repr([resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]).encode()


RESERVE = """
import ctypes, resource, sys
from robo_rl.files import sandbox
library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
library.free(library.malloc(31 << 20))  # from now on glibc takes such blocks from its heap
blocks = [library.malloc(16 << 20) for _ in range(64)]
for block in blocks[:-1]:  # the last one stays above them: the heap can't shrink
    library.free(block)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    sandbox.attempt("tests.robo_rl.test_confined:hoards_slowly", memory=200 << 20)
except sandbox.Refused as refusal:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss - before, refusal)
"""


def hoards_slowly() -> bytes:
    """100 MB per second or less, in blocks that come from glibc's heap."""
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
        time.sleep(0.01)


LOCK = threading.Lock()


def waits_for_a_lock() -> bytes:
    with LOCK:
        return b"got it"


def works_and_waits_for_a_lock() -> bytes:
    """Longer than a parser works before it meets a lock: a small part of what it may take."""
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    return waits_for_a_lock()


@pytest.fixture(params=["forked", "started"])
def attempt(request: pytest.FixtureRequest) -> Attempt:
    """Of ``confined``: by a fork, and by a new interpreter."""

    def call(name: str, *arguments: bytes, memory: int = confined.MEMORY, seconds: float = 30.0) -> bytes:
        if request.param == "forked":
            return confined._forked(globals()[name], arguments, memory, seconds)
        return confined._started(f"{HERE}:{name}", arguments, memory, seconds)

    return call


def test_it_answers_from_another_process(attempt: Attempt) -> None:
    found = attempt("answers", b"a", bytes(100_000), b"")
    assert found.startswith(b"a|" + bytes(100_000) + b"|")
    assert not found.endswith(str(os.getpid()).encode())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("refuses", "field is 7; expected 8"),
        ("fails", "KeyError: 'what'"),
        ("nests", "it is nested too deeply"),
        ("hoards", "it takes too much memory"),
        ("crashes", "the process that tried to read it ended (code -11)"),
        ("leaves", "the process that tried to read it ended (code 0)"),
        ("floods", "the process that tried to read it ended"),
    ],
)
def test_whatever_goes_wrong_is_told_in_a_sentence(attempt: Attempt, name: str, sentence: str) -> None:
    with pytest.raises(confined.Refused) as refusal:
        attempt(name)
    assert sentence in str(refusal.value)


def test_it_ends_when_its_time_is_over(attempt: Attempt) -> None:
    with pytest.raises(confined.Refused, match=r"takes more than 0.5 s to read"):
        attempt("spins", seconds=0.5)


def test_it_writes_no_file_and_nothing_on_the_terminal(
    attempt: Attempt, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    with pytest.raises(confined.Refused):
        attempt("writes", str(path).encode())
    assert not path.exists() or not path.stat().st_size
    attempt("prints")
    assert capfd.readouterr() == ("", "")


def test_this_process_keeps_its_own_limits(attempt: Attempt) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    found = attempt("limits", seconds=3.0)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    _, (most, _) = ast.literal_eval(found.decode())
    assert 3 <= most <= 60  # s of a processor: what it is given, and what a new interpreter took to begin


@pytest.mark.parametrize("name", ["waits_for_a_lock", "works_and_waits_for_a_lock"])
def test_a_fork_that_is_born_with_a_lock_that_nobody_opens_is_replaced_by_a_new_interpreter(name: str) -> None:
    with LOCK:
        assert confined.attempt(f"{HERE}:{name}", seconds=2.0) == b"got it"


@pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux alone")
def test_what_a_process_reserved_and_left_empty_is_no_memory_for_its_forks() -> None:
    ran = subprocess.run([sys.executable, "-c", RESERVE], capture_output=True, text=True, timeout=300)
    took, _, said = ran.stdout.strip().partition(" ")
    assert said == "it takes too much memory", ran.stderr
    assert int(took) < 400 << 10  # KiB; the system's bound of addresses alone lets it take 1.2 GB


def children() -> set[str]:
    """Processes that this one has begun, those that ended and wait for a look at them included."""
    told = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return {line.split()[0] for line in told.stdout.splitlines() if line.split()[1] != "ps"}


def test_no_process_is_left() -> None:
    before = children()
    with pytest.raises((confined._StuckError, confined.Refused)):  # the fork itself may take long on a busy machine
        confined._forked(sleeps, (), confined.MEMORY, 0.1)
    assert children() <= before
