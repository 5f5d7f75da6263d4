"""What metrics tell of episodes, held to sums of what an environment's steps gave."""

from __future__ import annotations

import pytest
import torch

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task, any_of
from robo_rl.sim.tasks.loading import load_task, task_names

FAST = ("quadrotor-hover", "go2-flat", "car-race", "arm-reach", "diff-nav")


def steps_of(task: str, n: int, steps: int) -> tuple[LearningEnv, list]:
    env = LearningEnv(VecEnv(load_task(task), n, seed=3))
    env.env.keep_statistics()
    torch.manual_seed(0)
    actions = 3.0 * torch.randn(steps, n, env.task.action_size)
    return env, [env.step(action) for action in actions]


@pytest.mark.parametrize("task", FAST)
def test_terms_add_up_to_the_mean_reward_and_ends_are_counted(task: str) -> None:
    """Of plants in one native loop, of MuJoCo, and of tasks that know success."""
    env, steps = steps_of(task, 16, 150)
    told = env.env.keep_statistics().read()
    terms = [value for name, value in told.items() if name.startswith("reward/")]
    assert len(terms) == len(env.task.spec.reward)
    expected = float(torch.stack([step.reward for step in steps]).double().mean())
    assert sum(terms) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    ended = sum(len(step.ids) for step in steps)
    assert told.get("episode/count", 0.0) == ended
    if ended:
        failed = sum(int(step.failed.sum()) for step in steps)
        assert told["episode/failure"] == pytest.approx(failed / ended)
        won = sum(int(step.succeeded.sum()) for step in steps)
        timeout = sum(int(step.timeout.sum()) for step in steps)
        assert told.get("episode/success", 0.0) == pytest.approx(won / ended)
        assert told["episode/timeout"] == pytest.approx(timeout / ended)
    assert told["episode/diverged"] == told.get("failure/state not finite", 0.0) == 0.0


def test_the_next_reading_is_of_what_came_since() -> None:
    env, _ = steps_of("quadrotor-hover", 8, 60)
    env.env.keep_statistics().read()
    later = [env.step(torch.zeros(8, env.task.action_size)) for _ in range(20)]
    told = env.env.keep_statistics().read()
    terms = sum(value for name, value in told.items() if name.startswith("reward/"))
    assert terms == pytest.approx(float(torch.stack([s.reward for s in later]).mean()), rel=1e-4)
    assert told.get("episode/count", 0.0) == sum(len(step.ids) for step in later)


def test_lengths_of_episodes_have_their_quantiles() -> None:
    """Robots without thrust fall 1 m in √(2 / g) = 0.45 s: that is the failure, and its cause."""
    env = LearningEnv(VecEnv(load_task("quadrotor-hover"), 64, seed=0, fixed={"initial/tilt": 0.0}))
    env.env.keep_statistics()
    for _ in range(100):
        env.step(torch.full((64, env.task.action_size), -20.0))
    told = env.env.keep_statistics().read()
    assert told["episode/failure"] == 1.0
    assert 0.3 < told["episode/length_p50_s"] < 0.6
    lengths = [told[f"episode/length_p{q}_s"] for q in ("05", "25", "50", "75", "95")]
    assert lengths == sorted(lengths)
    assert told["failure/over 1 m from the set-point"] == 1.0
    assert told["failure/other"] == told["failure/state not finite"] == 0.0
    assert told["at_limit/rotor_speed"] == 1.0


@pytest.mark.parametrize("name", task_names())
def test_a_task_fails_for_one_of_the_causes_that_it_names(name: str) -> None:
    task = load_task(name)
    assert type(task).failures is not Task.failures, "a task names what an episode can fail for"
    env = VecEnv(task, 4 if task.spec.team == 1 else 1, seed=1)
    for _ in range(5):
        env.step({c.name: torch.tensor(c.upper).expand(env.n, -1) for c in task.spec.commands})
        truth = env.truth()
        assert torch.equal(task.failed(truth), any_of(task.failures(truth)))


def test_a_diverged_state_is_a_cause_of_its_own() -> None:
    env = VecEnv(load_task("quadrotor-hover"), 8, seed=0)
    statistics = env.keep_statistics()
    env.plant.current.position[2:4] = float("nan")
    env.step({c.name: torch.tensor(c.upper).expand(8, -1) for c in env.task.spec.commands})
    told = statistics.read()
    assert told["episode/diverged"] == 2.0
    assert told["failure/state not finite"] == 1.0
