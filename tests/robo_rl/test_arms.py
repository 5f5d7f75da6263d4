"""Arms from the command line: a policy that has hardly learnt is its script, and goes all the way to the robot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.arm.place import Place

Robo = Callable[..., dict[str, Any]]


OWN = str(Path(__file__).parents[2] / "examples" / "own_arm" / "card.toml")


@pytest.fixture(scope="module")
def run_folder(trained: Callable[..., Path]) -> Path:
    """A run of one update."""
    return trained("arm-place", "--ppo.updates", "1", "--ppo.environments", "32", "--ppo.horizon", "8")


@pytest.fixture(scope="module")
def bundle_file(run_folder: Path, exported: Callable[[Path], Path]) -> Path:
    return exported(run_folder)


@pytest.mark.parametrize(
    "robot",
    ["panda", "so101", pytest.param(OWN, marks=pytest.mark.release)],
    ids=["panda", "so101", "own"],
)
def test_the_script_alone_places_the_cube_in_most_held_out_episodes(robot: str, robo: Robo) -> None:
    found = robo("evaluate", "classical", "--task", "arm-place", "--robot", robot, "--episodes", 60)
    assert found["success"] > 0.9
    assert found["cube_position_error_mean_m"] < 0.01


@pytest.mark.slow
def test_its_bundle_tells_the_chain_and_is_proved(bundle_file: Path, robo: Robo) -> None:
    contract = Bundle.read(bundle_file).contract
    assert contract.robot.kind == "arm"
    assert len(contract.robot.facts["chain"]) == 7
    assert contract.command("tool_position_target").law.kind == "impedance"  # type: ignore[union-attr]
    assert robo("verify", bundle_file, "--episodes", 20)["passed"]


@pytest.mark.slow
def test_its_firmware_places_a_cube(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    made = robo("firmware", bundle_file, "--target", "host", "--fly", 1, "--task", "arm-place", "--out", tmp_path / "c")
    assert made["passed"]
    assert made["loop"]["different"] == 0


@pytest.mark.slow
def test_it_is_drawn_and_recorded(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    picture = tmp_path / "arm.png"
    robo("play", bundle_file, "--picture", picture)
    assert picture.stat().st_size > 10_000
    robo("record", bundle_file, "--seconds", 2, "--out", tmp_path / "log.mcap")


def test_episodes_with_a_held_cube_can_be_gone_back_to() -> None:
    task = Place()
    env, ids = VecEnv(task, 4, seed=1), torch.arange(4)
    commands = task.command(torch.zeros(4, 4), task.first_memory(4))
    for _ in range(5):
        env.step(commands)
    kept = env.state(ids)
    first = [env.step(commands).signals["cube_position"].clone() for _ in range(5)]
    env.set_state(ids, kept)
    again = [env.step(commands).signals["cube_position"].clone() for _ in range(5)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_simulated_robot_of_it_is_held_until_it_is_commanded_and_keeps_its_grip_in_a_stop() -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    twin = twins.make_twin("arm-place")
    begun = twin.truth()["tool_position"].copy()
    for _ in range(10):
        twin.step(None)
    np.testing.assert_array_equal(twin.truth()["tool_position"], begun)
    told = {
        "tool_position_target": begun + np.array([0.0, 0.03, 0.0], np.float32),
        "gripper_position_target": np.zeros(1, np.float32),
    }
    for _ in range(25):
        twin.step(told)
    moved = twin.truth()
    assert moved["tool_position"][1] - begun[1] > 0.02
    assert moved["gripper_position"][0] < 0.005
