"""How late wake-ups are, by a clock that is late by known times; what a system tells, by files as Linux has them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.computer import EDGES, facts, figures, granted, histogram, verdict, wake_ups
from robo_rl.zoo import located

ROOT = Path(__file__).parents[2]
CONTRACT = Bundle.read(located("zoo:go2-flat")).contract
PERIOD = CONTRACT.control_period


class LateClock:
    """Time that passes in ``sleep`` alone, which ends late by the next of these times, µs."""

    def __init__(self, lateness: Sequence[int]) -> None:
        self.left, self.now = list(lateness), 10**15

    def monotonic_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(1e9 * seconds) + 1000 * self.left.pop(0)


def test_lateness_is_told_as_numpy_has_it_on_all_of_it() -> None:
    late = np.random.default_rng(0).integers(0, 1_500, 1_000)
    timing = wake_ups(PERIOD, 1_000 * PERIOD, LateClock(late.tolist()))
    found = figures(timing)
    assert found["wake_ups"] == 1_000
    for name, part in (("p50_us", 0.5), ("p99_us", 0.99), ("p99.9_us", 0.999), ("max_us", 1.0)):
        assert found[name] == np.quantile(late, part, method="inverted_cdf")
    inside = np.histogram(late, [-0.5, *(edge + 0.5 for edge in EDGES), np.inf])[0]
    assert histogram(timing) == inside.tolist()


def test_what_was_missed_stays_missed() -> None:
    timing = wake_ups(PERIOD, 10 * PERIOD, LateClock([0, 0, round(2.5e6 * PERIOD), *[0] * 20]))
    assert timing.steps == 7
    assert timing.late == 1


@pytest.mark.parametrize(
    ("late", "good", "sentence"),
    [
        ({}, True, "0 of 2000 periods were late, by more than a tenth of 20 ms"),
        ({7: 2_500, 400: 2_500}, True, "2 of 2000 periods were late"),
        ({7: 2_500, 400: 2_500, 800: 2_500}, False, "3 of 2000 periods were late.*; expected at most 0.1%"),
        ({7: 45_000}, False, "once nothing ran for 65.0 ms, and the policy's gate stops the robot after 40.0 ms"),
    ],
)
def test_verdict(late: dict[int, int], good: bool, sentence: str) -> None:
    lateness = [late.get(k, 50) for k in range(2_010)]
    found = verdict(wake_ups(PERIOD, 2_000 * PERIOD, LateClock(lateness)), CONTRACT)
    assert found.good is good
    assert re.search(sentence, found.sentence)


def test_facts_are_those_of_the_files(tmp_path: Path) -> None:
    files = {
        "proc/loadavg": "0.25 0.10 0.05 1/100 7\n", "proc/self/cgroup": "0::/robot\n",
        "sys/fs/cgroup/robot/cpu.max": "150000 100000\n", "sys/devices/system/cpu/isolated": "3\n",
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "performance\n", "sys/kernel/realtime": "1\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    kernel, cores, governor, share = facts([2, 3], tmp_path)
    assert kernel.good
    assert (cores.good, cores.sentence) == (True, "2 to be used, isolated from others: 3; load 0.25")
    assert not governor.good
    assert governor.sentence.startswith("performance, powersave;")
    assert not share.good
    assert share.sentence.startswith("a limit of 1.5 cores: who has used it up waits for up to 100 ms")
    assert facts([3], tmp_path)[2].good


def test_a_container_without_sys_is_no_fault(tmp_path: Path) -> None:
    kernel, _, governor, share = facts([0, 1], tmp_path)
    assert kernel.sentence
    assert governor.good
    assert share.good
    assert granted([])[0].good
    assert [one.good for one in granted(["no real-time priority", "memory is not locked"])] == [False, False]


def test_the_command_needs_neither_torch_nor_ros() -> None:
    program = (
        "import sys; from robo_rl.cli import main\n"
        "try: main(['doctor', 'zoo:go2-flat', '--computer', '0.2', '--json'])\n"
        "finally: print(sorted({'torch', 'rclpy', 'mujoco'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    found = json.loads(done.stdout.splitlines()[-1])
    assert done.stderr.splitlines()[-1] == "[]"
    assert done.returncode == (0 if found["healthy"] else 1)
    assert found["wake_ups"]["wake_ups"] <= 10
    assert sum(one["count"] for one in found["histogram"]) == found["wake_ups"]["wake_ups"]
    assert {one["subject"] for one in found["findings"]} == {
        "kernel",
        "cores",
        "governor",
        "share",
        "permission",
        "50 Hz",
    }
