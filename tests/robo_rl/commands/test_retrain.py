"""``robo-rl retrain``: what it refuses, what it writes, and that the new policy is better on the robot of the log."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from robo_rl.commands.own_robots.retrain import main as retrain
from robo_rl.commands.running.record import main as record
from robo_rl.contract import Network, Provenance
from robo_rl.deploy.robot.logs.reader import Log
from robo_rl.identification.estimate import Estimate, Unknown
from robo_rl.identification.retraining import better, bounds_with, origin_of, ratio, require_log, widened
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks.loading import load_task

HIDDEN = {
    "mass": 1.15, "thrust": 0.92, "inertia": 1.6, "rise_time": 1.25, "fall_time": 1.4, "delay": 0.012,
    "thrust_of_one_rotor": 1.0, "initial/tilt": 0.0, "initial/position": 0.0, "goal/size": 0.4, "goal/period": 8.0,
}  # fmt: skip


def empty(task: str, digest: str, path: str = "one.mcap") -> Log:
    """A log of a policy for a task, without steps."""
    made = Provenance("apg", 0, 1, digest)
    return Log(Path(path), load_task(task).spec.contract(made, Network((8,), "tanh", False)), {})


def test_a_log_of_another_robot_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one\.mcap: it is of go2-flat on the robot 'go2'; expected quadrotor-track"):
        require_log(empty("go2-flat", "0" * 64), origin_of("zoo:quadrotor-track"))


def test_a_log_of_another_policy_is_refused() -> None:
    origin = origin_of("zoo:quadrotor-track")
    with pytest.raises(ValueError, match=r"it is of another policy \(00000000\) than .*expected a log of this one"):
        require_log(empty("quadrotor-track", "0" * 64), origin)
    with pytest.raises(ValueError, match="no control step of it can be read"):
        require_log(empty("quadrotor-track", origin.configuration_digest), origin)


def test_a_log_of_a_robot_with_other_figures_is_refused() -> None:
    origin, log = origin_of("zoo:quadrotor-track"), empty("quadrotor-track", "0" * 64)
    facts = dataclasses.replace(log.contract.robot, name="crazyflie2")
    with pytest.raises(ValueError, match="on the robot 'crazyflie2'; expected quadrotor-track on 'crazyflie'"):
        require_log(dataclasses.replace(log, contract=dataclasses.replace(log.contract, robot=facts)), origin)


def test_a_file_that_is_no_log_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    garbled = tmp_path / "garbled.mcap"
    garbled.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(ValueError, match=r"garbled\.mcap"):
        retrain("zoo:quadrotor-track", (garbled,), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"episodes": 0}, "--episodes is 0; expected 1 or more"),
        ({"margin": 0.5}, "--margin is 0.5; expected 0 to below 0.5"),
        ({"margin": float("nan")}, "--margin is nan"),
        ({"out": Path("ranges.txt")}, "--out"),
    ],
)
def test_options_out_of_their_bounds_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        retrain("zoo:quadrotor-track", (Path("nosuch.mcap"),), **options)


def test_factors_get_a_margin_and_other_quantities_none() -> None:
    ranges = {"mass": Range.fixed(0.9, 1.1, unit="×"), "delay": Range.fixed(0.0, 0.02, unit="s")}
    told = bounds_with({"mass": (1.0, 1.2), "delay": (0.01, 0.012)}, ranges, 0.1)
    assert told["mass"] == pytest.approx((0.9, 1.32))
    assert told["delay"] == (0.01, 0.012)


def test_what_is_found_outside_of_a_range_but_not_determined_widens_it() -> None:
    payload = Unknown("payload", "kg", 0.0, -3.0, 20.0, 5.0, 0.5, bias=0.25, enough=0.5, factor=False)
    ranges = {"payload": Range.fixed(0.0, 2.0, unit="kg")}
    assert widened([Estimate(payload, 4.5, 0.7)], ranges, {}) == {"payload": pytest.approx((0.0, 5.9))}
    assert widened([Estimate(payload, 2.5, 0.7)], ranges, {}) == {}
    assert widened([Estimate(payload, 4.5, 0.7, "its end")], ranges, {}) == {}
    assert widened([Estimate(payload, 4.5, 0.1)], ranges, {"payload": (4.3, 4.7)}) == {}


def test_a_policy_is_better_by_success_where_intervals_are_apart_else_by_its_errors() -> None:
    low, high, same = ({"success_low": a, "success_high": b} for a, b in ((0.2, 0.4), (0.6, 0.8), (0.3, 0.7)))
    assert better(low, high, float("nan"))
    assert not better(high, low, 0.5)
    assert better(low, same, 0.9)
    assert better(same, low, 0.9)
    assert not better(low, same, 1.1)
    assert not better(low, same, float("nan"))


def test_the_ratio_of_errors_is_that_of_root_mean_squares_within_its_interval() -> None:
    draw = np.random.default_rng(1)
    old = draw.uniform(0.5, 1.5, 400)
    new = 0.4 * old * draw.uniform(0.9, 1.1, 400)
    told = ratio(old, new, squared=True)
    assert told["ratio"] == pytest.approx(np.sqrt(np.mean(new**2) / np.mean(old**2)))
    assert told["ratio_low"] < told["ratio"] < told["ratio_high"]
    assert ratio(old, 0.4 * old, squared=False)["ratio_high"] == pytest.approx(0.4)
    assert np.isnan(ratio(old[:0], new[:0], squared=True)["ratio"])


@pytest.mark.release
def test_a_policy_is_trained_again_for_the_robot_of_its_log_and_gets_better_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "flight.mcap"
    record(Path("zoo:quadrotor-track"), log, 20.0, 5, HIDDEN)
    capsys.readouterr()
    code = retrain("zoo:quadrotor-track", (log,), runs=tmp_path, name="new", updates=90, episodes=100, json=True)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0
    assert told["comparison"]["better"]
    assert told["comparison"]["ratio_high"] < 1.0
    written = tomllib.loads((tmp_path / "flight.toml").read_text())
    low, high = written["ranges"]["thrust"]
    assert low < HIDDEN["thrust"] / HIDDEN["mass"] < high
    assert "# as in the task: force, torque, wind, noise" in (tmp_path / "flight.toml").read_text().splitlines()
    run = Run.open(tmp_path / "new")
    assert run.ranges["thrust"] == pytest.approx([low, high], rel=1e-5)
