"""Control periods from 50 µs to 10 s: time is counted in steps, and nothing is lost on the way."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.sim.env import VecEnv
from robo_rl.sim.sensors import LARGE


class Push:
    """A constant force."""

    def __init__(self, force: float) -> None:
        self.force = force

    def initial_state(self, n: int) -> torch.Tensor:
        return torch.zeros(n, 0)

    def __call__(self, signals: Any, state: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return {"force": torch.full((len(state), 1), self.force)}, state


@pytest.mark.parametrize(("period", "seconds", "steps"), [(5e-5, 0.02, 400), (5e-5, 0.0101, 202), (10.0, 60.0, 6)])
def test_an_episode_has_as_many_steps_as_its_time(rail: Any, period: float, seconds: float, steps: int) -> None:
    env = VecEnv(rail(period, seconds), 2, fixed={"start": 0.0})
    assert env.episode_steps == steps
    commands = {"force": torch.zeros(2, 1)}
    ends = [k for k in range(1, 3 * steps + 1) if env.step(commands).timeout.all()]
    assert ends == [steps, 2 * steps, 3 * steps]


def test_time_does_not_drift_over_many_steps(rail: Any) -> None:
    env = VecEnv(rail(5e-5, 100.0), 1, fixed={"start": 0.0})
    env.episode.step[:] = 1_999_998
    assert not env.step({"force": torch.zeros(1, 1)}).timeout
    assert float(env.time) == pytest.approx(1_999_999 * 5e-5, rel=1e-7)
    assert env.step({"force": torch.zeros(1, 1)}).timeout


def test_an_endless_episode_ends_before_steps_can_no_longer_be_counted(rail: Any) -> None:
    env = VecEnv(rail(5e-5), 1, episode_length=1e6)
    env.episode.step[:] = (1 << 24) - 2
    assert env.step({"force": torch.zeros(1, 1)}).timeout


def test_a_fast_step_moves_as_physics_tells(rail: Any) -> None:
    env = VecEnv(rail(5e-5, 1.0), 1, fixed={"start": 0.0, "mass": 1.0})
    for _ in range(2000):
        step = env.step({"force": torch.full((1, 1), 10.0)})
    assert float(env.plant.current.position) == pytest.approx(0.5 * 10.0 * 0.1**2, rel=1e-3)
    assert float(step.signals["velocity"]) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    ("period", "longest", "lag"), [(5e-5, 2e-4, 1.25e-4), (5e-5, 0.04, 0.0301), (10.0, 25.0, 12.5)]
)
def test_latency_is_exact_at_every_rate(
    rail: Any, distance_signal: Any, period: float, longest: float, lag: float
) -> None:
    """A short past in the loop over single numbers, and a long one beside it."""
    task = rail(period, 1e4 * period, position=distance_signal("position", delay=(0.0, longest)))
    env = VecEnv(task, 3, fixed={"delay/position": lag, "start": 0.0})
    large = longest / period > LARGE
    assert [bool(env.sensors.large), bool(env.sensors.groups[0].steps)] == [large, not large]
    env.plant.current.velocity[:] = 1e-3 / period
    count = round(longest / period) + 20
    for _ in range(count):
        step = env.step({"force": torch.zeros(3, 1)})
    expected = 1e-3 * (count - lag / period)
    torch.testing.assert_close(step.signals["position"], torch.full((3, 1), expected), rtol=1e-4, atol=1e-6)


def test_evaluation_at_50_microseconds_measures_in_the_time_that_the_task_says(rail: Any) -> None:
    fixed = {"start": 0.0, "mass": 1.0}
    found = rollout(rail(5e-5, 0.02), Push(1.0), Conditions(episodes=3, fixed=fixed)).summary()
    mean = sum(0.5 * (5e-5 * k) ** 2 for k in range(400)) / 400
    assert found["distance_mean_m"] == pytest.approx(mean, rel=1e-3)
    assert found["success"] == 1.0


@pytest.mark.parametrize("over", ["mean", "end"])
def test_windows_of_time_are_those_of_the_measure(rail: Any, over: Any) -> None:
    from robo_rl.sim.tasks import Measure

    task = rail(0.01, 1.0)
    positions = [0.5 * (0.01 * k) ** 2 for k in range(100)]
    for seconds, counted in ((0.25, positions[25:] if over == "mean" else positions[-25:]), (5.0, positions)):
        task.measures = (Measure("distance", "m", over, seconds=seconds),)
        fixed = {"start": 0.0, "mass": 1.0}
        found = rollout(task, Push(1.0), Conditions(episodes=2, fixed=fixed)).summary()
        assert found["distance_mean_m"] == pytest.approx(sum(counted) / len(counted), rel=1e-4)


def test_a_long_window_at_the_end_of_a_fast_episode_is_exact_to_its_slots(rail: Any) -> None:
    from robo_rl.sim.tasks import Measure

    task = rail(5e-5, 0.2)
    task.measures = (Measure("distance", "m", "end", seconds=0.1),)
    found = rollout(task, Push(1.0), Conditions(episodes=2, fixed={"start": 0.0, "mass": 1.0})).summary()
    counted = [0.5 * (5e-5 * k) ** 2 for k in itertools.islice(range(4000), 2000, None)]
    assert found["distance_mean_m"] == pytest.approx(sum(counted) / len(counted), rel=2e-3)
