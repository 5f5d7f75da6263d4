"""What a task's script reaches alone."""

from __future__ import annotations

import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.mobile_manipulator.place import MobilePlace


def share_placed(task: MobilePlace, robots: int = 12, steps: int = 400) -> float:
    """Of the robots, those that have placed their cube at least once."""
    env, script = VecEnv(task, robots, seed=1, evaluation=True), task.controller()
    state, signals, done = torch.from_numpy(script.first_state(robots)), env.signals(), torch.zeros(robots)
    for _ in range(steps):
        commands, state = script(signals, state)
        step = env.step(commands)
        done, signals = torch.maximum(done, step.succeeded.float()), step.signals
        state[step.ids] = torch.from_numpy(script.first_state(len(step.ids)))
    return float(done.mean())
