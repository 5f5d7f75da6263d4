"""An omnidirectional base goes the way of every other robot: training, export, checks, firmware, pictures, ROS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.deploy.robot.bundle import Bundle

Robo = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run_folder(trained: Callable[..., Path]) -> Path:
    """A run of two updates of a small network."""
    short = ("--ppo.updates", "2", "--ppo.environments", "32", "--ppo.horizon", "8")
    return trained("omni-nav", *short, "--ppo.hidden", "8", "--ppo.recurrent", "8")


@pytest.fixture(scope="module")
def bundle_file(run_folder: Path, exported: Callable[[Path], Path]) -> Path:
    return exported(run_folder)


def test_its_contract_tells_a_twist_with_a_lateral_speed_and_its_limits(bundle_file: Path) -> None:
    contract = Bundle.read(bundle_file).contract
    told = {c.name: (c.elements, c.unit, c.lower, c.upper) for c in contract.commands}
    assert told == {
        "forward_speed": (("vx",), "m/s", (-0.4,), (0.8,)),
        "turn_rate": (("wz",), "rad/s", (-1.5,), (1.5,)),
        "lateral_speed": (("vy",), "m/s", (-0.8,), (0.8,)),
    }
    assert contract.signal("wheel_speed").elements == ("x", "y")
    assert contract.robot.kind == "omni_base"


@pytest.mark.release  # but for a third number of each command, it is the graph of zoo:diff-nav
def test_firmware_drives_bit_for_bit_as_on_the_computer(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    assert robo("firmware", bundle_file, "--target", "host", "--out", tmp_path / "c", "--run")["passed"]


def test_it_is_drawn_in_its_room(run_folder: Path, tmp_path: Path, robo: Robo) -> None:
    picture = tmp_path / "base.png"
    robo("play", run_folder, "--picture", picture, "--seconds", 1)
    assert picture.stat().st_size > 5_000


@pytest.mark.slow
@pytest.mark.release  # but for a third number of each command, it is the graph of zoo:diff-nav
def test_the_file_is_verified(bundle_file: Path, robo: Robo) -> None:
    assert robo("verify", bundle_file, "--episodes", 10, "--min-success", 0)["passed"]


def test_the_simulated_robot_goes_sideways_and_stays_where_it_touches_something() -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    twin = twins.make_twin("omni-nav")
    begun = twin.truth()
    left = np.array([-np.sin(begun["heading"][0]), np.cos(begun["heading"][0])])
    still = {"forward_speed": np.float32([0.0]), "turn_rate": np.float32([0.0])}
    for _ in range(5):
        twin.step({**still, "lateral_speed": np.float32([0.3])})
    moved, velocity = twin.truth()["position"] - begun["position"], twin.truth()["linear_velocity"]
    assert moved[:2] @ left == pytest.approx(np.linalg.norm(moved), rel=1e-3)
    assert velocity[:2] @ left == pytest.approx(0.29, abs=0.03)
    for _ in range(600):
        twin.step({**still, "lateral_speed": np.float32([0.3])})
    assert twin.truth()["clearance"][0] == 0.0
    place = twin.truth()["position"]
    twin.step({**still, "lateral_speed": np.float32([0.3])})
    np.testing.assert_array_equal(twin.truth()["position"], place)
    assert (twin.truth()["velocity"] == 0.0).all()
