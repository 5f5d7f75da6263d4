"""What --live costs a training: the same training with the page and without, by turns, with nobody looking at it.

    python benchmarks/live_cost.py

The training's seconds are those of its updates. Its processor time is that of its own process. The page is a process
of its own, with a lower priority (nice 10); its processor time is printed separately.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results import write

WITHOUT, LIVE = "without", "live"


def one(task: str, more: list[str], live: bool) -> dict[str, float]:
    """Train once: seconds of its updates, and processor time (s) of the training's process and of all others."""
    with tempfile.TemporaryDirectory() as runs, tempfile.TemporaryFile("w+") as told:
        words = [sys.executable, "-P", "-m", "robo_rl", "train", task, "--runs", runs, "--episodes", "0", "--json"]
        words += [*more, *(["--live", "--no-open"] if live else [])]
        before, own = os.times(), 0.0
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        training = subprocess.Popen(words, stdout=told, stderr=subprocess.DEVNULL, env=environment)
        while training.poll() is None:
            own = max(own, processor_time(training.pid))
            time.sleep(0.05)
        after = os.times()
        told.seek(0)
        seconds = json.loads(told.read().splitlines()[-1])["train_seconds"]
    used = sum(after[2:4]) - sum(before[2:4])
    return {"train_seconds": round(seconds, 2), "own_seconds": round(own, 2), "others_seconds": round(used - own, 2)}


def processor_time(process: int) -> float:
    """s that a process has used, without its children; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="quadrotor-hover")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--updates", type=int, default=600)
    given = parser.parse_args()
    more = ["--apg.updates", str(given.updates)]
    found: dict[str, list[dict[str, float]]] = {WITHOUT: [], LIVE: []}
    for k in range(given.pairs):
        for which in (WITHOUT, LIVE) if k % 2 else (LIVE, WITHOUT):
            found[which].append(one(given.task, more, which == LIVE))
            print(which, found[which][-1], flush=True)
    pairs = list(zip(found[WITHOUT], found[LIVE], strict=True))
    wall, own = (statistics.median(b[key] / a[key] for a, b in pairs) - 1 for key in ("train_seconds", "own_seconds"))
    print(
        f"{wall:+.1%} of the updates' time, {own:+.1%} of the training's processor time; medians of {len(pairs)} pairs"
    )
    summary: dict[str, Any] = {"task": given.task, "updates": given.updates, "wall": wall, "own": own}
    write("live_cost", {**summary, **found})


if __name__ == "__main__":
    main()
