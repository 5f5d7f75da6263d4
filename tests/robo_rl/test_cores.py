"""The cores that a process may use, where the system says so and where it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from robo_rl.files import cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux gives a process some of the cores")
def test_only_the_cores_that_the_system_has_given_count() -> None:
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{one}]); from robo_rl import cores; print(cores.available())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "1\n"


@pytest.mark.parametrize(
    ("text", "expected"), [("max 100000", 8), ("250000 100000", 3), ("50000 100000", 1), ("900000 100000", 8), ("?", 8)]
)
def test_a_container_s_share_counts(text: str, expected: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(text + "\n")
    monkeypatch.setattr(cores, "CONTROL_GROUP", tmp_path / "cpu.max")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert cores.available() == expected


@pytest.mark.parametrize(
    ("given", "expected"), [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")]
)
def test_waiting_threads_soon_sleep_unless_told_otherwise(given: dict[str, str], expected: str) -> None:
    rest = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = "import os, robo_rl; print(os.environ.get('GOMP_SPINCOUNT'))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**rest, **given}
    )
    assert told.stdout.strip() == expected


def test_where_the_system_says_nothing_all_cores_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cores, "CONTROL_GROUP", tmp_path / "none")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores.available() == os.cpu_count()
