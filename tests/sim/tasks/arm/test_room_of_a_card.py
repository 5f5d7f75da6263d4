"""A card with which nothing can ever be grasped or lifted is refused before a task begins, with what to write."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.arm.room import OVER, reasons_against
from robo_rl.sim.tasks.arm.workspace import LIFTED
from robo_rl.sim.tasks.loading import load_task

SO101 = Path(__file__).parents[4] / "sim" / "robots" / "so101"
SITE = 'quat="0 0.70710678 0.70710678 0"'
PADS = 'pads = ["fixed pad", "moving pad"]'


def so101(folder: Path, model: dict[str, str], card: dict[str, str]) -> ArmCard:
    """The SO-101, which has one jaw that moves, with other words in its model and its card."""
    shutil.copytree(SO101, folder, dirs_exist_ok=True)
    for name, words in (("so101.xml", model), ("card.toml", card)):
        text = (folder / name).read_text()
        for old, new in words.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        (folder / name).write_text(text)
    robot = load_robot(str(folder / "card.toml"))
    assert isinstance(robot, ArmCard)
    return robot


def half_turn(quaternion: str) -> str:
    """``quat="w x y z"`` turned by half a turn about its own z axis."""
    w, x, y, z = (float(number) for number in re.findall(r"[-.\d]+", quaternion))
    return f'quat="{-z} {y} {-x} {w}"'


@pytest.mark.parametrize("pads", [PADS, 'pads = ["moving pad", "fixed pad"]'])
def test_one_jaw_with_its_tool_turned_round_is_refused_whatever_the_order_of_its_pads(
    pads: str, tmp_path: Path
) -> None:
    right = so101(tmp_path / "right", {}, {PADS: pads})
    assert reasons_against(right) == {"no_reach": None, "no_place": None}
    wrong = so101(tmp_path / "wrong", {SITE: half_turn(SITE)}, {PADS: pads})
    found = reasons_against(wrong)
    assert found["no_reach"] is None
    assert "points from the pad that moves to the one that does not" in str(found["no_place"])
    for task in ("arm-place", "arm-push"):
        with pytest.raises(CardError, match="half a turn"):
            load_task(task, str(tmp_path / "wrong" / "card.toml"))


def test_a_tool_whose_y_axis_is_across_the_jaws_is_refused(tmp_path: Path) -> None:
    quarter = so101(tmp_path, {SITE: 'quat="0 1 0 0"'}, {})
    assert "pad to pad is" in str(reasons_against(quarter)["no_place"])


@pytest.mark.parametrize("above", [-0.001, 0.001])
def test_a_workspace_reaches_above_the_height_to_which_success_wants_a_cube_lifted(
    above: float, tmp_path: Path
) -> None:
    """0.0125 m, where a cube is grasped, LIFTED and OVER."""
    top = 0.0125 + LIFTED + OVER + above
    card = so101(tmp_path, {}, {"value = [0.26, 0.1, 0.064]": f"value = [0.26, 0.1, {top}]"})
    found = reasons_against(card)["no_place"]
    if above > 0:
        assert found is None
        return
    assert found is not None
    assert "workspace.upper is at 0.0615 m" in found
    assert "expected 0.062 m or above" in found
    for task in ("arm-place", "arm-stack", "arm-place-direct"):
        with pytest.raises(CardError, match=r"workspace\.upper"):
            load_task(task, str(tmp_path / "card.toml"))
