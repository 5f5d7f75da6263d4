"""What --live costs a training: the same training with the page and without, by turns.

    python benchmarks/live_cost.py

Nobody looks at the page, or, with --browser, a headless Chromium on this computer, which draws without a graphics card
and so needs most of a core for itself; it has a low priority (nice 15). The training's seconds are those of its
updates. Its processor time is that of its own process. The page is a process of its own, with a lower priority (nice
10); its processor time, and the browser's, are printed separately. Beside each training is the computer's load of the
minute before it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from results import write

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import WEBGL, Browser, find_browser

WITHOUT, LIVE = "without", "live"


def one(task: str, more: list[str], live: bool, browser: bool) -> dict[str, float]:
    """Train once: seconds of its updates, processor time (s) of its process and of all others, and the load before."""
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as runs,
        tempfile.TemporaryFile("w+") as told,
        tempfile.NamedTemporaryFile("w+") as messages,
        contextlib.ExitStack() as looking,
    ):
        words = [sys.executable, "-P", "-m", "robo_rl", "train", task, "--runs", runs, "--episodes", "0", "--json"]
        words += [*more, *(["--live", "--no-open"] if live else [])]
        before, own = os.times(), 0.0
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        training = subprocess.Popen(words, stdout=told, stderr=messages, env=environment)
        while training.poll() is None:
            own = max(own, processor_time(training.pid))
            if live and browser and (found := re.search(r"http://\S+", Path(messages.name).read_text())):
                looking.enter_context(opened(found[0]))
                browser = False
            time.sleep(0.05)
        after = os.times()
        told.seek(0)
        seconds = json.loads(told.read().splitlines()[-1])["train_seconds"]
    used = sum(after[2:4]) - sum(before[2:4])
    found = {"train_seconds": seconds, "own_seconds": own, "others_seconds": used - own, "load": load}
    return {name: round(value, 2) for name, value in found.items()}


@contextlib.contextmanager
def opened(address: str) -> Iterator[None]:
    """A page in headless Chromium."""
    program = find_browser()
    if program is None:
        sys.exit("chromium is missing: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        window = Browser(program, folder, WEBGL)
        os.setpriority(os.PRIO_PGRP, window.process.pid, 15)
        try:
            window.ask("Page.navigate", url=address)
            yield
        finally:
            window.close()


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
    parser.add_argument("--browser", action="store_true", help="open the page in headless Chromium")
    given = parser.parse_args()
    more = ["--apg.updates", str(given.updates)]
    found: dict[str, list[dict[str, float]]] = {WITHOUT: [], LIVE: []}
    for k in range(given.pairs):
        for which in (WITHOUT, LIVE) if k % 2 else (LIVE, WITHOUT):
            found[which].append(one(given.task, more, which == LIVE, given.browser))
            print(which, found[which][-1], flush=True)
    pairs = list(zip(found[WITHOUT], found[LIVE], strict=True))
    wall, own = (statistics.median(b[key] / a[key] for a, b in pairs) - 1 for key in ("train_seconds", "own_seconds"))
    print(
        f"{wall:+.1%} of the updates' time, {own:+.1%} of the training's processor time; medians of {len(pairs)} pairs"
    )
    summary: dict[str, Any] = {"task": given.task, "updates": given.updates, "wall": wall, "own": own}
    write("live_cost" + ("_browser" if given.browser else ""), {**summary, **found})


if __name__ == "__main__":
    main()
