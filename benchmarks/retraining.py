"""How much ``robo-rl retrain --from-log`` improves a policy on robots whose parameters nobody told it.

Hidden quadrotors are drawn about and beyond the edges of the ranges of quadrotor-track: heavier, with weaker and slower
motors, of larger inertia. Each flies the old policy for half a minute in all, in up to 8 flights of at most 10 s, with
small and slow figure-eights, as one who brings a robot up would choose; a fall ends a flight. From those logs one
command identifies, trains and compares. Then both policies fly the task's own held-out episodes on the hidden robot.

usage: python benchmarks/retraining.py [ROBOTS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from results import last_json, words, write

from robo_rl.deploy.build.verify import task_of
from robo_rl.deploy.emulate.simulated import record
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.identification.retraining import ratio
from robo_rl.learn.runs.folder import Run

TASK = "quadrotor-track"
HIDDEN = {
    "mass": (1.05, 1.2), "thrust": (0.87, 0.95), "inertia": (1.2, 2.2), "torque_ratio": (0.6, 1.3),
    "rise_time": (1.0, 1.4), "fall_time": (1.2, 1.8), "rotor_inertia": (0.0, 1.5), "delay": (0.008, 0.018),
}  # fmt: skip
"""Uniform. The task's ranges: mass up to 1.1, thrust from 0.9, inertia up to 1.8, torque_ratio 0.7 to 1.2, rise_time up
to 1.1, fall_time up to 1.7, delay up to 0.02, which no robot exceeds: the contract's signal timeout."""
SAME = {"thrust_of_one_rotor": 1.0}
CAREFUL = {
    "initial/tilt": 0.0, "initial/position": 0.0, "initial/linear_velocity": 0.0, "initial/angular_velocity": 0.0,
    "goal/size": 0.4, "goal/period": 8.0,
}  # fmt: skip
PIECES, SECONDS, ENOUGH = 8, 10.0, 30.0
EPISODES, FEW = 500, 10
"""Held-out episodes, and how many of them neither policy must have failed for their errors to be compared."""


def command(*arguments: str) -> dict[str, Any]:
    """The result of a robo-rl command; its code may be 1."""
    process = subprocess.run(
        [sys.executable, "-m", "robo_rl", *arguments, "--json"], capture_output=True, text=True, check=False
    )
    if not process.stdout.strip():
        return {"refused": process.stderr.strip().splitlines()[-1]}
    return last_json(process)


def one(folder: Path, old: Run, bundle: Bundle, number: int, hidden: dict[str, float]) -> dict[str, Any]:
    """Record, retrain, and evaluate on one hidden robot."""
    task, logs, fell = task_of(bundle), list[str](), 0
    steps = 0
    for piece in range(PIECES):
        if steps * task.spec.control_period >= ENOUGH:
            break
        path = folder / f"robot{number}-{piece}.mcap"
        _, failed = record(task, bundle, path, SECONDS, 100 * number + piece, {**hidden, **SAME, **CAREFUL})
        fell += failed
        logs.append(str(path))
        steps += len(read_log(path).steps)
    words = ("retrain", str(old.folder), "--from-log", *logs, "--runs", str(folder), "--name", f"new{number}")
    told = command(*words)
    if "comparison" not in told:
        return {"hidden": hidden, "fell": fell, **told}
    conditions = Conditions(EPISODES, 50 + number, None, {**hidden, **SAME})
    new = Run.open(folder / f"new{number}")
    before, after = (rollout(task, GraphPolicy(run.policy()[0]), conditions, None) for run in (old, new))
    both = before.survived & after.survived
    name = task.measures[-1].error
    figures = ratio(before.errors[name][both], after.errors[name][both], squared=True)
    return {
        "hidden": hidden, "flights": len(logs), "fell": fell, "bounds": told["bounds"],
        "train_seconds": told["train_seconds"], "wall_seconds": told["wall_seconds"],
        "identified": told["comparison"]["ratio"],
        "old": before.summary(), "new": after.summary(), "both": int(both.sum()), **figures,
    }  # fmt: skip


def main() -> None:
    given = words(__doc__, 1)
    count, draw = int(given[0]) if given else 8, np.random.default_rng(2026)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command("train", TASK, "--runs", str(folder), "--name", "old", "--episodes", "0")
        command("export", str(folder / "old"), "--out", str(folder / "old.onnx"))
        old, bundle = Run.open(folder / "old"), Bundle.read(folder / "old.onnx")
        for number in range(count):
            hidden = {key: float(draw.uniform(*bounds)) for key, bounds in HIDDEN.items()}
            row = one(folder, old, bundle, number, hidden)
            rows.append(row)
            if "ratio" not in row:
                print(f"robot {number}: {row['fell']} falls; {row.get('refused', row)}", flush=True)
                continue
            print(
                f"robot {number}: {row['fell']} falls; success {row['old']['success']:.1%} -> "
                f"{row['new']['success']:.1%}; tracking error of {row['both']} episodes {row['ratio']:.2f} times "
                f"({row['ratio_low']:.2f} to {row['ratio_high']:.2f}); {row['wall_seconds']:.0f} s",
                flush=True,
            )
    done = [row for row in rows if "ratio" in row]
    ratios = np.log([row["ratio"] for row in done if row["both"] >= FEW])
    mean, resampled = float(np.exp(ratios.mean())), np.random.default_rng(0).choice(ratios, (2000, len(ratios))).mean(1)
    low, high = np.exp(np.quantile(resampled, (0.025, 0.975))).tolist()
    success = {name: float(np.mean([row[name]["success"] for row in done])) for name in ("old", "new")}
    print(
        f"{len(done)} of {count} robots trained again: success {success['old']:.1%} -> {success['new']:.1%}; tracking "
        f"error of {len(ratios)} {mean:.2f} times the old one's, geometric mean ({low:.2f} to {high:.2f})"
    )
    figures = {"ratio": mean, "ratio_low": low, "ratio_high": high, "compared": len(ratios), "success": success}
    write("retraining", {"task": TASK, **figures, "robots": rows})


if __name__ == "__main__":
    main()
