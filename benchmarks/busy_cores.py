"""Simulation beside other programs: steps per second alone, and beside two busy processes.

Given the folder of another version of robo-rl, that is measured in turns with this one, each round in a process of its
own; the ratios are of medians, and what other programs take is taken from both.

    OMP_NUM_THREADS=2 python benchmarks/busy_cores.py [FOLDER]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from results import words, write

from robo_rl.files import interpreter

HERE = Path(__file__).parents[1]
ROUNDS, BUSY = 3, 2
MEASURED = {
    "quadrotor plant": ("plant", "quadrotor-hover", 16384),
    "Go2": ("plant", "go2-flat", 512),
    "arm": ("plant", "arm-place", 256),
    "car, 64 beams": ("environment", "car-race", 4096),
    "HalfCheetah-v5": ("standard", "HalfCheetah-v5", 128),
}
"""What is measured, by its name: of what kind, which task, how many robots."""
MEASURE = """
import json, sys
from robo_rl.evaluate import benchmark
from robo_rl.sim.tasks.loading import load_task
kind, task, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "standard":
    import torch
    sides = benchmark.standard_sides(task, torch.get_num_threads())[0]
    stepper = sides["ours"]
else:
    make = benchmark.plant_stepper if kind == "plant" else benchmark.env_stepper
    stepper = make(load_task(task), n=n)
print(json.dumps(benchmark.rates({"ours": stepper}, rounds=1, seconds=1.0)["ours"]))
"""


def main(folder: Path | None) -> None:
    versions = {"now": HERE, **({"before": folder.resolve()} if folder else {})}
    found: dict[str, Any] = {}
    loads = {}
    for place, count in (("alone", 0), (f"beside {BUSY} busy processes", BUSY)):
        loads[place] = os.getloadavg()[0]  # of what else runs here
        busy = [subprocess.Popen([sys.executable, "-P", "-c", "while True: pass"]) for _ in range(count)]
        try:
            found[place] = {name: compare(what, versions) for name, what in MEASURED.items()}
        finally:
            for process in busy:
                process.kill()
                process.wait()
        for name, rates in found[place].items():
            told = ", ".join(f"{version} {rate:,.4g}" for version, rate in rates.items())
            print(f"{place:<24} {name:<16} {told}", flush=True)
    about = {"threads": torch.get_num_threads(), "rounds": ROUNDS, "load_average_before": loads}
    write("busy_cores", {**about, "steps_per_second": found})


def compare(what: tuple[str, str, int], versions: dict[str, Path]) -> dict[str, float]:
    """Medians of steps per second over the rounds, by version; with two, also their ratio."""
    rates: dict[str, list[float]] = {name: [] for name in versions}
    for _ in range(ROUNDS):
        for name, folder in versions.items():
            rates[name].append(measure(what, folder))
    medians = {name: statistics.median(each) for name, each in rates.items()}
    return medians | ({"ratio": medians["now"] / medians["before"]} if "before" in medians else {})


def measure(what: tuple[str, str, int], folder: Path) -> float:
    """Steps per second of the version in ``folder``."""
    environment = {**os.environ, **interpreter.environment(), "PYTHONPATH": str(folder)}
    environment.pop("GOMP_SPINCOUNT", None)  # each version has its own
    command = [sys.executable, "-P", "-c", MEASURE, *map(str, what)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    given = words(__doc__, 1)
    main(Path(given[0]) if given else None)
