"""Commands that a user waits for: processor seconds and wall time, each in a process of its own.

Given the folder of another version of robo-rl, its commands are run in turns with this one's. Processor seconds are of
the command and all that it starts, and hardly change with what else runs; wall times do. Compiled code is in the cache;
"first" begins without the exports that this version keeps there, as after an update.

    OMP_NUM_THREADS=1 python benchmarks/commands.py [FOLDER]
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import words, write

from robo_rl.files import interpreter
from robo_rl.sim.accelerate.fuse.native import cache_folder

HERE = Path(__file__).parents[1]
ROUNDS = 1
TASK = "quadrotor-hover"
COMMANDS = {
    "export, first": ["export", "run", "--out", "policy.onnx"],
    "export": ["export", "run", "--out", "policy.onnx"],
    "verify, first": ["verify", f"zoo:{TASK}"],
    "verify": ["verify", f"zoo:{TASK}"],
    "verify go2-flat, first": ["verify", "zoo:go2-flat"],
    "transfer": ["transfer", f"zoo:{TASK}"],
    "report": ["report", f"zoo:{TASK}", "--out", "report.html"],
}
"""Words by the name of what is measured."""
TRAIN = ["train", TASK, "--runs", ".", "--name", "run", "--apg.updates", "20", "--episodes", "0"]


def main(folder: Path | None) -> None:
    versions = {"now": HERE, **({"before": folder.resolve()} if folder else {})}
    load = os.getloadavg()[0]
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        places = {name: Path(place) / name for name in versions}
        for name, source in versions.items():
            (places[name] / "cache" / "robo-rl").mkdir(parents=True)
            (places[name] / "cache" / "robo-rl" / "fuse").symlink_to(cache_folder())
            run(TRAIN, source, places[name])
        for what, command in COMMANDS.items():
            found[what] = compare(what, command, versions, places)
            print(f"{what:<24} {'  '.join(f'{name} {value:.3g}' for name, value in found[what].items())}", flush=True)
            write("commands", {"rounds": ROUNDS, "load_average_before": load, "commands": found})


def compare(what: str, command: list[str], versions: dict[str, Path], places: dict[str, Path]) -> dict[str, float]:
    """The least of the rounds, as the first one may compile, by version; with two, the processor seconds' ratio."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in versions}
    for _ in range(ROUNDS):
        for name, source in versions.items():
            if what.endswith(", first"):
                shutil.rmtree(places[name] / "cache" / "robo-rl" / "exports", ignore_errors=True)
            measured[name].append(run(command, source, places[name]))
    figures = {}
    for name, each in measured.items():
        figures[f"{name}_cpu_s"], figures[f"{name}_wall_s"] = map(min, zip(*each, strict=True))
    if "before" in versions:
        figures["cpu_ratio"] = figures["now_cpu_s"] / figures["before_cpu_s"]
    return figures


def run(command: list[str], source: Path, place: Path) -> tuple[float, float]:
    """Processor seconds and wall time of a command of the version in ``source``."""
    environment = {**os.environ, **interpreter.environment(), "PYTHONPATH": str(source)}
    environment["XDG_CACHE_HOME"] = str(place / "cache")
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "robo_rl", *command], cwd=place, env=environment, capture_output=True, text=True
    )
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)} in {source}: {done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


if __name__ == "__main__":
    given = words(__doc__, 1)
    main(Path(given[0]) if given else None)
