"""Whether a robot's computer keeps time: what the system tells of itself, and how late a periodic wake-up is.

    facts(cores) + granted(keep_time(cores))     what helps and what hinders, sentences
    timing = wake_ups(0.02, seconds=60.0)        as a control loop sleeps
    verdict(timing, contract)

It needs neither a robot nor ROS. What a system does not tell (containers often have no /sys) is said, and no fault.
"""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.deploy.robot.doctor import Finding
from robo_rl.deploy.robot.realtime import PRIORITY, preemptible
from robo_rl.deploy.robot.timing import Timing

MOST_LATE = 1e-3
"""Part of the periods that may begin late: the project's bar for every driver."""
EDGES = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
"""µs: upper ends of the histogram's bins; the last bin has none."""


def facts(cores: Sequence[int], root: Path = Path("/")) -> list[Finding]:
    """What the system tells: kernel, cores, the processor's governor, and a container's share of the processor.

    ``cores`` are those that this process may use; ``root`` is where /proc and /sys are.
    """
    return [_kernel(root), _cores(cores, root), _governor(cores, root), _share(root)]


def granted(refusals: Sequence[str]) -> list[Finding]:
    """What ``robo_rl.deploy.robot.realtime.keep_time`` was refused."""
    if not refusals:
        return [Finding(True, "permission", f"SCHED_FIFO with priority {PRIORITY}, and locked memory")]
    return [Finding(False, "permission", sentence) for sentence in refusals]


def wake_ups(period: float, seconds: float, clock: Any = time) -> Timing:
    """Sleep from period (s) to period, as ``robo_rl.deploy.robot.loop`` does; of each how late it was, in place of
    computing.

    ``clock`` does what ``time`` does.
    """
    timing, step = Timing(period), round(1e9 * period)
    due = clock.monotonic_ns()
    end = due + round(1e9 * seconds)
    while due + step <= end:
        due += step
        clock.sleep(max(0, due - clock.monotonic_ns()) / 1e9)
        now = clock.monotonic_ns()
        timing.note(now // 1000, (now - due) // 1000)
        if now >= due + step:
            due = now  # what was missed stays missed
    return timing


def histogram(timing: Timing) -> list[int]:
    """Wake-ups in each bin of ``EDGES``: no later than its edge, and later than the one before; the last, later."""
    ends = [0, *(edge + 1 for edge in EDGES), len(timing.counts)]
    return [int(timing.counts[low:high].sum()) for low, high in itertools.pairwise(ends)]


def figures(timing: Timing) -> dict[str, float | int]:
    """Of the wake-ups: how many, how many late, the longest interval (ms), and quantiles of how late (µs)."""
    greatest = np.flatnonzero(timing.counts)
    quantiles = {f"p{text}_us": timing.quantile(part) for text, part in (("50", 0.5), ("99", 0.99), ("99.9", 0.999))}
    return {
        "wake_ups": timing.steps, "late": timing.late, "longest_interval_ms": timing.longest / 1e3, **quantiles,
        "max_us": int(greatest[-1]) if greatest.size else 0,
    }  # fmt: skip


def verdict(timing: Timing, contract: Contract) -> Finding:
    """Whether a policy of this contract could run here: few periods late, and none so late that its gate stops."""
    config, rate = GateConfig.from_contract(contract), 1 / contract.control_period
    stops = max(config.timeout, 1.5 * config.period)  # gate_config: no two steps are further apart, in µs
    late = f"{timing.late} of {timing.steps} periods were late, by more than a tenth of {1e3 / rate:g} ms"
    if timing.longest > stops:
        return Finding(
            False, f"{rate:g} Hz", f"{late}; once nothing ran for {timing.longest / 1e3:.1f} ms, and the policy's gate "
            f"stops the robot after {stops / 1e3:.1f} ms",
        )  # fmt: skip
    if timing.late > MOST_LATE * timing.steps:
        return Finding(False, f"{rate:g} Hz", f"{late}; expected at most {MOST_LATE:.1%}")
    return Finding(True, f"{rate:g} Hz", late)


def _kernel(root: Path) -> Finding:
    fully = preemptible(root)
    kind = "with PREEMPT_RT" if fully else "without PREEMPT_RT: the kernel's own work may delay a wake-up by ms"
    return Finding(fully, "kernel", f"{platform.system()} {platform.release()}, {kind}")


def _cores(cores: Sequence[int], root: Path) -> Finding:
    isolated = _text(root / "sys/devices/system/cpu/isolated") or "none"
    load = _text(root / "proc/loadavg").split(" ")[0] or "not told"
    sentence = f"{len(cores)} to be used, isolated from others: {isolated}; load {load}"
    return Finding(len(cores) > 1 or isolated != "none", "cores", sentence)


def _governor(cores: Sequence[int], root: Path) -> Finding:
    of = (_text(root / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor") for core in cores)
    found = sorted({one for one in of if one})
    if not found:
        return Finding(True, "governor", "not told by this system (a virtual machine, or a container)")
    slow = [one for one in found if one != "performance"]
    advice = "; a core that was slowed down wakes up late: sudo cpupower frequency-set -g performance" if slow else ""
    return Finding(not slow, "governor", f"{', '.join(found)}{advice}")


def _share(root: Path) -> Finding:
    """Of the processor, by control groups of version 2."""
    group = next((line[3:] for line in _text(root / "proc/self/cgroup").splitlines() if line.startswith("0::")), "/")
    quota, _, period = _text(root / f"sys/fs/cgroup/{group.strip('/')}/cpu.max").partition(" ")
    if not (quota.isdigit() and period.isdigit()):
        return Finding(True, "share", "no limit is told")
    most = int(quota) / int(period)
    sentence = f"a limit of {most:g} cores: who has used it up waits for up to {int(period) / 1e3:g} ms"
    return Finding(False, "share", f"{sentence}; start the container without --cpus")


def _text(path: Path) -> str:
    """What is in a file; "" where it can't be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def usable() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
