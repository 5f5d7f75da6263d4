"""A kind of robot outside the package, examples/own_kind: everything that robo-rl does for its own kinds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task

FOLDER = Path(__file__).parents[2] / "examples" / "own_kind"
TASK = f"{FOLDER / 'balance.py'}:Balance"

Robo = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def task() -> Any:
    return load_task(TASK)


@pytest.fixture(scope="module")
def run_folder(trained: Callable[..., Path]) -> Path:
    """A run with the settings that the task has: some seconds."""
    return trained(TASK)


@pytest.fixture(scope="module")
def bundle_file(run_folder: Path, exported: Callable[[Path], Path]) -> Path:
    return exported(run_folder)


def test_the_package_does_not_know_the_kind(task: Any) -> None:
    kind = task.spec.robot.kind
    root = Path(__file__).parents[2]
    for folder in ("robo_rl", "sim", "controllers", "deploy", "ros2_ws"):
        assert [path for path in (root / folder).rglob("*.py") if kind in path.read_text()] == []


MODEL = """
<mujoco>
  <option timestep="0.0005" integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <body name="cart">
      <joint name="x" type="slide" axis="1 0 0" damping="{friction}"/>
      <geom type="sphere" size=".05" mass="{cart_mass}"/>
      <body name="pole">
        <joint name="angle" type="hinge" axis="0 1 0"/>
        <inertial pos="0 0 {pole_length}" mass="{pole_mass}" diaginertia="{inertia} {inertia} 1e-9"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>
"""


def test_its_plant_moves_as_mujoco_says(task: Any) -> None:
    card = task.card
    inertia = card.pole_mass * card.pole_length**2 / 3.0  # of a rod of twice that length, about its middle
    names = ("cart_mass", "pole_mass", "pole_length", "friction")
    model = mujoco.MjModel.from_xml_string(
        MODEL.format(inertia=inertia, **{name: getattr(card, name) for name in names})
    )
    data = mujoco.MjData(model)
    plant, ids = task.make_plant(1, "cpu"), torch.arange(1)
    start = plant.state(ids)
    data.qpos[:], data.qvel[:] = (0.1, 0.3), (-0.2, 0.5)
    plant.set_state(ids, type(start)(*(torch.tensor([[x]]) for x in (0.1, -0.2, 0.3, 0.5))))
    for k in range(50):
        data.ctrl[0] = 4.0 * np.sin(0.3 * k)
        mujoco.mj_step(model, data, round(task.spec.control_period / model.opt.timestep))
        plant.step({"cart_force": torch.tensor([[4.0 * np.sin(0.3 * k)]], dtype=torch.float32)})
    found = [float(part) for part in plant.state(ids)]
    np.testing.assert_allclose(found, [data.qpos[0], data.qvel[0], data.qpos[1], data.qvel[1]], rtol=2e-3, atol=2e-3)


def test_it_learns_and_is_compared_with_its_own_controller(run_folder: Path, robo: Robo) -> None:
    found = robo("evaluate", run_folder, "--episodes", 300)
    assert found["robot"] == "lab_cart"
    assert found["success_low"] > 0.95
    assert found["cart_position_error_mean_m"] < 0.03
    kept = run_folder / "source"
    assert sorted(path.name for path in kept.iterdir()) == sorted(
        path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".toml")
    )
    classical = robo("evaluate", "classical", "--task", TASK, "--episodes", 300)
    assert classical["success_low"] > 0.95


def test_its_bundle_tells_the_robot_and_is_proved(bundle_file: Path, robo: Robo) -> None:
    contract = Bundle.read(bundle_file).contract
    assert contract.robot.kind == "cartpole"
    assert [(a.name, a.unit, a.upper) for a in contract.robot.actuators] == [("cart", "N", 8.0)]
    assert contract.robot.facts["pole_mass"] == 0.127
    assert robo("verify", bundle_file, "--task", TASK, "--episodes", 100)["passed"]


def test_it_has_firmware_that_balances(bundle_file: Path, tmp_path: Path, robo: Robo) -> None:
    made = robo("firmware", bundle_file, "--target", "host", "--fly", 2, "--task", TASK, "--out", tmp_path / "c")
    assert made["passed"]
    assert made["loop"]["different"] == 0


def test_it_is_drawn_filmed_reported_and_recorded(
    run_folder: Path, bundle_file: Path, tmp_path: Path, robo: Robo
) -> None:
    picture, film, page = tmp_path / "cart.png", tmp_path / "cart.mp4", tmp_path / "report.html"
    robo("play", run_folder, "--picture", picture)
    robo("play", run_folder, "--video", film, "--seconds", 1, "--fps", 5)
    assert picture.stat().st_size > 10_000
    assert film.stat().st_size > 5_000
    robo("report", run_folder, "--episodes", 50, "--out", page)
    assert "cart position error" in page.read_text()
    robo("record", bundle_file, "--task", TASK, "--seconds", 2, "--out", tmp_path / "log.mcap")


def test_episodes_can_be_gone_back_to(task: Any) -> None:
    env, ids = VecEnv(task, 4, seed=1), torch.arange(4)
    for _ in range(10):
        env.step({"cart_force": torch.ones(4, 1)})
    kept = env.state(ids)
    first = [env.step({"cart_force": torch.ones(4, 1)}).signals["pole_angle"].clone() for _ in range(10)]
    env.set_state(ids, kept)
    again = [env.step({"cart_force": torch.ones(4, 1)}).signals["pole_angle"].clone() for _ in range(10)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_stand_in_of_it_is_held_until_it_is_commanded() -> None:
    twins = pytest.importorskip("robo_rl.ros.twins", reason="it comes with the repository")
    assert "robo_rl.ros.twins" in sys.modules
    twin = twins.make_twin(TASK)
    begun = twin.truth()["pole_angle"].copy()
    for _ in range(20):
        twin.step(None)
    np.testing.assert_array_equal(twin.truth()["pole_angle"], begun)
    twin.step({"cart_force": np.array([3.0], np.float32)})
    assert twin.truth()["pole_angle"] != begun
