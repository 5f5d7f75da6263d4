"""How the whole suite runs: long files first, what is expensive once for all processes, no skip that nobody expects."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

LONGEST = Path(__file__).with_name("longest_files.txt")
"""Files that take twenty seconds and more beside others on two slow cores, the longest first: "412 tests/test_x.py"."""
EVERY_EXAMPLE = "ROBO_RL_EVERY_EXAMPLE" in os.environ
"""Whether tests of properties try all their examples, as before a release, or a third of them."""
EXPECTED_SKIPS = (
    r"needs an NVIDIA GPU",
    r"ROS's launch system",
    r"ROBO_RL_PYTHON310 names no Python 3\.10",
    r"no controller_manager_msgs: source a ROS distribution",
    r"allows no real time|grants no real-time priority",
    r"this systemd can't rate files",
    r"only root may",
    r"needs a processor with fused multiply-add",
    r"this processor has no avx",
    r"needs gcc-aarch64-linux-gnu",
    r"needs gcc-riscv64-unknown-elf",
)
"""Reasons for which a test may be skipped where ``CI`` is set: nothing that the project's own files install mends
them."""


def _seconds() -> dict[str, float]:
    lines = LONGEST.read_text().splitlines() if LONGEST.is_file() else []
    return {name: float(seconds) for seconds, name in (line.split(" ", 1) for line in lines)}


def longest_first(items: list[pytest.Item], root: Path) -> None:
    """Sort tests by what their files take, so that no process is left with a long one in the end."""
    taken = _seconds()
    items.sort(key=lambda item: -taken.get(item.path.relative_to(root).as_posix(), 0.0))


def unexpected_skips(reports: list[pytest.TestReport]) -> list[str]:
    """Places and reasons of skips that are not expected."""
    told = [report.longrepr for report in reports if isinstance(report.longrepr, tuple)]
    return sorted({f"{file}: {why}" for file, _, why in told if not any(re.search(one, why) for one in EXPECTED_SKIPS)})


def once_for_all(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder of that name that the first process makes, and the others use. Nobody may change what is in it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").is_file():
            folder.mkdir(exist_ok=True)
            make(folder)
            (folder / "made").touch()
    return folder


def short_name(what: str, *words: str) -> str:
    """A name for ``once_for_all`` of what is made from these words."""
    return f"{what}-{hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:16]}"


def examples(count: int) -> int:
    """Of how many examples a test of a property makes ``count`` before a release: a third with every change."""
    return count if EVERY_EXAMPLE else -(-count // 3)


def representatives(values: Sequence[Any], kept: Sequence[Any]) -> list[Any]:
    """Values of a parameter: all before a release, and with every change ``kept`` alone, some of each kind."""
    return [value if value in kept else pytest.param(value, marks=pytest.mark.release) for value in values]
