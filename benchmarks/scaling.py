"""PPO in one, two and four processes of this computer: work per update, and what the model predicts for four.

Processor time counts, of all processes together, so that other programs matter little. The time of one process's work
follows from two numbers of robots; what messages cost follows from two processes; four are predicted.

    python benchmarks/scaling.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from results import words, write

TASK, ROBOTS, UPDATES = "go2-flat", 512, 8


def main() -> None:
    if len(sys.argv) == 3 and "RANK" in os.environ:
        worker(Path(sys.argv[1]), int(sys.argv[2]))
        return
    words(__doc__)
    with tempfile.TemporaryDirectory() as name:
        found = {}
        for key in ((1, ROBOTS), (2, ROBOTS), (4, ROBOTS), (1, ROBOTS // 4)):
            found[key] = together(Path(name), *key)
            print(f"{key[0]} processes, {key[1]} robots: {found[key]:.3f} CPU s an update, of all together", flush=True)
    each = (found[1, ROBOTS] - found[1, ROBOTS // 4]) / (ROBOTS - ROBOTS // 4)
    fixed = found[1, ROBOTS] - each * ROBOTS
    message = (found[2, ROBOTS] - each * ROBOTS - 2 * fixed) / 2  # of each process, for log2 2 = 1 round
    predicted = each * ROBOTS + 4 * fixed + 4 * 2 * message
    over = predicted / found[4, ROBOTS]
    half = found[1, ROBOTS] / found[2, ROBOTS]
    print(f"steps per CPU second of two processes, of one's: {half:.3f}; four predicted / measured: {over:.3f}")
    write("scaling", {"task": TASK, "robots": ROBOTS, "updates": UPDATES,
                      "cpu_seconds": {f"{n} processes, {robots} robots": x for (n, robots), x in found.items()},
                      "two_over_one": half, "four_predicted_over_measured": over})  # fmt: skip


def together(folder: Path, processes: int, robots: int) -> float:
    """CPU seconds of an update, of all processes together."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, __file__, str(folder), str(robots)], check=True, env=environment)
    times = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(processes)]
    return float(np.median(np.sum(times, 0)))


def worker(folder: Path, robots: int) -> None:
    """One of the processes."""
    import dataclasses

    import torch

    from robo_rl.learn.config import PpoConfig
    from robo_rl.learn.distributed import processes
    from robo_rl.learn.ppo import Learner
    from robo_rl.policy import PolicyGraph
    from robo_rl.sim.tasks.loading import load_task

    processes.join("cpu")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    task = load_task(TASK)
    config = dataclasses.replace(PpoConfig(**task.settings["ppo"]), environments=robots)
    policy = PolicyGraph(task, config.hidden, config.activation, config.normalize)
    learner = Learner(task, policy, config, seed=0)
    times = []
    for _ in range(UPDATES + 1):
        begun = time.process_time()
        learner.update()
        times.append(time.process_time() - begun)
    (folder / f"{processes.rank()}.json").write_text(json.dumps(times[1:]))
    processes.leave()


if __name__ == "__main__":
    main()
