"""Episodes that reach their end, and goals that move on."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.gradient_rollout import GradientRollout
from robo_rl.learn.ppo import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.policy.networks import MLP
from robo_rl.sim.env import VecEnv
from robo_rl.sim.ranges import Rule
from robo_rl.sim.tasks import Measure
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

TOP = 0.05  # m, where a climb ends
START = {f"initial/{k}": 0.0 for k in ("tilt", "yaw", "position", "linear_velocity", "angular_velocity")}
CALM = {**START, "wind": 0.0, "force": 0.0, "torque": 0.0, "noise": 0.0, "delay": 0.0}


class Climb(QuadrotorHover):
    """Rise by 5 cm."""

    name = "climb"
    measures = (Measure("position_error", "m", "end", seconds=0.05), Measure("tracking_error", "m", "rms", seconds=0.0))

    def succeeded(self, truth: Any) -> Any:
        return truth["position"][:, 2] > TOP


class Waypoints(QuadrotorHover):
    """Whenever the robot is within 10 cm of its goal, the goal moves on by 5 cm along x."""

    name = "waypoints"

    def advance(self, truth: Any, goal: Any) -> Any:
        near = (truth["position"] - truth["position_setpoint"]).square().sum(-1) < 0.01
        x, y, z = goal.unbind(-1)
        return torch.stack([torch.where(near, x + 0.05, x), y, z], -1)


def full(env: VecEnv, speed: float = 2500.0) -> dict[str, torch.Tensor]:
    return {"rotor_speed": torch.full((env.n, 4), speed)}


def test_success_ends_an_episode_and_is_neither_a_failure_nor_a_timeout() -> None:
    env = VecEnv(Climb(), 3, fixed=CALM, evaluation=True)
    env.plant.current.position[1] = torch.tensor([0.0, 0.0, TOP + 0.01])
    step = env.step(full(env, 1400.0))
    assert step.succeeded.tolist() == [False, True, False]
    assert not step.failed.any()
    assert not step.timeout.any()
    assert step.ids.tolist() == [1]
    assert float(step.final_signals["position"][0, 2]) == pytest.approx(TOP + 0.01, abs=2e-3)
    assert env.episode.step.tolist() == [1.0, 0.0, 1.0]


def test_failure_comes_before_success_and_success_before_the_end_of_time() -> None:
    env = VecEnv(Climb(), 2, fixed=CALM, evaluation=True)
    env.plant.current.position[0] = torch.tensor([0.0, 0.0, 5.0])  # too far away, and high enough
    env.plant.current.position[1] = torch.tensor([0.0, 0.0, TOP + 0.01])
    env.episode.step[:] = env.episode_steps - 1
    step = env.step(full(env, 1400.0))
    assert step.failed.tolist() == [True, False]
    assert step.succeeded.tolist() == [False, True]
    assert step.timeout.tolist() == [False, False]


def test_a_task_without_success_has_none() -> None:
    env = VecEnv(QuadrotorHover(), 4)
    for _ in range(30):
        step = env.step(full(env, 0.0))
        assert step.succeeded.shape == (4,)
        assert not step.succeeded.any()


@pytest.mark.parametrize("knows", [True, False])
def test_rules_know_success_and_where_there_is_none_survival(knows: bool) -> None:
    task = Climb() if knows else QuadrotorHover()
    task.spec = dataclasses.replace(task.spec, rules=(Rule("initial/tilt", "success", 0.5, 0.5, 0.25),))
    env = VecEnv(task, 3)
    column = env.levels.names.index("initial/tilt")
    ids = torch.arange(3)
    lost, won = torch.tensor([False, False, True]), torch.tensor([True, False, False])
    env.end(ids, lost, won if knows else None)
    assert env.levels.level[:, column].tolist() == ([0.25, 0.0, 0.0] if knows else [0.25, 0.25, 0.0])


def test_success_is_not_bootstrapped() -> None:
    config = PpoConfig(environments=16, horizon=8, updates=1, hidden=(16,), critic_hidden=(16,), mini_batches=2)
    task = Climb()
    learner = Learner(task, PolicyGraph(task, config.hidden), config, seed=0)
    learner.env.env.plant.current.position[4] = torch.tensor([0.0, 0.0, TOP + 0.1])
    step = learner.env.step(torch.zeros(16, 4))
    assert step.succeeded[4]
    assert step.done[4]
    assert torch.equal(learner.bootstrapped(step), step.reward)


class Rise:
    """Full thrust."""

    def initial_state(self, n: int) -> torch.Tensor:
        return torch.zeros(n, 0)

    def __call__(self, signals: Any, state: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return {"rotor_speed": torch.full((len(state), 4), 2500.0)}, state


def test_evaluation_counts_successes_and_the_errors_up_to_them() -> None:
    fixed = {**CALM, "mass": 1.0, "thrust": 1.0, "thrust_of_one_rotor": 1.0, "initial/rotor_speed": 0.7}
    episodes = rollout(Climb(), Rise(), Conditions(episodes=5, seconds=1.0, fixed=fixed))
    assert episodes.success.all()
    assert (episodes.duration < 0.5).all()
    summary = episodes.summary()
    assert summary["success"] == 1.0
    # the distance on the way: above 0, below the top; in the last 50 ms near the top
    assert 0.0 < summary["tracking_error_rms_m"] < TOP
    assert 0.5 * TOP < summary["position_error_mean_m"] < TOP
    hover = rollout(QuadrotorHover(), Rise(), Conditions(episodes=5, seconds=1.0, fixed=fixed))
    assert not hover.success.any()  # flies away
    np.testing.assert_array_equal(hover.success, hover.survived)


def test_who_neither_fails_nor_succeeds_has_survived_without_success() -> None:
    class Hang(Rise):
        def __call__(self, signals: Any, state: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
            return {"rotor_speed": torch.full((len(state), 4), QuadrotorHover().spec.robot.hover_speed)}, state

    calm = {**CALM, "mass": 1.0, "thrust": 1.0, "thrust_of_one_rotor": 1.0, "initial/rotor_speed": 0.55}
    episodes = rollout(Climb(), Hang(), Conditions(episodes=3, seconds=0.2, fixed=calm))
    assert episodes.survived.all()
    assert not episodes.success.any()
    assert episodes.duration == pytest.approx(0.2)


def test_a_goal_moves_on_after_the_reward_was_earned_and_the_signals_tell_of_the_next() -> None:
    task = Waypoints()
    env, still = VecEnv(task, 3, fixed=CALM, seed=1), VecEnv(QuadrotorHover(), 3, fixed=CALM, seed=1)
    env.plant.current.position[2, 0] = still.plant.current.position[2, 0] = 0.5  # not near
    step, other = env.step(full(env, 1500.0)), still.step(full(still, 1500.0))
    assert torch.equal(step.reward, other.reward)
    torch.testing.assert_close(env.draws.goal[:, 0], torch.tensor([0.05, 0.05, 0.0]))
    torch.testing.assert_close(step.signals["position_setpoint"], env.draws.goal)
    env.step(full(env, 1500.0))
    torch.testing.assert_close(env.draws.goal[:, 0], torch.tensor([0.1, 0.1, 0.0]))
    env.reset(torch.tensor([1]))
    assert env.draws.goal[1, 0] == 0.0


@pytest.mark.parametrize("kind", [Climb, Waypoints, QuadrotorHover])
def test_a_rollout_with_gradients_sees_what_the_environment_sees(kind: type[QuadrotorHover]) -> None:
    """The same noise, goals and ends of episodes, horizon after horizon."""
    torch.manual_seed(0)
    task, n, horizon = kind(), 24, 10
    network = MLP(task.observation_size, (16,), task.action_size)
    with torch.no_grad():
        network[-1].bias.fill_(2.0)  # climbs
    tape = GradientRollout(VecEnv(task, n, seed=3), network, horizon)
    tape.start()
    env = LearningEnv(VecEnv(task, n, seed=3))
    env.reset()
    torch.testing.assert_close(tape.moments[0].observation, env.observation())
    over = 0
    with torch.no_grad():
        for _ in range(6):
            tape.forward()
            alive = torch.ones(n, dtype=torch.bool)
            for moment in tape.moments[1:]:
                step = env.step(network(env.observation()))
                alive &= ~step.done
                over += int(step.done.sum())
                assert torch.equal(moment.world.alive > 0.5, alive)
                torch.testing.assert_close(moment.observation[alive], step.observation[alive], atol=1e-4, rtol=1e-4)
            tape.carry_on()
            env.set_state(torch.arange(n), state_of(tape, env))
    assert over > 0


def state_of(tape: GradientRollout, env: LearningEnv) -> Any:
    """Where the tape is, as a state of the environment: episodes that ended begin with its next horizon."""
    ids = torch.arange(env.n)
    state, world = tape.env.state(ids), tape.moments[0].world
    tensors = {**state.tensors, **{f"memory/{name}": value for name, value in world.memory.items()}}
    tensors |= {f"signal/{name}": value for name, value in world.signals.items()}
    return type(state)(tensors)
