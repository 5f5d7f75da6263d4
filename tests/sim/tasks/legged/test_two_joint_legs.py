"""A robot on four legs of two joints, which swing in one plane: what is proposed stands, and its stride walks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.commands.project.from_model import write_card
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.beginning import beginning
from robo_rl.sim.tasks.legged.legs_walk import LegsWalk
from robo_rl.sim.tasks.loading import load_task

LEG = """
<body name="{0}_thigh" pos="{1} {2} 0"><joint name="{0}_hip" axis="0 1 0"/>
  <geom type="capsule" fromto="0 {3} 0 0 {3} -0.16" size="0.012" mass="0.15" contype="0" conaffinity="0"/>
  <body name="{0}_shank" pos="0 {3} -0.16"><joint name="{0}_knee" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.16" size="0.008" mass="0.05" contype="0" conaffinity="0"/>
    <body name="{0}_end" pos="0 0 -0.16"><geom name="{0}_foot" size="0.016" mass="0.01"/></body></body></body>"""


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> str:
    legs = "".join(
        LEG.format(f"{end}_{side}", x, y, 0.04 * np.sign(y))
        for end, x in (("front", 0.19), ("rear", -0.19))
        for side, y in (("left", 0.1), ("right", -0.1))
    )
    folder = tmp_path_factory.mktemp("flat")
    model = folder / "flat.xml"
    model.write_text(
        '<mujoco><compiler angle="radian"/><default><joint range="-10 10" '
        'actuatorfrcrange="-1000 1000"/></default><worldbody><body name="trunk" pos="0 0 0.4"><freejoint/>'
        f'<geom type="box" size="0.2 0.1 0.04" mass="1.4"/>{legs}</body></worldbody></mujoco>'
    )
    proposal, _ = write_card(folder / "robot", model)
    assert sum("of two joints" in doubt or "carry 10 times" in doubt for doubt in proposal.doubts) == 2
    return str(folder / "robot" / "card.toml")


def test_what_is_proposed_stands(card: str) -> None:
    robot = load_robot(card)
    assert all(abs(joint.stand) < np.pi for joint in robot.joints)
    task = load_task("g1-stand", card)
    env = VecEnv(task, 4, seed=0, compiled=False)
    stand = torch.tensor([[joint.stand for joint in robot.joints]]).repeat(4, 1)
    assert not any(env.step({"joint_position_target": stand}).failed.any() for _ in range(100))


def test_its_stride_leads_ahead_and_falls_nowhere_without_any_training(card: str) -> None:
    assert beginning(load_robot(card)).task is LegsWalk
    task = load_task("g1-walk", card)
    assert isinstance(task, LegsWalk)
    assert task.stride.flat
    assert np.abs(task.stride.fastest[1:]).max() < 1e-5
    given = {"command/x": 0.15, "command/y": 0.0, "command/yaw": 0.0, "command/rest": 1.0, "push/speed": 0.0}
    env = VecEnv(task, 4, evaluation=True, fixed=given, compiled=False)
    memory = task.first_memory(4)
    for _ in range(100):
        commands, memory = task.act(torch.zeros(4, 8), env.signals(), memory)
        assert not env.step(commands).failed.any()


def test_tasks_of_hips_that_swing_sideways_say_that_there_are_none(card: str) -> None:
    with pytest.raises(CardError, match="expected three that motors drive"):
        load_task("go2-flat", card)
