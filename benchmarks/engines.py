"""What the engines of a sweep cost: jobs that only wait, two at once, and processor time of trainings.

Efficiency: twenty jobs that sleep for 1 s, on two slots; ideal time of the last eighteen over what they took, which
leaves out the start of an engine. Processor time: six trainings by `robo-rl sweep`, all its processes together, and the
same jobs by hand; the one over the other.

    pip install 'robo-rl[scale]'
    python benchmarks/engines.py
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results import words, write

SLEEPS, SLOTS, SEEDS = 20, 2, 6
SWEEP = f'task = "quadrotor-hover"\nseeds = {SEEDS}\n[options]\nepisodes = 100\n'
MARK = "ROBO_RL_BENCHMARK"


def main() -> None:
    words(__doc__)
    os.environ["OMP_NUM_THREADS"] = "1"
    efficiency = {name: sleeping(name) for name in ("local", "ray")}
    for name, (share, begun) in efficiency.items():
        print(f"{name}: efficiency {share:.3f} on sleeps of 1 s, the first done after {begun:.1f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hover.toml"
        file.write_text(SWEEP)
        sweep = [sys.executable, "-m", "robo_rl", "sweep", str(file), "--slots", str(SLOTS)]
        cpu = {
            name: cpu_seconds([[*sweep, "--engine", name, "--out", f"{folder}/{name}"]]) for name in ("local", "ray")
        }
        for done in Path(f"{folder}/local").glob("*/done.json"):
            done.unlink()
            (done.parent / "run.json").unlink()  # so each job is one to be done again, from the start
        work = [sys.executable, "-m", "robo_rl", "work", f"{folder}/local", "--index"]
        cpu["alone"] = cpu_seconds([[*work, str(k)] for k in range(SEEDS)])
    for name in ("local", "ray"):
        print(f"{name}: processor time of jobs by hand over that of the sweep {cpu['alone'] / cpu[name]:.3f}")
    write("engines", {"sleeps": SLEEPS, "slots": SLOTS, "trainings": SEEDS, "cpu_seconds": cpu,
                      "efficiency": {name: share for name, (share, _) in efficiency.items()},
                      "seconds_to_first": {name: begun for name, (_, begun) in efficiency.items()},
                      "cpu_alone_over_sweep": {n: cpu["alone"] / cpu[n] for n in ("local", "ray")}})  # fmt: skip


def sleeping(name: str) -> tuple[float, float]:
    """Efficiency of an engine, and s until the first job was done."""
    engine: Any = importlib.import_module(f"robo_rl.learn.distributed.engines.{name}")
    if name == "ray":
        engine.work = _sleep
    else:
        engine.start = lambda folder, index, threads: subprocess.Popen(["sleep", "1"])
    begun, ends = time.monotonic(), []
    for _, code in engine.run(Path("."), range(SLEEPS), SLOTS):
        assert code == 0
        ends.append(time.monotonic())
    return (SLEEPS - SLOTS) / SLOTS / (ends[-1] - ends[SLOTS - 1]), ends[0] - begun


def _sleep(folder: str, index: int) -> int:
    time.sleep(1.0)
    return 0


def cpu_seconds(commands: list[list[str]]) -> float:
    """Of commands one after the other, with all processes that come of them, ten looks a second."""
    mark, found = f"{MARK}={os.urandom(8).hex()}", dict[int, float]()
    name, _, value = mark.partition("=")
    for command in commands:
        process = subprocess.Popen(
            command, env={**os.environ, name: value}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None:
            found |= _looked(mark.encode())
            time.sleep(0.1)
        if process.returncode:
            sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return sum(found.values())


def _looked(mark: bytes) -> dict[int, float]:
    """CPU seconds so far of the processes with ``mark`` in their environment."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                found[int(process.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
