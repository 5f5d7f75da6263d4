"""Cards with which nothing could be grasped: a workspace in the ground or in the air, pads that touch nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.arm.room import reasons_against, require_room
from robo_rl.sim.tasks.arm.workspace import workspace
from tests.sim.robots.test_arms_of_others import OWN, changed

LOWER = "[0.35, -0.2, 0.016]"
GRIP = '<origin xyz="0 0 0.148"/>'
FINGER = '<collision name="left_finger">'
WALL = '<collision><origin xyz="0 -0.01 0.04"/><geometry><box size="0.02 0.03 0.02"/></geometry></collision>'


@pytest.mark.parametrize("name", ["panda", "so101", "turtlebot3_manipulation", str(OWN / "card.toml")])
def test_the_included_grippers_get_at_their_cubes(name: str) -> None:
    card = load_robot(name)
    assert reasons_against(getattr(card, "arm", card)) == {"no_reach": None, "no_place": None}


@pytest.mark.parametrize(
    ("model", "card", "expected"),
    [
        (
            {GRIP: GRIP.replace("0.148", "0.130")},
            {},
            r"is 10 mm in the ground; expected workspace\.lower at 0\.030 m or above",
        ),
        ({}, {LOWER: "[0.35, -0.2, 0.1]"}, r"pads are 0\.0\d+ m above the ground, where a cube of 0\.04 m lies"),
        ({FINGER: WALL + FINGER}, {}, r"'left_finger' is \d+ mm in the cube; expected pads in front of all other"),
        ({GRIP: GRIP.replace("/>", ' rpy="0 0 1.5708"/>')}, {}, r"pad to pad is 90 degrees from the y axis"),
        ({GRIP: GRIP.replace("0.148", "0.248")}, {}, r"the pad '.*' is \d+ mm from the cube"),
        (
            {GRIP: GRIP.replace("/>", ' rpy="1.5708 0 0"/>')},
            {},
            r"z axis of its tool 'grip' is 90 degrees from pointing",
        ),
    ],
    ids=["in the ground", "in the air", "behind other shapes", "turned", "beside", "not down"],
)
def test_a_gripper_that_can_grasp_nothing_is_refused_with_what_is_in_the_way(
    tmp_path: Path, model: dict[str, str], card: dict[str, str], expected: str
) -> None:
    arm = load_arm(changed(tmp_path, model, card))
    with pytest.raises(CardError, match=expected):
        require_room(arm, workspace(arm))


def test_a_workspace_may_go_lower_than_where_it_grasps(tmp_path: Path) -> None:
    arm = load_arm(changed(tmp_path, {}, {LOWER: "[0.35, -0.2, 0.004]"}))
    assert reasons_against(arm) == {"no_reach": None, "no_place": None}
