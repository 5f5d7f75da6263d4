"""``make test`` installs the packages that tests would otherwise be skipped for, and is what CI runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTALLED = set(re.findall(r"[a-z0-9+-]+", (ROOT / ".ci/packages").read_text()))


def test_every_package_that_a_test_is_skipped_without_is_installed_for_tests():
    """But for the compiler, the library and the emulator of one more processor: 1.4 GB."""
    sources = [*(ROOT / "tests").rglob("*.py"), ROOT / "deploy/build/firmware/build.py"]
    told = [names for file in sources for names in re.findall(r"apt-get install ([a-z0-9+ -]+)", file.read_text())]
    named = {name for names in told for name in names.split() if "riscv" not in name and name != "qemu-system-misc"}
    assert named >= {"chromium", "cppcheck", "gcc-arm-none-eabi", "libclang-rt-dev", "qemu-system-arm"}
    assert named <= INSTALLED


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing: apt-get install make")
def test_ci_and_make_test_are_the_same():
    (last,) = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("exec")]
    assert last == "exec make -j2 check test"
    steps = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "sh .ci/packages tests" in steps
