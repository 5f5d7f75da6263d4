"""An arm on mecanum wheels: it drives sideways, has a lateral speed in its contract, and fetches and places."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mobile_manipulator import MobileManipulatorCard
from robo_rl.sim.tasks.mobile_manipulator.place import MobilePlace
from tests.sim.tasks.mobile_manipulator.scripted import share_placed

FIGURES = {
    "speed_max": (0.26, "m/s"), "turn_rate_max": (1.82, "rad/s"), "acceleration": (2.5, "m/s^2"),
    "turn_acceleration": (3.2, "rad/s^2"), "motor_time": (0.1, "s"), "wheel_x": ([0.1, 0.1, -0.1, -0.1], "m"),
    "wheel_y": ([0.13, -0.13, 0.13, -0.13], "m"), "wheel_heading": ([0.0] * 4, "rad"),
    "roller_angle": ([-0.7853982, 0.7853982, 0.7853982, -0.7853982], "rad"), "gyration": (0.12, "m"),
    "grip": (0.6, "1"), "roller_friction": (0.03, "1"), "slip_speed": (0.02, "m/s"),
}  # fmt: skip


def mecanum(folder: Path, **others: object) -> Path:
    """The TurtleBot3's card, on four mecanum wheels."""
    text = (FOLDER / "turtlebot3_manipulation" / "card.toml").read_text()
    shutil.copy(FOLDER / "turtlebot3_manipulation" / "turtlebot3_manipulation.xml", folder)
    lines = ["[drive]", 'joints = ["base_x", "base_y", "base_yaw"]']
    for name, (value, unit) in FIGURES.items():
        lines.append(f'{name} = {{ value = {others.get(name, value)}, unit = "{unit}", source = "test" }}')
    text, count = re.subn(r"\[drive\].*?\n\n", "\n".join(lines) + "\n\n", text, count=1, flags=re.S)
    assert count == 1
    (folder / "card.toml").write_text(text)
    return folder / "card.toml"


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> MobilePlace:
    return MobilePlace(load_robot(mecanum(tmp_path_factory.mktemp("mecanum")), MobileManipulatorCard))


def test_it_drives_sideways_with_its_arm_and_its_odometry_goes_along(task: MobilePlace) -> None:
    plant = task.make_plant(1)
    truth, home = plant.truth(), torch.tensor([task.card.home])
    commands = {"forward_speed": torch.zeros(1, 1), "turn_rate": torch.zeros(1, 1), "joint_position_target": home}
    for _ in range(50):
        plant.step({**commands, "lateral_speed": torch.tensor([[0.15]])})
    x, y = truth["base_position"][0].tolist()
    assert abs(x) < 0.01
    assert y == pytest.approx(0.15 * (2.0 - 0.1), rel=0.1)  # less the lag
    torch.testing.assert_close(truth["position"], truth["base_position"], atol=0.02, rtol=0.0)
    assert float(truth["heading_position"]) == pytest.approx(0.0, abs=0.02)


def test_its_state_is_all_that_its_future_depends_on(task: MobilePlace) -> None:
    one, other, every = task.make_plant(2), task.make_plant(2), torch.arange(2)
    commands = {
        "forward_speed": torch.tensor([[0.1], [-0.1]]), "turn_rate": torch.tensor([[0.5], [0.0]]),
        "lateral_speed": torch.tensor([[0.1], [0.2]]),
    }  # fmt: skip
    for _ in range(5):
        one.step(commands)
    other.set_state(every, one.state(every))
    for plant in (one, other):
        plant.step(commands)
    for name in ("position", "orientation", "base_position", "heading_position", "joint_position"):
        torch.testing.assert_close(one.truth()[name], other.truth()[name], atol=0.0, rtol=0.0)


def test_its_contract_has_a_lateral_speed(task: MobilePlace) -> None:
    robot, spec = task.spec.robot.facts(), task.spec
    assert [(a.name, a.unit) for a in robot.actuators[:3]] == [("vx", "m/s"), ("wz", "rad/s"), ("vy", "m/s")]
    assert robot.facts["roller_angle"] == FIGURES["roller_angle"][0]
    assert {c.name: (c.elements, c.unit, c.upper) for c in spec.commands[:3]} == {
        "forward_speed": (("vx",), "m/s", (0.26,)),
        "turn_rate": (("wz",), "rad/s", (1.82,)),
        "lateral_speed": (("vy",), "m/s", (0.26,)),
    }


def test_the_script_alone_fetches_and_places(task: MobilePlace) -> None:
    assert share_placed(task) > 0.8


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("wheel_x", [0.1, 0.1], r"drive\.wheel_x\.value is \[0\.1, 0\.1\]; expected a list of 3 to 8"),
        ("roller_angle", [0.7853982] * 4, r"drive\.roller_angle\.value is .* forward, to the side and round"),
        ("grip", 0.0, r"drive\.grip\.value is \[0\.0\]; expected a positive number"),
    ],
)
def test_wheels_that_drive_no_robot_are_refused(name: str, value: object, told: str, tmp_path: Path) -> None:
    with pytest.raises(CardError, match=told):
        load_robot(mecanum(tmp_path, **{name: value}))


def test_another_drive_leads_to_a_task_of_ones_own(tmp_path: Path) -> None:
    card = mecanum(tmp_path)
    card.write_text(card.read_text().replace("wheel_x = ", "steering_x = "))
    with pytest.raises(CardError, match=r"drive is .*; expected the fields .* \(docs/own-task\.md\)"):
        load_robot(card)
