"""Robots with two arms: cards, chains against MuJoCo, arms that would meet, and their task."""

from __future__ import annotations

import tomllib
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.controllers.arm.chain import Chain
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.two_arms import TwoArmCard
from robo_rl.sim.tasks.two_arms.reach import ReachBoth

N = 32


@pytest.fixture(scope="module")
def card() -> TwoArmCard:
    return load_robot("bi_so101", TwoArmCard)


def changed(folder: Path, old: str, new: str) -> Path:
    """A copy of that card with another text."""
    source = FOLDER / "bi_so101"
    (folder / "bi_so101.xml").write_text((source / "bi_so101.xml").read_text())
    text = (source / "card.toml").read_text()
    assert old in text
    (folder / "two.toml").write_text(text.replace(old, new, 1))
    return folder / "two.toml"


def test_each_tool_is_where_mujoco_has_it_whatever_both_arms_do(card: TwoArmCard) -> None:
    model = assemble(card.mechanism, Physics())
    data, random = mujoco.MjData(model), np.random.default_rng(0)
    facts = card.facts().facts["arms"]
    for _ in range(20):
        angles = {
            name: [float(random.uniform(j.lower, j.upper)) for j in arm.joints] for name, arm in card.arms.items()
        }
        for name, arm in card.arms.items():
            data.qpos[[model.joint(joint).qposadr[0] for joint in arm.joint_names]] = angles[name]
        mujoco.mj_kinematics(model, data)
        for name, arm in card.arms.items():
            place = Chain.from_facts(facts[name]).pose(angles[name]).position
            np.testing.assert_allclose(place, data.site(arm.tool).xpos, atol=1e-9)


def test_the_robot_has_all_actuators_and_the_masses_of_two(card: TwoArmCard) -> None:
    one = load_robot("so101")
    names = [actuator.name for actuator in one.facts().actuators]
    assert card.facts().actuator_names == tuple(f"{side}_{name}" for side in ("left", "right") for name in names)
    assert card.figures()["mass_kg"] == pytest.approx(2 * one.figures()["mass_kg"])
    assert [group.name for group in card.mechanism.groups] == ["joint", "gripper"]
    assert "held.left_gripper" not in card.sources


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[0.17, -0.3, 0.01]", "[0.17, 0.0, 0.01]", "workspace.upper|workspace is .* numbers of lower"),
        ("[0.26, -0.1, 0.064]", "[0.26, 0.15, 0.064]", "expected boxes of 'left' and 'right' apart"),
        ('"right_wrist_roll"]\n\n[arms', '"left_wrist_roll"]\n\n[arms', r"\['left_wrist_roll'\].*of one arm each"),
        ('tool = "right_grip"', 'tool = "left_grip"', "from base to tool"),
        ("[arms.right]", "[arms.third.x]\n[arms.right]", "arms is .* expected two tables"),
        ('tool = "right_grip"', 'tol = "right_grip"', "arms.right.tol"),
        ('base = "table"', 'base = "table"\ntool = "left_grip"', "tool is 'an unknown field'"),
        ('"left_shoulder_pan", "right_shoulder_pan"]\n', '"left_shoulder_pan"]\n', "those of both arms"),
    ],
)  # fmt: skip
def test_cards_that_describe_no_two_arms_are_refused(old: str, new: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(CardError, match=told):
        load_robot(changed(tmp_path, old, new)).figures()


def test_a_grasp_without_a_gripper_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, "[arms.left.gripper]", "[arms.left.gripper]")
    told = tomllib.loads(path.read_text())
    for arm in told["arms"].values():
        del arm["gripper"]
    with pytest.raises(CardError, match="grasp is 'there without a gripper'"):
        TwoArmCard.read(told, "two", path)


def test_arms_that_meet_on_their_ways_are_told(tmp_path: Path) -> None:
    """Boxes that do not overlap, between which hands have no room: arms 0.2 m apart."""
    path = changed(tmp_path, "[0.17, 0.1, 0.01]", "[0.17, 0.0, 0.01]")
    model, text = tmp_path / "bi_so101.xml", path.read_text()
    model.write_text(model.read_text().replace('"0 0.2 0"', '"0 0.1 0"').replace('"0 -0.2 0"', '"0 -0.1 0"'))
    for old, new in (("0.26, 0.3,", "0.26, 0.2,"), ("0.17, -0.3,", "0.17, -0.2,"), ("0.26, -0.1,", "0.26, -0.001,")):
        text = text.replace(old, new)
    path.write_text(text)
    assert "its arms meet while each is in its own workspace" in load_robot(path).figures()["no_reach"]


def test_both_tools_come_to_their_set_points_by_each_arm_s_kinematics(card: TwoArmCard) -> None:
    task = ReachBoth(card)
    env = VecEnv(task, N, seed=2, evaluation=True)
    signals, memory, won = env.signals(), task.first_memory(N), torch.zeros(N, dtype=torch.bool)
    commands = task.command(torch.zeros(N, 6), memory)
    for _ in range(150):
        memory = task.remember(memory, signals, commands)
        commands = task.command(task.script(signals, memory), memory)
        step = env.step(commands)
        signals, won = step.signals, won | step.succeeded
    assert float(won.float().mean()) > 0.9
