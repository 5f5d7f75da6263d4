"""The cores that a process may use, where the system says so and where it does not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from robo_rl.files import cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux gives a process some of the cores")
def test_only_the_cores_that_the_system_has_given_count() -> None:
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{one}]); from robo_rl import cores; print(cores.available())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "1\n"


def test_where_the_system_says_nothing_all_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores.available() == os.cpu_count()
