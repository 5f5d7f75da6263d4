"""Evaluation: statistics against published ones, the same flights for every pilot, and fair comparisons."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.evaluate.evaluation import (
    BATCH,
    HELD_OUT,
    Conditions,
    ControllerPolicy,
    Episodes,
    perturbations,
    quantity,
    rollout,
    rollout_signals,
    sweep,
)
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks import Measure, Task
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover


class Constant:
    """Every rotor at the same part of its top speed, whatever happens."""

    def __init__(self, part: float, task: Task) -> None:
        self.speed = part * task.spec.robot.rotor_speed_max

    def initial_state(self, n: int) -> Tensor:
        return torch.zeros(n, 1)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        return {"rotor_speed": torch.full((len(state), 4), self.speed)}, state


@pytest.fixture(scope="module")
def hover() -> Task:
    return load_task("quadrotor-hover")


def flights_of(survived: int, total: int) -> Episodes:
    alive = np.arange(total) < survived
    error = np.where(alive, 0.1, np.nan)
    errors = {"position_error": error, "tracking_error": error}
    return Episodes(alive, alive, np.where(alive, 5.0, 1.0), QuadrotorHover.measures, errors)


@pytest.mark.parametrize(
    ("survived", "total", "low", "high"),
    # Newcombe 1998, Two-sided confidence intervals for the single proportion, table I, method 3 (score)
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_of_success_is_wilson_s_as_published(survived: int, total: int, low: float, high: float) -> None:
    summary = flights_of(survived, total).summary()
    assert summary["success_low"] == pytest.approx(low, abs=5e-5)
    assert summary["success_high"] == pytest.approx(high, abs=5e-5)
    assert summary["success"] == pytest.approx(survived / total)


def test_the_interval_of_success_solves_wilson_s_equation() -> None:
    z, n = 1.959963984540054, 1000
    for survived in (0, 1, 500, 993, 1000):
        p = survived / n
        summary = flights_of(survived, n).summary()
        centre, half = (p + z * z / (2 * n)), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        expected = (np.array([centre - half, centre + half]) / (1 + z * z / n)).clip(0, 1)
        np.testing.assert_allclose([summary["success_low"], summary["success_high"]], expected, atol=1e-12)


def test_the_summary_of_known_flights() -> None:
    flights = Episodes(
        survived=np.array([True, True, False, True]),
        success=np.array([True, True, False, True]),
        duration=np.array([5.0, 5.0, 1.0, 5.0]),
        measures=QuadrotorHover.measures,
        errors={
            "position_error": np.array([0.1, 0.2, np.nan, 0.6]),
            "tracking_error": np.array([0.3, 0.4, np.nan, 0.0]),
        },
    )
    summary = flights.summary()
    assert summary["episodes"] == 4
    assert summary["success"] == 0.75
    assert summary["position_error_mean_m"] == pytest.approx(0.3)
    assert summary["position_error_p95_m"] == pytest.approx(0.2 + 0.9 * 0.4)
    assert summary["tracking_error_rms_m"] == pytest.approx(np.sqrt(0.25 / 3))
    assert summary["duration_mean_s"] == pytest.approx(4.0)


def test_a_pilot_that_drops_the_robot_has_no_success(hover: Task) -> None:
    flights = rollout(hover, Constant(0.0, hover), Conditions(episodes=50))
    summary = flights.summary()
    assert summary["success"] == 0.0
    assert np.isnan(summary["position_error_mean_m"])
    # free fall beyond a metre: at most sqrt(2 · (1 + 0.2 m)/g) plus what an upward start of 1 m/s adds
    assert 0.2 < summary["duration_mean_s"] < 0.8
    assert flights.duration.max() < 1.0


def test_durations_and_errors_are_those_of_a_step_by_step_flight(hover: Task) -> None:
    pilot = ControllerPolicy(hover)
    conditions = Conditions(episodes=20, seed=4, recorded=20)
    flights = rollout(hover, pilot, conditions)
    recording, alive = flights.recording, flights.survived
    distance = np.linalg.norm(recording["position"] - recording["position_setpoint"], axis=-1)
    assert distance.shape == (500, 20)
    assert 5 < alive.sum() < 20
    np.testing.assert_allclose(flights.errors["position_error"][alive], distance[300:].mean(0)[alive], rtol=1e-4)
    np.testing.assert_allclose(
        flights.errors["tracking_error"][alive], np.sqrt((distance[100:] ** 2).mean(0))[alive], rtol=1e-4
    )
    np.testing.assert_allclose(flights.duration[alive], 5.0, rtol=1e-6)
    assert np.isnan(flights.errors["position_error"][~alive]).all()
    for robot in np.flatnonzero(~alive):
        steps = round(flights.duration[robot] / 0.01)
        assert distance[:steps, robot].max() <= 1.0
        assert distance[steps, robot] < 0.4, "a new flight begins near to the set-point"


def test_the_mean_error_of_a_short_flight_is_over_the_whole_of_it(hover: Task) -> None:
    flights = rollout(hover, ControllerPolicy(hover), Conditions(episodes=9, seconds=1.5, recorded=9))
    recording = flights.recording
    distance = np.linalg.norm(recording["position"] - recording["position_setpoint"], axis=-1)
    assert distance.shape == (150, 9)
    alive = flights.survived
    assert alive.sum() >= 2
    np.testing.assert_allclose(flights.errors["position_error"][alive], distance.mean(0)[alive], rtol=1e-4)


def test_the_error_of_no_flights_is_said_in_words() -> None:
    assert quantity(float("nan"), "m") == quantity(float("nan"), "rad/s") == "n/a (no episode without failure)"
    assert quantity(0.0421, "m") == "4.21 cm"
    assert [quantity(x, "s") for x in (30.511, 9.5)] == ["30.5 s", "9.500 s"]
    assert quantity(0.4207, "m") == "42.1 cm"


def test_robots_do_not_begin_again_while_a_long_flight_goes_on() -> None:
    task = copy.copy(load_task("quadrotor-hover"))
    task.failed = lambda truth: torch.zeros_like(truth["position"][:, 0]) > 1.0  # type: ignore[method-assign]
    flights = rollout(task, Constant(0.0, task), Conditions(episodes=1, seconds=450.0, recorded=1))
    height = flights.recording["position"][:, 0, 2]
    assert (np.diff(height[200:]) < 0).all(), "it falls on and on"


def test_the_same_conditions_give_two_pilots_the_same_flights(hover: Task) -> None:
    conditions = Conditions(episodes=30, seed=2, recorded=30)
    first = rollout(hover, Constant(0.0, hover), conditions).recording
    second = rollout(hover, Constant(1.0, hover), conditions).recording
    other = rollout(hover, Constant(0.0, hover), Conditions(episodes=30, seed=3, recorded=30)).recording
    for name in ("position", "orientation", "linear_velocity", "angular_velocity", "rotor_speed", "position_setpoint"):
        np.testing.assert_array_equal(first[name][0], second[name][0])
    for name in ("position", "orientation", "linear_velocity"):
        assert not np.array_equal(first[name][0], other[name][0])


def test_the_same_pilot_flies_the_same_flight_twice(hover: Task) -> None:
    first, second = (rollout(hover, ControllerPolicy(hover), Conditions(episodes=40, seed=1)) for _ in range(2))
    np.testing.assert_array_equal(first.errors["tracking_error"], second.errors["tracking_error"])


def test_what_was_to_be_seen_is_recorded_where_and_when_it_was(hover: Task) -> None:
    flights = rollout(hover, ControllerPolicy(hover), Conditions(episodes=3, seconds=1.2, recorded=2))
    motion, position = flights.motion, flights.recording["position"]
    assert motion is not None
    np.testing.assert_allclose(motion.poses[:, :, 0, :3], position, atol=1e-6)
    assert motion.period == hover.spec.control_period
    target = next(marker for marker in motion.markers if marker.name == "set-point")
    np.testing.assert_array_equal(target.position, flights.recording["position_setpoint"])


def test_robots_that_can_not_be_drawn_are_recorded_without_pictures(hover: Task) -> None:
    def undrawable(n: int) -> MultirotorPlant:
        plant = hover.make_plant(n, "cpu")
        plant.drawing = None  # as of a plant that has no such method
        return plant

    conditions = Conditions(episodes=2, seconds=1.2, recorded=2, make_plant=undrawable)
    flights = rollout(hover, ControllerPolicy(hover), conditions)
    assert flights.motion is None
    assert len(flights.recording["position"]) == 120


def test_more_episodes_than_one_batch_are_all_different(hover: Task) -> None:
    episodes = BATCH + 52
    flights = rollout(hover, Constant(0.0, hover), Conditions(episodes=episodes, seconds=1.1, recorded=3))
    assert len(flights) == episodes == flights.summary()["episodes"]
    assert flights.recording["position"].shape[1] == 3
    one = rollout(hover, Constant(0.0, hover), Conditions(episodes=BATCH, seconds=1.1))
    np.testing.assert_array_equal(flights.duration[:BATCH], one.duration)
    assert not np.array_equal(flights.duration[BATCH:], one.duration[:52])


def test_training_never_draws_from_the_seeds_of_evaluation(hover: Task, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="larger ones are reserved for evaluation"):
        Run.create(tmp_path, "quadrotor-hover", None, "apg", HELD_OUT, {})
    flown = rollout(hover, Constant(0.5, hover), Conditions(episodes=16, recorded=16)).recording["position"][0]
    held_out = VecEnv(hover, 16, seed=HELD_OUT, evaluation=True).plant.current.position
    np.testing.assert_array_equal(flown, held_out)
    for seed in range(20):
        assert not np.array_equal(VecEnv(hover, 16, seed=seed, evaluation=True).plant.current.position, held_out)


def test_a_fixed_range_holds_in_every_flight(hover: Task) -> None:
    conditions = Conditions(episodes=20, fixed={"initial/tilt": 0.5}, recorded=20)
    x, y = rollout(hover, Constant(0.5, hover), conditions).recording["orientation"][0].T[:2]
    np.testing.assert_allclose(np.arccos(1 - 2 * (x * x + y * y)), 0.5, atol=1e-4)


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        (Conditions(episodes=0), "episodes is 0; expected at least one"),
        (Conditions(seed=-1), "seed is -1; expected 0 or more"),
        (Conditions(seconds=0.01), "seconds is 0.01; expected 0.02 to 3600"),
        (Conditions(seconds=float("nan")), "seconds is nan; expected"),
        (Conditions(fixed={"magic": 1.0}), r"'magic' is not one of the task's ranges; expected one of \["),
        (Conditions(fixed={"mass": float("inf")}), "mass is inf; expected a finite number"),
    ],
)
def test_impossible_conditions_are_refused(hover: Task, conditions: Conditions, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rollout(hover, Constant(0.0, hover), conditions)


def test_signals_are_recorded_as_measured_and_failed_flights_begin_again(hover: Task) -> None:
    seen = rollout_signals(hover, Constant(0.0, hover), Conditions(episodes=8, seed=1))
    assert {name: value.shape for name, value in seen.items()} == {
        signal.name: (500, 8, signal.size) for signal in hover.spec.signals
    }
    np.testing.assert_allclose(np.linalg.norm(seen["orientation"], axis=-1), 1.0, atol=1e-5)
    jumps = np.linalg.norm(np.diff(seen["position"], axis=0), axis=-1).max(0)
    assert (jumps > 0.5).all(), "falling robots are put back to the start"


def test_a_sweep_fixes_one_range_at_a_time_to_each_of_its_values(hover: Task) -> None:
    pilot, conditions = Constant(0.6, hover), Conditions(episodes=40, seconds=1.1)
    table = sweep(hover, pilot, {"mass": [0.5, 1.0], "wind": [0.0]}, conditions)
    assert [row["value"] for row in table["mass"]] == [0.5, 1.0]
    assert [row["episodes"] for row in (*table["mass"], *table["wind"])] == [40, 40, 40]
    light, nominal = (row["duration_mean_s"] for row in table["mass"])
    assert light < nominal, "half the mass at the same thrust is soon a metre above"
    single = rollout(hover, pilot, dataclasses.replace(conditions, fixed={"wind": 0.0})).summary()
    np.testing.assert_equal(sweep(hover, pilot, {"wind": [0.0]}, conditions), {"wind": [{"value": 0.0, **single}]})


def test_a_sweep_goes_beyond_what_training_saw_on_both_sides(hover: Task) -> None:
    values = perturbations(hover)
    assert set(values) == {"mass", "thrust", "inertia", "rise_time", "delay", "wind", "noise"}
    for name in ("mass", "thrust", "inertia", "rise_time"):
        low, high = hover.spec.ranges[name].end
        assert values[name] == sorted(values[name])
        assert values[name][0] < low < 1.0 < high < values[name][-1]
    for name in ("delay", "wind", "noise"):
        assert values[name][0] == 0.0
        assert values[name][-1] > hover.spec.ranges[name].end[1]


def test_a_sweep_of_a_quantity_that_is_no_factor_is_about_the_middle_of_its_range(hover: Task) -> None:
    spec = dataclasses.replace(hover.spec, ranges={**hover.spec.ranges, "mass": Range.fixed(0.1, 0.3, unit="kg")})
    task = copy.copy(hover)
    task.spec, task.perturbed = spec, ("mass",)
    assert perturbations(task) == {"mass": [0.05, 0.1, 0.2, 0.3, 0.35]}


def test_what_was_drawn_is_told_of_every_episode(hover: Task) -> None:
    fixed = torch.linspace(0.9, 1.1, 30)
    found = rollout(hover, Constant(0.0, hover), Conditions(30, fixed={"mass": fixed}))
    np.testing.assert_array_equal(found.drawn["mass"], fixed.numpy())
    assert found.drawn["wind"].shape == (30, 3)
    np.testing.assert_array_equal(found.part(10, 20).drawn["mass"], fixed[10:20].numpy())


def test_a_diverged_flight_is_a_failure_and_poisons_no_other(hover: Task) -> None:
    class Poison(Constant):
        def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
            commands, state = super().__call__(signals, state)
            commands["rotor_speed"][3] = float("nan")
            return commands, state

    clean = rollout(hover, Constant(0.0, hover), Conditions(episodes=8))
    flights = rollout(hover, Poison(0.0, hover), Conditions(episodes=8))
    assert not flights.survived[3]
    assert flights.duration[3] == pytest.approx(0.01)
    others = np.arange(8) != 3
    np.testing.assert_array_equal(flights.duration[others], clean.duration[others])


def test_an_error_without_an_episode_to_take_it_from_is_said_once() -> None:
    from robo_rl.commands.looking.evaluate import _described

    measure = Measure("path_left", "m", "end", 0.1)
    nothing = {measure.key: math.nan, measure.tail_key: math.nan}
    assert _described(measure, nothing).count("no episode without failure") == 1
    assert "95 % of episodes below 2.000 m" in _described(measure, {measure.key: 1.0, measure.tail_key: 2.0})


def test_a_sweep_says_units_and_bounds_of_training(capsys: pytest.CaptureFixture[str]) -> None:
    from robo_rl.commands.looking.evaluate import _say_sweep

    task = load_task("quadrotor-hover")
    figures = dict.fromkeys((measure.key for measure in task.measures), 1.0)
    _say_sweep(task, "no failure", {"delay": [{"value": 0.03, "success": 0.5, **figures}]}, json=False)
    heading, row = capsys.readouterr().out.splitlines()
    assert heading == "  delay, s (trained on 0 to 0.02)"
    assert row.split()[:4] == ["0.03", "no", "failure", "50.00%"]
