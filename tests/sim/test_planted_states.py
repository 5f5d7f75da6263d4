"""A state from a file may be any finite numbers: native code that looks up a place by them stays within its memory.

Where it does not, the process ends here, as a training did. Divergence is another matter (``test_not_finite``).
"""

from __future__ import annotations

import math

import pytest
import torch

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.reset_states import begin_with, without_own
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.tasks.loading import load_task
from tests.suite import representatives

LARGE = 0.9e6
"""Of the numbers that a file of states may have (``robo_rl.sim.episode.LARGEST``)."""
LOOKED_UP = (
    "car-race",
    "car-lanes",
    "diff-follow",
    "car-practice",
    "car-traffic-lidar",
    "omni-nav",
    "go2-rough",
    "g1-track-squat",
)
EVERYBODY = torch.arange(2)


@pytest.mark.parametrize("name", representatives(LOOKED_UP, LOOKED_UP[:3]))
def test_no_number_in_a_state_leads_beyond_the_memory_of_native_code(name: str) -> None:
    task = load_task(name)
    env, still = LearningEnv(VecEnv(task, 2, seed=1)), torch.zeros(2, task.action_size)
    for _ in range(2):
        env.step(still)
    states = without_own(env.state(EVERYBODY)).tensors
    for part, value in states.items():
        for planted in (LARGE, -LARGE, -1.0):
            begin_with(env, EVERYBODY, EnvState({**states, part: torch.full_like(value, planted)}))
            env.step(still)
    begin_with(env, EVERYBODY, EnvState(states))
    assert bool(torch.isfinite(env.step(still).reward).all())


@pytest.mark.parametrize("name", ["car-race", "car-lanes"])
def test_a_car_that_diverges_is_measured_and_ended(name: str) -> None:
    """Of one of two, as in a training whose card tells a nonsense."""
    task = load_task(name)
    env, still = LearningEnv(VecEnv(task, 2, seed=1)), torch.zeros(2, task.action_size)
    env.step(still)
    states = env.state(EVERYBODY).tensors
    for part in ("plant/position", "plant/velocity", "plant/heading", "plant/yaw_rate", "plant/station"):
        for planted in (math.nan, math.inf, -math.inf, 1e30):
            value = states[part].clone()
            value[0] = planted
            env.set_state(EVERYBODY, EnvState({**states, part: value}))
            env.step(still)
    assert env.env.diverged > 0
