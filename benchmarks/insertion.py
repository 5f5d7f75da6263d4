"""How well a peg is inserted after behaviour cloning of 20 episodes of a script: five seeds, at 3 mm and at 1 mm.

`robo-rl demonstrate arm-insert --bounds clearance:0.001:0.001` and `robo-rl train arm-insert --algorithm bc`, each with
the seed; then 500 held-out episodes at each clearance, and as many of the script itself. A seed takes two minutes on an
idle core; a seed alone replaces the row of that seed.

    python benchmarks/insertion.py
    python benchmarks/insertion.py 3
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results import FOLDER, words, write

from robo_rl.commands.training.demonstrate import main as demonstrate
from robo_rl.commands.training.train import main as train
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.policies.loading import load
from robo_rl.sim.tasks.loading import load_task

TASK = "arm-insert"
DEMONSTRATIONS = 20
EPISODES = 500
SEEDS = 5
CLEARANCES = (0.003, 0.001)  # m


def evaluated(policy: Any) -> dict[str, dict[str, float]]:
    """Success rates by clearance (mm)."""
    found = {}
    for clearance in CLEARANCES:
        conditions = Conditions(episodes=EPISODES, fixed={"clearance": clearance})
        summary = rollout(load_task(TASK), policy, conditions).summary()
        told = {name: summary[name] for name in ("success", "success_low", "success_high")}
        found[f"{1e3 * clearance:g}"] = told
        print(f"  {1e3 * clearance:g} mm: {told['success']:.1%}", flush=True)
    return found


def learnt(seed: int) -> dict[str, Any]:
    """Demonstrations and a policy of their own, and how many held-out episodes succeed."""
    with tempfile.TemporaryDirectory() as folder:
        file, begun = Path(folder) / "demonstrations.safetensors", time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            demonstrate(TASK, DEMONSTRATIONS, file, seed, bounds=("clearance:0.001:0.001",), json=True)
            train(TASK, "bc", seed, runs=Path(folder), demonstrations=file, episodes=0, json=True)
        demonstrated, trained = (json.loads(line) for line in shown.getvalue().splitlines() if line.startswith("{"))
        seconds = time.perf_counter() - begun
        print(f"seed {seed}, after {seconds:.0f} s", flush=True)
        tried = {name: demonstrated[name] for name in ("tried", "control_steps")}
        return {"seed": seed, "seconds": seconds, **tried, "clearance_mm": evaluated(load(trained["run"]).policy)}


def main(seeds: Sequence[int]) -> None:
    known = FOLDER / "insertion.json"
    before = json.loads(known.read_text()) if known.exists() else {"rows": []}
    rows = [row for row in before["rows"] if row["seed"] not in seeds]
    rows += [learnt(seed) for seed in seeds]
    print("the script itself", flush=True)
    script = before.get("script") or evaluated(ControllerPolicy(load_task(TASK)))
    about = {"episodes": EPISODES, "demonstrations": DEMONSTRATIONS, "script": script}
    write("insertion", {**about, "rows": sorted(rows, key=lambda row: row["seed"])})


if __name__ == "__main__":
    given = words(__doc__, 1)
    main([int(word) for word in given] or range(SEEDS))
