"""A mobile base goes the way of every other robot: export, checks, firmware, pictures, ROS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.contract import Scan
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.zoo import located

Robo = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def bundle_file() -> Path:
    return located("zoo:diff-nav")


def test_its_contract_tells_a_slow_scan_a_goal_and_a_twist(bundle_file: Path) -> None:
    contract = Bundle.read(bundle_file).contract
    scan = contract.signal("scan")
    assert isinstance(scan.layout, Scan)
    assert (scan.shape, scan.period, scan.layout.range_max) == ((60,), 0.2, 3.5)
    assert contract.signal("position_setpoint").source == "operator"
    assert [(c.elements, c.unit) for c in contract.commands] == [(("vx",), "m/s"), (("wz",), "rad/s")]


@pytest.mark.release  # an export of such a graph takes half a minute
def test_what_is_trained_and_exported_is_verified(
    trained: Callable[..., Path], exported: Callable[[Path], Path], robo: Robo
) -> None:
    run = trained("diff-nav", "--ppo.updates", "2", "--ppo.environments", "32", "--ppo.horizon", "8")
    assert robo("verify", exported(run), "--episodes", 10, "--min-success", 0)["passed"]


def test_firmware_drives_bit_for_bit_as_on_the_computer(bundle_file: Path, tmp_path: Path) -> None:
    made = generate(Bundle.read(bundle_file), tmp_path)
    assert compile_host(made, ["-O1"]).self_test() <= made.tolerance  # 33,000 lines, with -O3 in 16 s, not 7


def test_it_is_drawn_in_its_room(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    picture = tmp_path / "base.png"
    robo("play", bundle_file, "--picture", picture, "--seconds", 2)
    assert picture.stat().st_size > 5_000


def test_the_simulated_robot_moves_by_its_commands_and_stays_where_it_touches_something() -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    twin = twins.make_twin("diff-nav")
    begun = twin.truth()["position"].copy()
    for _ in range(5):
        twin.step(None)
    np.testing.assert_array_equal(twin.truth()["position"], begun)
    ahead = {"forward_speed": np.float32([0.2]), "turn_rate": np.float32([0.0])}
    for _ in range(600):
        twin.step(ahead)
    assert twin.truth()["clearance"][0] == 0.0
    place = twin.truth()["position"]
    assert np.linalg.norm(place - begun) > 0.1
    twin.step(ahead)
    np.testing.assert_array_equal(twin.truth()["position"], place)
    assert twin.truth()["wheel_speed"][0] == 0.0


@pytest.mark.release
def test_a_policy_learns_to_cross_a_room_in_a_minute(trained: Callable[..., Path], robo: Robo) -> None:
    """Where there are few obstacles; at random nobody arrives."""
    run = trained("diff-nav", "--ppo.updates", "40")
    assert robo("evaluate", run, "--episodes", 60, "--fixed", "room/fill", "0.15")["success"] >= 0.3
