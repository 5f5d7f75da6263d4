"""A car goes the way of every other robot: training, export, checks, firmware, pictures, the simulated robot in ROS."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.contract import Scan
from robo_rl.controllers.gate.codes import Reason, Request
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host, host_flags
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, INSTALL, build_replay
from robo_rl.deploy.build.firmware.parity import parity, recorded_flights
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.runtime import Policy, SignalError
from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.report.car import lines
from robo_rl.sim.tasks.car.race import CarRace

MISSING = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
Robo = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run_folder(trained: Callable[..., Path]) -> Path:
    """A run of two updates: it drives slowly into a wall."""
    return trained("car-race", "--ppo.updates", "2", "--ppo.environments", "32", "--ppo.horizon", "8")


@pytest.fixture(scope="module")
def bundle_file(run_folder: Path, exported: Callable[[Path], Path]) -> Path:
    return exported(run_folder)


def test_its_contract_tells_the_scan_and_the_actuators(bundle_file: Path) -> None:
    contract = Bundle.read(bundle_file).contract
    scan = contract.signals[0]
    assert isinstance(scan.layout, Scan)
    assert (scan.shape, scan.layout.range_max) == ((64,), 10.0)
    assert scan.layout.angle_min + 63 * scan.layout.angle_increment == pytest.approx(-scan.layout.angle_min)
    assert [(a.name, a.unit) for a in contract.robot.actuators] == [("steering", "rad"), ("drive", "m/s")]
    policy = Policy.load(bundle_file, rate_hz=40)
    signals = {"scan": np.full(64, 2.0), "wheel_speed": np.zeros(1), "yaw_rate": np.zeros(1)}
    commands = policy.step({name: value.astype(np.float32) for name, value in signals.items()})
    assert set(commands) == {"steering_angle", "speed"}


def test_the_file_is_verified(bundle_file: Path, robo: Robo) -> None:
    assert robo("verify", bundle_file, "--episodes", 20, "--min-success", 0)["passed"]


def test_firmware_drives_bit_for_bit_as_on_the_computer(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    made = robo("firmware", bundle_file, "--target", "host", "--out", tmp_path / "c", "--run")
    assert made["passed"]


@pytest.mark.firmware
@pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not found; {INSTALL}")
def test_a_policy_of_64_beams_on_a_cortex_m_is_onnxruntimes_within_1e_5(bundle_file: Path, tmp_path: Path) -> None:
    """40 steps (1 s) of 2 laps, and 200 scans of random numbers."""
    bundle, target = Bundle.read(bundle_file), TARGETS["cortex-m4"]
    made = generate(bundle, tmp_path)
    driven = {name: value[:40] for name, value in recorded_flights(bundle, 2).items()}
    random = np.random.default_rng(0)
    drawn = {
        signal.name: random.uniform(*signal.bounds, (100, 2, *signal.dimensions)).astype(np.float32)
        for signal in bundle.contract.signals
    }
    image = build_replay(made, target)
    for signals in (driven, drawn):
        found = parity(bundle, compile_host(made), image, target, signals)
        assert found.target <= 1e-5
        assert found.identical or not host_flags()


def test_a_scan_with_a_beam_that_is_not_known_is_refused_by_the_policy_and_by_the_gate(bundle_file: Path) -> None:
    """REP 117: infinity, which is nothing within range, comes as the scan's range_max; NaN is no measurement."""
    policy, contract = Policy.load(bundle_file, rate_hz=40), Bundle.read(bundle_file).contract
    config = GateConfig.from_contract(contract)
    good = {"scan": np.full(64, 2.0, np.float32), "wheel_speed": np.zeros(1, np.float32), "yaw_rate": np.float32([0.1])}
    for value in (np.nan, np.inf, -np.inf):
        scan = good["scan"].copy()
        scan[33] = value
        before = policy.step(good)
        with pytest.raises(SignalError, match="'scan'"):
            policy.step({**good, "scan": scan})
        assert set(policy.step(good)) == set(before)
        signals, stamps = config.flat_signals({name: (v, 0) for name, v in {**good, "scan": scan}.items()})
        given = Inputs(signals=signals, stamps=stamps, time=0, requests=Request.ARM, bundle_intact=True)
        _, output = step(config, initial(config), given)
        assert (output.problem.reason, output.problem.channel, output.problem.element) == (
            Reason.SIGNAL_NOT_FINITE,
            0,
            33,
        )
        assert (output.command == 0).all()
    free = {**good, "scan": np.full(64, contract.signals[0].layout.range_max, np.float32)}
    assert np.isfinite(policy.step(free)["speed"]).all()


def test_it_is_drawn_with_its_track(run_folder: Path, tmp_path: Path, robo: Robo) -> None:
    picture = tmp_path / "car.png"
    robo("play", run_folder, "--picture", picture, "--seconds", 2)
    assert picture.stat().st_size > 5_000


def test_a_report_has_a_map_of_each_track_with_the_line_that_was_driven() -> None:
    task = CarRace()
    episodes = rollout(task, ControllerPolicy(task), Conditions(8, 0, 1.5, recorded=6))
    figure = lines(episodes, task.spec.control_period)
    *maps, bar = figure.axes
    assert len(maps) == 6
    assert bar.get_ylabel() == "speed, m/s"
    for i, axes in enumerate(maps):
        left, right = (line.get_xydata() for line in axes.lines[:2])
        np.testing.assert_array_equal(left[0], left[-1])
        (way,) = axes.collections
        driven = np.array([segment[0] for segment in way.get_segments()])
        width = float(episodes.drawn["track/width"][i])
        nearest = np.linalg.norm(driven[:, None] - np.concatenate([left, right]), axis=-1).min(1)
        assert float(nearest.max()) < 0.5 * width + 0.2


def test_the_simulated_robot_stands_until_it_is_commanded() -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    twin = twins.make_twin("car-race")
    begun = twin.truth()["position"].copy()
    for _ in range(20):
        twin.step(None)
        assert twin.measure()["scan"].shape == (64,)
    np.testing.assert_array_equal(twin.truth()["position"], begun)
    for _ in range(20):
        twin.step({"steering_angle": np.array([0.0], np.float32), "speed": np.array([2.0], np.float32)})
    assert np.linalg.norm(twin.truth()["position"] - begun) > 0.3


def test_a_policy_of_drawn_tracks_laps_the_track_of_a_file(robo: Robo) -> None:
    result = robo(
        "evaluate", "zoo:car-race", "--task", "examples/own_track/race.py:OwnTracks", "--episodes", "60",
        "--fixed", "track/choice", "0",
    )  # fmt: skip
    assert result["success"] > 0.9  # 100 % of 300
