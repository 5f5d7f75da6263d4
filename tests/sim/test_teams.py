"""Teams: robots that share an environment, see each other and end together."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from robo_rl.adapters.gym import TaskVectorEnv
from robo_rl.contract import Signal
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.learn.config import ApgConfig, PpoConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.ppo import Learner
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.multirotor.quadrotor import XYZ, QuadrotorHover

APART, NEAR = 0.6, 0.3  # m, of the goals, and at which a pair has failed


class Pair(QuadrotorHover):
    """Two quadrotors hover side by side, and must keep a distance."""

    name = "pair"

    def __init__(self) -> None:
        super().__init__()
        mate = Signal("mate", XYZ, "m", "world", (-100.0,) * 3, (100.0,) * 3, noise=(0.01,) * 3, delay=(0.0, 0.02))
        self.observation_size += 3
        self.spec = dataclasses.replace(
            self.spec,
            signals=(*self.spec.signals, mate),
            reward={**self.spec.reward, "distance": 0.1},
            team=2,
        )

    def goal(self, drawn: Any) -> Any:
        goal = super().goal(drawn).unflatten(0, (-1, 2)).clone()
        goal[:, 1, 0] = APART
        return goal.flatten(0, 1)

    def neighbours(self, truth: Any) -> dict[str, Any]:
        place = truth["position"]
        return {"mate": place.flip(1) - place}

    def observe(self, signals: Any, memory: Any) -> Any:
        return torch.cat([super().observe(signals, memory), signals["mate"]], -1)

    def reward(self, truth: Any, commands: Any, previous: Any) -> dict[str, Any]:
        distance = torch.sqrt(truth["mate"].square().sum(-1))
        return {**super().reward(truth, commands, previous), "distance": torch.clamp(distance, max=1.0)}

    def failed(self, truth: Any) -> Any:
        return super().failed(truth) | (truth["mate"].square().sum(-1) < NEAR**2)


class Landed(Pair):
    """Succeeds when both are low; a lost robot is no failure of the pair."""

    name = "landed"

    def failed(self, truth: Any) -> Any:
        return truth["position"][:, 2] < -0.9

    def succeeded(self, truth: Any) -> Any:
        return truth["position"][:, 2] < -0.1

    def team_failed(self, failed: Any) -> Any:
        return failed.all(1)


def commands(env: VecEnv, speed: float = 1400.0) -> dict[str, torch.Tensor]:
    return {"rotor_speed": torch.full((env.n, 4), speed)}


STILL = {f"initial/{k}": 0.0 for k in ("tilt", "yaw", "position", "linear_velocity", "angular_velocity")}


def test_each_robot_is_a_row_and_sees_where_its_mate_is() -> None:
    env = VecEnv(Pair(), 3, fixed={**STILL, "noise": 0.0, "delay": 0.0})
    assert env.n == 6
    assert not env.fused
    place = env.plant.current.position
    for _ in range(5):
        step = env.step(commands(env))
        expected = place.view(3, 2, 3).flip(1).reshape(6, 3) - place
        torch.testing.assert_close(step.signals["mate"], expected)
        torch.testing.assert_close(env.truth(torch.arange(6))["mate"], expected)
    assert step.reward.shape == (6,)
    assert len(torch.unique(env.plant.param("mass"))) == 6


def test_a_team_fails_together_when_two_come_too_near() -> None:
    env = VecEnv(Pair(), 3, fixed=STILL)
    env.plant.current.position[3] = env.plant.current.position[2] + torch.tensor([0.1, 0.0, 0.0])
    step = env.step(commands(env))
    assert step.failed.tolist() == [False, False, True, True, False, False]
    assert step.ids.tolist() == [2, 3]
    assert env.episode.step.tolist() == [1, 1, 0, 0, 1, 1]
    torch.testing.assert_close(step.signals["mate"][2], torch.tensor([APART, 0.0, 0.0]), atol=0.05, rtol=0.0)


def test_one_failure_ends_the_team_and_counts_for_all_of_its_robots() -> None:
    env = VecEnv(Pair(), 2, fixed=STILL)
    column = env.levels.names.index("initial/tilt")
    env.levels.level[:, column] = 0.5
    env.plant.current.angular_velocity[1] = 1e6
    step = env.step(commands(env))
    assert step.failed.tolist() == [True, True, False, False]
    assert env.levels.level[:, column].tolist() == [0.25, 0.25, 0.5, 0.5]


def test_a_robot_that_diverged_ends_its_team_alone() -> None:
    env = VecEnv(Pair(), 2, fixed=STILL)
    env.plant.current.linear_velocity[2, 0] = float("nan")
    step = env.step(commands(env))
    assert step.failed.tolist() == [False, False, True, True]
    assert step.reward[2] == 0.0
    assert all(value.isfinite().all() for value in (*step.signals.values(), *step.final_signals.values(), step.reward))
    assert env.diverged >= 1


def test_a_team_succeeds_when_all_have_and_fails_as_its_task_says() -> None:
    env = VecEnv(Landed(), 3, fixed=STILL)
    place = env.plant.current.position
    place[0, 2] = place[1, 2] = -0.2  # both low
    place[2, 2] = -0.95  # one lost
    step = env.step(commands(env))
    assert step.succeeded.tolist() == [True, True, False, False, False, False]
    assert not step.failed.any()
    place[4, 2] = place[5, 2] = -0.95  # both lost
    step = env.step(commands(env))
    assert step.failed.tolist() == [False, False, False, False, True, True]
    env.episode.step[:] = env.episode_steps - 1
    step = env.step(commands(env))
    assert step.timeout.all()


def test_a_team_goes_on_elsewhere_bit_by_bit() -> None:
    first, other = VecEnv(Pair(), 4, seed=1), VecEnv(Pair(), 2, seed=7)
    speeds = 2000 * torch.rand(150, 8, 4, generator=torch.Generator().manual_seed(0))
    for speed in speeds[:20]:
        first.step({"rotor_speed": speed})
    ids, there = torch.tensor([4, 5]), torch.tensor([2, 3])
    other.set_state(there, first.state(ids))
    ends = 0
    for speed in speeds[20:]:
        mine = torch.zeros(4, 4)
        mine[there] = speed[ids]
        ours, theirs = first.step({"rotor_speed": speed}), other.step({"rotor_speed": mine})
        for name, value in ours.signals.items():
            assert torch.equal(value[ids], theirs.signals[name][there])
        assert torch.equal(ours.reward[ids], theirs.reward[there])
        ends += int(ours.failed[ids].any())
    assert ends > 0


def test_ppo_trains_one_policy_for_all_robots_of_teams() -> None:
    torch.manual_seed(0)
    task = Pair()
    config = PpoConfig(environments=8, horizon=8, updates=2, hidden=(16,), critic_hidden=(16,), mini_batches=2)
    learner = Learner(task, PolicyGraph(task, config.hidden, config.activation, config.normalize), config, seed=0)
    assert learner.env.n == 16
    metrics = learner.update()
    assert learner.environment_steps == 8 * 8 * 2
    assert metrics["reward"] == pytest.approx(metrics["reward"])


def test_the_analytic_gradient_of_teams_is_that_of_differences_and_goes_through_what_mates_do() -> None:
    from robo_rl.learn.apg import Learner as Apg

    torch.manual_seed(0)
    task, config = Pair(), ApgConfig(environments=3, horizon=6, hidden=(8,))
    task.spec = dataclasses.replace(task.spec, reward={"distance": 1.0})
    learner = Apg(task, PolicyGraph(task, config.hidden, config.activation), config, seed=0)
    tape, weight = learner.tape, learner.policy.network[0].weight
    with torch.no_grad():
        learner.policy.network[-1].weight.mul_(100.0)
    tape.forward()
    tape.backward()
    slope, step = weight.grad, 0.02
    way = slope / slope.norm()
    found = []
    for side in (1.0, -1.0):
        with torch.no_grad():
            weight.add_(side * step * way)
            found.append(float(tape.forward()))
            weight.sub_(side * step * way)
    assert -float((slope * way).sum()) == pytest.approx((found[0] - found[1]) / (2 * step), rel=0.05)


def test_the_analytic_gradient_trains_teams_and_goes_on_from_a_checkpoint_bit_by_bit() -> None:
    from robo_rl.learn.apg import Learner as Apg

    def new() -> Apg:
        torch.manual_seed(0)
        task, config = Pair(), ApgConfig(environments=3, horizon=6, hidden=(8,), updates=4)
        return Apg(task, PolicyGraph(task, config.hidden, config.activation), config, seed=0)

    def weights(learner: Apg) -> torch.Tensor:
        return torch.cat([value.flatten() for value in learner.policy.state_dict().values()])

    first, later = new(), new()
    for _ in range(2):
        first.update()
    assert first.environment_steps == 2 * 6 * 6
    tensors, numbers = first.save()
    later.policy.load_state_dict(first.policy.state_dict())
    later.load({name: value.clone() for name, value in tensors.items()}, numbers)
    for learner in (first, later):
        for _ in range(12):  # through the ends of episodes
            learner.tape.world.episode.step[2:4] = 499.0
            learner.update()
    assert torch.equal(weights(first), weights(later))
    assert first.skipped == 0


def test_episodes_begin_again_where_a_team_was_before_its_mishap() -> None:
    from robo_rl.learn.apg import Learner as Apg

    torch.manual_seed(0)
    task, config = Pair(), ApgConfig(environments=4, horizon=5, hidden=(8,), replay=1.0)
    learner = Apg(task, PolicyGraph(task, config.hidden, config.activation), config, seed=0)
    tape = learner.tape
    begun = tape.world.state.position
    begun[3] = begun[2] + torch.tensor([0.35, 0.0, 0.0])
    tape.world.state.linear_velocity[3] = torch.tensor([-3.0, 0.0, 0.0])  # meets its mate within the horizon
    learner.env.continue_from(tape.world.state, tape.world.episode, tape.world.goal, torch.zeros_like(tape._terms))
    before = {name: value[2:4].clone() for name, value in tape.world.state._asdict().items()}
    mass = learner.env.plant.param("mass")[2:4].clone()
    learner.update()
    assert len(learner.replay.moments) == 1
    assert tape.world.episode.step[2:4].tolist() == [0.0, 0.0]
    for name, value in tape.world.state._asdict().items():
        assert torch.equal(value[2:4], before[name])
    assert torch.equal(learner.env.plant.param("mass")[2:4], mass)
    tensors = learner.save()[0]
    other = Apg(task, PolicyGraph(task, config.hidden, config.activation), config, seed=1)
    other.load({name: value.clone() for name, value in tensors.items()}, {"done": 1})
    assert torch.equal(other.replay.moments[0][0].kept, learner.replay.moments[0][0].kept)
    for _ in range(12):
        learner.update()
    assert all(uses < 10 for _, uses in learner.replay.moments)


def test_an_evaluation_counts_teams() -> None:
    class Still:
        def initial_state(self, n: int) -> torch.Tensor:
            return torch.zeros(n, 0)

        def __call__(self, signals: Any, state: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
            return {"rotor_speed": torch.full((len(state), 4), 0.0)}, state

    found = rollout(Pair(), Still(), Conditions(episodes=7, seconds=1.0, recorded=2))
    assert len(found) == 7
    assert not found.survived.any()
    assert found.recording["position"].shape[1] == 4


def test_the_end_of_a_team_s_episode_is_told_to_learners() -> None:
    env = LearningEnv(VecEnv(Pair(), 2, fixed=STILL))
    env.env.plant.current.position[1] = torch.tensor([9.0, 0.0, 0.0])
    step = env.step(torch.zeros(4, 4))
    assert step.done.tolist() == [True, True, False, False]
    assert step.final_observation.shape == (2, Pair().observation_size)


def test_gymnasium_wants_whole_teams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robo_rl.adapters.gym.load_task", lambda name, robot: Pair())
    assert TaskVectorEnv("pair", 4).observed.env.n == 4
    with pytest.raises(ValueError, match="num_envs is 3; expected a multiple of the 2 robots of a team"):
        TaskVectorEnv("pair", 3)
