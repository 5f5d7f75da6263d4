"""A population of 8 members, 3 generations: one job at a time, two at a time, and killed at three moments.

Are the policies and settings of all 24 trainings the same?

    python benchmarks/sweep_population.py
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import words, write

MEMBERS, GENERATIONS, KILLS = 8, 3, 3
SWEEP = f"""
task = "quadrotor-hover"
[options]
episodes = 100
checkpoint-seconds = 0.2
"apg.updates" = 30
[space]
"apg.learning-rate" = {{ low = 0.001, high = 0.05, log = true }}
"apg.gradient-norm" = {{ low = 0.02, high = 1.0, log = true }}
"apg.horizon" = {{ low = 16, high = 40 }}
[population]
members = {MEMBERS}
generations = {GENERATIONS}
"""


def main() -> None:
    words(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hover.toml").write_text(SWEEP)
        found = {slots: swept(folder, slots, kills=0) for slots in (1, 2)}
        killed = swept(folder, 2, kills=KILLS)
        best = [max(rates(folder / "1-0" / f"generation-{k}")) for k in range(GENERATIONS)]
    count = len(found[1])
    same, same_killed = found[1] == found[2], found[1] == killed
    print(f"{count} policies; the same with 1 and 2 at a time: {same}; after {KILLS} kills: {same_killed}")
    print(f"success of the best of each generation: {best}")
    write("sweep_population", {"trainings": count, "same_with_two_at_a_time": same, "kills": KILLS,
                               "same_after_kills": same_killed, "best": best})  # fmt: skip


def swept(folder: Path, slots: int, kills: int) -> dict[str, str]:
    """The policies' digests, by run: its name has the digest of its settings and of the names of those before."""
    out = folder / f"{slots}-{kills}"
    command = [sys.executable, "-m", "robo_rl", "sweep", str(folder / "hover.toml"), "--out", str(out)]
    command += ["--slots", str(slots)]
    at = random.Random(0)
    for _ in range(kills):
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        enough = len(list(out.glob("*/*/done.json"))) + at.randint(3, 7)
        while driver.poll() is None and len(list(out.glob("*/*/done.json"))) < enough:
            time.sleep(0.1)
        time.sleep(at.uniform(0.0, 2.0))
        driver.kill()
        driver.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {
        str(path.parent.relative_to(out)): json.loads(path.read_text())["policy_digest"]
        for path in sorted(out.glob("*/*/done.json"))
    }


def rates(folder: Path) -> list[float]:
    return [json.loads(path.read_text())["success"] for path in folder.glob("*/done.json")]


if __name__ == "__main__":
    main()
