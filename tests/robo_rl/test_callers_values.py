"""What a caller gives to a command or a function is what is used, and stays as it is."""

from __future__ import annotations

import dataclasses
import math
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from robo_rl.commands.training import train
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout, sweep
from robo_rl.identification.retraining import compare
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.reset_states import ResetStates, Starts, without_own
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

HOVER = "quadrotor-hover"


@pytest.mark.parametrize(
    "words",
    [
        ["--name", "go2-flat", HOVER],
        [HOVER, "--name", "go2-flat"],
        ["--begin-from", "go2-flat", "--seed", "3", HOVER, "--json"],
        ["--name=go2-flat", HOVER],
        ["--name", "go2-flat", HOVER, "--help"],
        ["--runs", "arm-reach", "--name", "go2-flat", HOVER, "--apg.updates", "3"],
    ],
)
def test_a_task_is_the_one_that_is_no_value_of_an_option(words: list[str]) -> None:
    suited = train.command(words).keywords  # type: ignore[attr-defined]
    task = load_task(HOVER)
    assert suited["algorithm"] == task.algorithms[0]
    assert suited["ppo"] == PpoConfig(**task.settings.get("ppo", {}))
    assert suited["ppo"] != PpoConfig(**load_task("go2-flat").settings["ppo"])


def test_values_per_episode_stay_with_their_episodes_in_a_sweep() -> None:
    task = load_task(HOVER)
    payload = torch.linspace(0.9, 1.1, 6)
    delay = torch.tensor([0.0, 0.01, 0.0, 0.01, 0.0, math.nan])
    conditions = Conditions(episodes=6, seconds=0.5, fixed={"mass": payload, "delay": delay, "noise": 0.0})
    policy = ControllerPolicy(task)
    table = sweep(task, policy, {"mass": [1.05], "inertia": [0.9, 1.1]}, conditions)
    for name, value in (("mass", 1.05), ("inertia", 0.9)):
        alone = dataclasses.replace(conditions, episodes=18, fixed={
            **{n: x.repeat(3) if isinstance(x, torch.Tensor) else x for n, x in conditions.fixed.items()},
            name: torch.full((18,), value),
        })  # fmt: skip
        first = {"mass": 0, "inertia": 6}[name]
        expected = rollout(task, policy, alone).part(first, first + 6).summary()
        assert table[name][0] == {"value": value, **expected}
    with pytest.raises(ValueError, match=r"fixed: mass is \(5,\) numbers; expected one, or one for each of 6"):
        rollout(task, policy, dataclasses.replace(conditions, fixed={"mass": payload[:5]}))
    rollout(task, policy, dataclasses.replace(conditions, fixed={"mass": torch.tensor(1.0)}))


def test_reset_states_go_on_counting_after_a_break() -> None:
    task = load_task("arm-place-direct")
    first, second = (LearningEnv(VecEnv(task, 3, seed=1)) for _ in range(2))
    states = without_own(first.state(torch.arange(3)))
    stored = ResetStates(task.families, torch.arange(3) % len(task.families), states)
    one, other = (Starts(env, stored, dict.fromkeys(("start", *task.families), 1.0)) for env in (first, second))
    one.count(torch.arange(3), torch.tensor([True, False, True]))
    saved = {name: value.clone() for name, value in first.save().items()}
    second.load(saved)
    assert other.metrics() == one.metrics()
    assert other.ended == one.ended
    one.count(torch.arange(3), torch.tensor([True, True, False]))
    other.count(torch.arange(3), torch.tensor([True, True, False]))
    assert other.metrics() == one.metrics()
    del saved["starts/success"], saved["starts/ended"]
    second.load(saved)  # of an earlier release


def test_a_comparison_leaves_the_task_as_it_is() -> None:
    task: Any = load_task(HOVER)
    before, graph = task.spec, ControllerPolicy(task)
    from robo_rl.policy import PolicyGraph

    untrained = PolicyGraph(task, (8,), "tanh").requires_grad_(False)
    run: Any = types.SimpleNamespace(policy=lambda: (untrained, None))
    compare(task, {"mass": [1.0, 1.0]}, graph, run, 3)
    assert task.spec is before


def test_attributes_of_stable_baselines3_are_those_of_the_robots_that_are_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    from robo_rl.adapters.sb3_env import Sb3Env

    env = Sb3Env(HOVER, 4)
    assert env.get_attr("num_envs", [0, 2]) == [4, 4]
    assert env.get_attr("num_envs", 1) == [4]
    assert len(env.get_attr("render_mode")) == 4
    assert env.env_is_wrapped(object, indices=[3]) == [False]
    with pytest.raises(AttributeError):
        env.get_attr("nothing")
