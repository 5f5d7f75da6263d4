"""Arms whose joints slide: their kinematics against MuJoCo's, their units in contracts, and what they reach."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.controllers.arm import inverse
from robo_rl.controllers.arm.chain import Chain, orientation_at_home
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.arm.reach import NEAR, Reach
from tests.sim.robots.sliding import GANTRY, HOME, JOINTS, NAMES, sliding_arm

N = 32


@pytest.mark.parametrize("name", NAMES)
def test_pose_and_jacobian_are_those_of_mujoco(name: str, tmp_path: Path) -> None:
    card = load_arm(str(sliding_arm(name, tmp_path)))
    model = assemble(card.mechanism, Physics())
    data, site = mujoco.MjData(model), model.site("grip").id
    joints = [model.joint(joint) for joint in card.joint_names]
    at, dofs = [joint.qposadr[0] for joint in joints], [joint.dofadr[0] for joint in joints]
    random, move, turn = np.random.default_rng(0), np.zeros((3, model.nv)), np.zeros((3, model.nv))
    chain = Chain.from_facts(card.facts().facts)  # as a runtime has it
    for _ in range(20):
        angles = [float(random.uniform(joint.lower, joint.upper)) for joint in card.joints]
        data.qpos[at] = angles
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_jacSite(model, data, move, turn, site)
        pose = chain.pose(angles)
        linear, angular = pose.jacobian()
        axes = np.array([pose.x, pose.y, pose.z]).T
        np.testing.assert_allclose(pose.position, data.site_xpos[site], atol=1e-9)
        np.testing.assert_allclose(axes, data.site_xmat[site].reshape(3, 3), atol=1e-9)
        np.testing.assert_allclose(np.array(linear).T, move[:, dofs], atol=1e-9)
        np.testing.assert_allclose(np.array(angular).T, turn[:, dofs], atol=1e-9)


@pytest.mark.parametrize("name", ["scara", "gantry"])
def test_inverse_kinematics_keeps_the_tool_as_at_home(name: str, tmp_path: Path) -> None:
    card = load_arm(str(sliding_arm(name, tmp_path)))
    low, high = (np.array(corner) for corner in card.workspace)
    wanted = low + np.random.default_rng(1).uniform(size=(50, 3)) * (high - low)
    stops = [joint.lower for joint in card.joints], [joint.upper for joint in card.joints]
    assert card.turned == pytest.approx(orientation_at_home(card.facts()), abs=1e-9)
    angles, missed = inverse(card.chain, wanted, np.array(card.home), card.turned, *stops)
    assert missed.max() < 1e-4
    at_home = np.array(card.chain.pose(HOME[name]).x)
    for row in angles:
        assert np.array(card.chain.pose([float(x) for x in row]).x) == pytest.approx(at_home, abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_contracts_have_metres_and_newtons_for_what_slides(name: str, tmp_path: Path) -> None:
    task = Reach(load_arm(str(sliding_arm(name, tmp_path))))
    slides = [joint for joint, (slide, *_) in JOINTS[name].items() if slide]
    hinges = [joint for joint in JOINTS[name] if joint not in slides]
    robot, spec = task.spec.robot.facts(), task.spec
    units = {a.name: (a.unit, a.lower, a.upper, a.effort, a.speed) for a in robot.actuators}
    for joint, (slide, (lower, upper), effort, speed, *_) in JOINTS[name].items():
        assert units[joint] == ("m" if slide else "rad", lower, upper, effort, speed)
    parts = {
        part.name: (part.elements, part.unit) for part in (*spec.signals, *spec.commands) if "setpoint" not in part.name
    }
    expected = {
        "slide_position": (tuple(slides), "m"),
        "slide_velocity": (tuple(slides), "m/s"),
        "slide_position_target": (tuple(slides), "m"),
    }
    if hinges:
        expected |= {
            "joint_position": (tuple(hinges), "rad"),
            "joint_velocity": (tuple(hinges), "rad/s"),
            "joint_position_target": (tuple(hinges), "rad"),
        }
    assert parts == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_script_reaches_set_points(name: str, tmp_path: Path) -> None:
    task = Reach(load_arm(str(sliding_arm(name, tmp_path))))
    env = VecEnv(task, N, seed=2, evaluation=True)
    signals, memory = env.signals(), task.first_memory(N)
    won, commands = torch.zeros(N, dtype=torch.bool), task.command(torch.zeros(N, 3), memory)
    best = torch.full((N,), 1.0)
    for _ in range(150):
        memory = task.remember(memory, signals, commands)
        commands = task.command(task.script(signals, memory), memory)
        best = torch.minimum(best, task.errors(env.truth(torch.arange(N)))["tool_position_error"])
        step = env.step(commands)
        signals, won = step.signals, won | step.succeeded
    assert float((best < NEAR).float().mean()) > 0.9
    assert float(won.float().mean()) > 0.9


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("slides = true", "slides = 1", "slides is 1; expected true or false"),
        ("slides = true\n", "", "effort.unit is 'N'; expected 'N*m'"),
        ('unit = ["m", "m", "m"]', 'unit = "rad"', "home.unit is 'rad'; expected ['m', 'm', 'm']"),
    ],
)
def test_cards_that_mix_units_are_refused(old: str, new: str, told: str, tmp_path: Path) -> None:
    card = sliding_arm("gantry", tmp_path)
    text = card.read_text()
    assert old in text
    if old.startswith("slides") and not new:
        text = text.replace('value = [-0.4, 0.4], unit = "m"', 'value = [-0.4, 0.4], unit = "rad"')
    card.write_text(text.replace(old, new))
    with pytest.raises(CardError) as error:
        load_arm(str(card))
    assert told in str(error.value)


def test_a_hinge_that_the_card_calls_a_slide_is_refused(tmp_path: Path) -> None:
    card = sliding_arm("gantry", tmp_path)
    (tmp_path / "gantry.xml").write_text(GANTRY.replace('name="y" type="slide"', 'name="y" type="hinge"'))
    with pytest.raises(CardError, match="joint 'y' is of type hinge; expected a slide"):
        load_arm(str(card)).facts()
