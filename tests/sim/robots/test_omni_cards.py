"""Cards of omnidirectional bases: a user's own with three wheels drives, and what is wrong is refused."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.omni_base import CARD
from robo_rl.sim.tasks.checking import check
from robo_rl.sim.tasks.loading import load_task

XL = (FOLDER / "rosbot_xl" / "card.toml").read_text()
THREE = {
    "wheel_x": [0.1, -0.2, 0.1], "wheel_y": [0.1732, 0.0, -0.1732], "wheel_heading": [2.6179939, -1.5707963, 0.5235988],
    "roller_angle": [0.0, 0.0, 0.0],
}  # fmt: skip


def written(folder: Path, **figures: object) -> Path:
    """ROSbot XL's card with other figures, in a file of a user's."""
    text = XL
    for name, value in figures.items():
        text, count = re.subn(rf"(\[{name}\]\nvalue = ).*", rf"\g<1>{value}", text)
        assert count == 1
    path = folder / "my_base.toml"
    path.write_text(text)
    return path


def test_a_card_of_one_s_own_with_three_omni_wheels_drives_at_the_task(tmp_path: Path) -> None:
    task = load_task("omni-nav", str(written(tmp_path, radius=0.21, **THREE)))
    check(task)
    card = task.spec.robot
    assert (card.name, len(card.wheels)) == ("my_base", 3)
    assert task.spec.episode_length < load_task("omni-nav").spec.episode_length  # its rooms are smaller
    assert [(a.name, a.unit) for a in card.facts().actuators] == [("vx", "m/s"), ("vy", "m/s"), ("wz", "rad/s")]


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({"wheel_x": 0.085}, "wheel_x.value is 0.085; expected a list of 3 to 8 numbers, one for each wheel"),
        ({"wheel_x": [0.1, -0.1]}, r"wheel_x.value is \[0.1, -0.1\]; expected a list of 3 to 8 numbers"),
        ({"wheel_y": [0.1, 0.2, 0.3]}, r"wheel_y.value is \[0.1, 0.2, 0.3\]; expected 4 finite numbers"),
        ({"roller_angle": [1.5, 0.7, 0.7, 0.7]}, r"roller_angle.value is .*; expected angles below 1.4 rad"),
        (
            {"roller_angle": [0.0] * 4},
            "roller_angle.value is .*; expected angles with which the wheels drive",
        ),
        ({"grip": -0.5}, r"grip.value is -0.5; expected positive numbers"),
        ({"lidar_range": [3.0, 1.0]}, r"lidar_range.value is \(3.0, 1.0\); expected least < greatest"),
    ],
)
def test_what_can_not_be_a_base_s_is_refused_with_file_field_and_value(
    figures: dict[str, object], sentence: str, tmp_path: Path
) -> None:
    path = written(tmp_path, **figures)
    with pytest.raises(CardError, match=f"{re.escape(str(path))}: {sentence}"):
        load_robot(str(path), CARD)


def test_a_base_with_two_driven_wheels_is_refused_by_kind() -> None:
    with pytest.raises(CardError, match="'turtlebot3' is of the kind 'mobile_base'; expected 'omni_base'"):
        load_task("omni-nav", "turtlebot3")


def test_mujoco_finds_wheels_and_inertia_in_its_urdf(tmp_path: Path) -> None:
    card = load_robot(str(written(tmp_path, **THREE)), CARD)
    spec = mujoco.MjSpec.from_string(card.urdf())
    spec.compiler.fusestatic, spec.compiler.discardvisual = False, False
    assert max(spec.body("base_link").fullinertia[:3]) >= card.yaw_inertia in spec.body("base_link").fullinertia
    for k, (x, y, heading) in enumerate(zip(*(THREE[f"wheel_{name}"] for name in ("x", "y", "heading")), strict=True)):
        np.testing.assert_allclose(spec.body(f"wheel_{k + 1}").pos, [x, y, card.wheel_radius])
        axis = spec.joint(f"wheel_{k + 1}_joint").axis
        np.testing.assert_allclose(axis, [-np.sin(heading), np.cos(heading), 0.0], atol=1e-5)
