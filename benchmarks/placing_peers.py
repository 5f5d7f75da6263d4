"""Learning to place beside Gymnasium-Robotics and stable-baselines3, on one core each of the same machine.

    python benchmarks/placing_peers.py [PYTHON] [SECONDS]           of training; by default 600

PYTHON is the interpreter of an environment of its own, since Gymnasium-Robotics 1.4 does not run with MuJoCo 4:

    python -m venv peers
    peers/bin/pip install "mujoco<3.4" gymnasium-robotics sb3-contrib

There TQC with hindsight (HER) learns FetchPickAndPlace-v4, with the hyperparameters of rl-baselines3-zoo, for so many
seconds of the processor's time; success is that of its last 100 training episodes. Here 200 episodes of the script of
arm-place-direct are recorded and cloned (`robo-rl demonstrate`, `robo-rl train --demonstrations`), then tried in 500
held-out episodes. The tasks are not the same: FetchPickAndPlace tells the block's place exactly, moves an arm of ideal
position control, and half of its goals are on the table; nobody shows TQC anything. Without PYTHON only ours is
measured. Times are of the processor (user and system), which other programs don't change much.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EVERY = 10_000
"""Steps of TQC between points of its curve."""
EPISODES, STEPS = 200, 1000
ARMS = 256


def fetch(seconds: float) -> dict[str, Any]:
    """In the peers' environment: steps per second with random actions, then the curve of a training."""
    import gymnasium
    import gymnasium_robotics
    import torch
    from sb3_contrib import TQC
    from stable_baselines3 import HerReplayBuffer
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    gymnasium.register_envs(gymnasium_robotics)
    env = gymnasium.make("FetchPickAndPlace-v4")
    env.reset(seed=0)
    begun = time.process_time()
    for _ in range(STEPS):
        _, _, _, over, _ = env.step(env.action_space.sample())
        if over:
            env.reset()
    rate = STEPS / (time.process_time() - begun)

    class Curve(BaseCallback):
        """Stops after the time, and keeps success on the way."""

        points: list[tuple[int, float, float]] = []

        def _on_step(self) -> bool:
            took, known = time.process_time() - start, self.model.ep_success_buffer
            over = took > seconds
            if over or self.num_timesteps % EVERY == 0:
                self.points.append((self.num_timesteps, took, float(sum(known) / len(known)) if known else 0.0))
            return not over

    learner = TQC(
        "MultiInputPolicy", env, 1e-3, buffer_size=1_000_000, batch_size=512, gamma=0.98, tau=0.005,
        replay_buffer_class=HerReplayBuffer, learning_starts=1000, seed=0, device="cpu",
        replay_buffer_kwargs={"goal_selection_strategy": "future", "n_sampled_goal": 4},
        policy_kwargs={"net_arch": [512, 512, 512], "n_critics": 2},
    )  # fmt: skip
    start, curve = time.process_time(), Curve()
    learner.learn(10**9, curve)
    return {"environment_steps_per_second": rate, "curve": curve.points}


def ours() -> dict[str, Any]:
    """Here: steps per second with random actions, and the way from nothing to a cloned policy."""
    import torch

    from robo_rl.learn.experience.learning_env import LearningEnv
    from robo_rl.sim.env import VecEnv
    from robo_rl.sim.tasks.loading import load_task

    torch.set_num_threads(1)
    rates = {}
    for name in ("arm-place", "arm-place-direct"):
        env = LearningEnv(VecEnv(load_task(name), ARMS, 0))
        actions = torch.Generator().manual_seed(0)
        begun = time.process_time()
        for _ in range(25):
            env.step(0.3 * torch.randn(ARMS, env.task.action_size, generator=actions))
        rates[name] = 25 * ARMS / (time.process_time() - begun)
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder, "shown.safetensors")
        recorded, to_record = commanded("demonstrate", "arm-place-direct", "--episodes", EPISODES, "--out", shown)
        _, to_train = commanded(
            "train", "arm-place-direct", "--demonstrations", shown, "--runs", folder, "--episodes", 0
        )
        run = next(Path(folder).glob("arm-place-direct-*"))
        evaluated, _ = commanded("evaluate", run, "--episodes", 500)
    keys = ("episodes", "success", "success_low", "success_high")
    return {
        "environment_steps_per_second": rates, "control_steps_shown": recorded["control_steps"],
        "seconds_to_record": to_record, "seconds_to_train": to_train, **{key: evaluated[key] for key in keys},
    }  # fmt: skip


def commanded(*words: Any) -> tuple[dict[str, Any], float]:
    """What a command of robo-rl tells, and its seconds of processor time."""
    import resource

    from results import last_json

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "robo_rl", *map(str, words), "--json"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr)
    return last_json(done), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    from results import words, write

    python, seconds = (*(given := words(__doc__, 2)), *("", "600")[len(given) :])
    row: dict[str, Any] = {"ours": ours()}
    print(json.dumps(row["ours"], indent=1), flush=True)
    if python:
        done = subprocess.run([python, __file__, "fetch", seconds], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{python} can't run the peers: {done.stderr.strip().splitlines()[-1]}")
        row["fetch"] = json.loads(done.stdout.strip().splitlines()[-1])
        print(json.dumps(row["fetch"]), flush=True)
    else:
        print("no interpreter with Gymnasium-Robotics and sb3-contrib is given (see --help): the peers are left out")
    write("placing_peers", row)


if __name__ == "__main__":
    if sys.argv[1:2] == ["fetch"]:
        print(json.dumps(fetch(float(sys.argv[2]))))
    else:
        main()
