"""gymnasium's Ant-v5 and HalfCheetah-v5 on our batch, beside EnvPool in the same run, on as many threads.

Both sides simulate the same definitions (tests/robo_rl/test_standard_envs.py holds ours against gymnasium's, bit by
bit): physics, observation, reward, termination and resets under the same random actions. EnvPool brings its own MuJoCo
(3.6.0 in envpool 1.2.5, says the text in its library); ours is MuJoCo's own package. EnvPool counts by the better of
its two modes.

    OMP_NUM_THREADS=2 python benchmarks/standard_tasks.py
"""

from __future__ import annotations

import mujoco
import torch
from results import words, write

from robo_rl.evaluate.benchmark import STANDARD, rates, standard_sides
from robo_rl.evaluate.standard_envs import DEFINITIONS


def main() -> None:
    threads = torch.get_num_threads()
    figures = {}
    for name in DEFINITIONS:
        sides, peer = standard_sides(name, threads)
        found = rates(sides, rounds=7)
        best = max(rate for side, rate in found.items() if side != "ours")
        figures[name] = {"steps_per_second": found, "peer": peer, "ours_over_peer": found["ours"] / best}
        for side, rate in found.items():
            print(f"{name:<15} {side:<20} {rate:10,.0f} environment steps/s")
        print(f"{name:<15} ours over {peer}: {found['ours'] / best:.2f}")
    about = {"environments": STANDARD, "threads": threads, "mujoco": mujoco.__version__}
    write("envpool", {**about, "tasks": figures})


if __name__ == "__main__":
    words(__doc__)
    main()
