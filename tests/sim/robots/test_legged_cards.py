"""Robots on legs: figures against other sources, and what it takes to have one's own."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.indices import find_indices
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import robot_names
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.legged.legs import find_legs
from robo_rl.sim.tasks.loading import load_task

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_quadruped"
A1_TO_URDF = {"hip": "hip", "thigh": "upper", "calf": "lower"}


def test_go2_and_a1_are_cards() -> None:
    assert {"a1", "go2"} <= set(robot_names())
    for name in ("a1", "go2"):
        card = load_legged(name)
        assert len(card.joints) == 12
        assert all(len(source) > 5 for source in card.sources.values())


def test_the_a1_weighs_what_its_parts_do_and_stands_as_high_as_its_legs_are_long() -> None:
    plant = MujocoPlant(load_legged("a1").mechanism, 1, 0.02)
    assert float(plant.nominal.mass.sum()) == pytest.approx(12.45, abs=0.01)  # Unitree: about 12 kg with battery
    assert plant.height == pytest.approx(2 * 0.2 * np.cos(0.9) + 0.02, abs=1e-6)  # two links of 0.2 m, a foot of 2 cm


def test_the_a1_moves_as_the_urdf_that_comes_with_pybullet() -> None:
    """Mass matrix of the joints, and where the feet are, at random angles. Bullet has massless links more."""
    pybullet = pytest.importorskip("pybullet", reason="pybullet is missing: pip install 'robo-rl[dev]'")
    pybullet_data = pytest.importorskip("pybullet_data", reason="it comes with pybullet")
    from pybullet_utils.bullet_client import BulletClient

    card = load_legged("a1")
    model = assemble(card.mechanism, Physics())
    data, places = mujoco.MjData(model), find_indices(model, card.mechanism)
    bullet = BulletClient(pybullet.DIRECT)
    file = Path(pybullet_data.getDataPath(), "a1", "a1.urdf")
    robot = bullet.loadURDF(str(file), useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    infos = [bullet.getJointInfo(robot, i) for i in range(bullet.getNumJoints(robot))]
    number = {info[1].decode(): info[0] for info in infos}
    moving = [info for info in infos if info[2] == pybullet.JOINT_REVOLUTE]
    ours = [f"{name[:2]}_{part}_joint" for info in moving for name in [info[1].decode()]
            for part, theirs in A1_TO_URDF.items() if theirs in name]  # fmt: skip
    position = [places.position[card.joint_names.index(name)] for name in ours]
    velocity = [places.velocity[card.joint_names.index(name)] for name in ours]
    for info, name in zip(moving, ours, strict=True):
        joint = card.joints[card.joint_names.index(name)]
        np.testing.assert_allclose((joint.lower, joint.upper), info[8:10], atol=1e-5)
    generator = np.random.default_rng(0)
    for _ in range(5):
        angles = generator.uniform([info[8] for info in moving], [info[9] for info in moving])
        data.qpos[:7] = [0, 0, 0, 1, 0, 0, 0]
        data.qpos[position] = angles
        mujoco.mj_forward(model, data)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        expected = np.array(bullet.calculateMassMatrix(robot, angles.tolist()))
        rotors = np.diag([motor.armature for motor in card.motors])
        np.testing.assert_allclose(full[np.ix_(velocity, velocity)] - rotors, expected, atol=2e-4)
        for info, angle in zip(moving, angles, strict=True):
            bullet.resetJointState(robot, info[0], angle)
        for foot in card.feet:
            found = bullet.getLinkState(robot, number[f"{foot[:2]}_toe_fixed"], computeForwardKinematics=1)[4]
            np.testing.assert_allclose(data.geom(foot).xpos, found, atol=1e-5)


@pytest.mark.parametrize("robot", ["a1", "go2"])
def test_a_robot_of_another_card_stands_under_zero_action(robot: str) -> None:
    still = {"command/stand": 0.0, "push/x": 0.0, "push/y": 0.0, "payload": 0.0, "center_of_mass": 0.0}
    still |= {"initial/linear_velocity": 0.0, "initial/angular_velocity": 0.0}
    env = LearningEnv(VecEnv(load_task("go2-flat", robot), 8, seed=0, fixed=still))
    for _ in range(150):
        step = env.step(torch.zeros(8, 12))
        assert len(step.ids) == 0
    truth = env.env.plant.truth()
    assert float(truth["position"][:, 2].min()) > 0.7 * env.env.plant.height
    assert float(truth["linear_velocity"].abs().max()) < 0.1


def test_the_example_of_one_s_own_urdf_stands() -> None:
    plant = MujocoPlant(load_legged(str(EXAMPLE / "card.toml")).mechanism, 2, 0.02)
    assert plant.height == pytest.approx(2 * 0.18 * np.cos(0.8) + 0.02, abs=1e-3)
    stand = torch.tensor([[joint.home for joint in plant.mechanism.joints]]).repeat(2, 1)
    for _ in range(100):
        plant.step({"joint_position_target": stand})
    truth = plant.truth()
    assert float(truth["position"][:, 2].min()) > 0.8 * plant.height
    weight = float(plant.nominal.mass.sum()) * 9.81
    np.testing.assert_allclose(truth["foot_force"].sum(1).numpy(), weight, rtol=0.02)


# fmt: off
WRONG = {
    "no such foot": ("card.toml", '"LF_foot", "RF_foot"', '"LF_paw", "RF_foot"', r"\['LF_paw'\] of .* points 'foot'"),
    "no such base": ("card.toml", 'base = "body"', 'base = "torso"', r"\['torso'\] of the robot's base"),
    "no such joint": ("quadruped.urdf", 'joint name="LF_HAA"', 'joint name="hip"', "robot's joints"),
    "no such file": ("card.toml", '"quadruped.urdf"', '"robot.urdf"', "a file beside the card"),
    "a joint without a motor": ("card.toml", '"LF_KFE", "RF_KFE", "LH', '"RF_KFE", "LH', "joints"),
    "a figure without its source": ("card.toml", ', source = "drawing"', "", "range.source"),
    "a foot that is no sphere": (
        "quadruped.urdf", '"LF_foot"><origin xyz="0 0 -0.18"/><geometry><sphere radius="0.02"/>',
        '"LF_foot"><origin xyz="0 0 -0.18"/><geometry><box size="0.04 0.04 0.04"/>',
        "foot 'LF_foot' is of type box; expected a sphere",
    ),
    "a joint that slides": (
        "quadruped.urdf", '"LF_HAA" type="revolute"', '"LF_HAA" type="prismatic"',
        "joint 'LF_HAA' is of type slide; expected a hinge",
    ),
    "a body without mass": (
        "quadruped.urdf", '<mass value="0.5"/>', '<mass value="0"/>', "quadruped.urdf: MuJoCo can't compile it",
    ),
    "not a model": ("quadruped.urdf", "<robot", "<rabbit", "MuJoCo can't read it"),
}
# fmt: on


@pytest.mark.parametrize("what", WRONG)
def test_what_is_missing_in_a_robot_of_one_s_own_is_said(what: str, tmp_path: Path) -> None:
    file, old, new, message = WRONG[what]
    for path in EXAMPLE.iterdir():
        text = path.read_text()
        assert path.name != file or old in text
        (tmp_path / path.name).write_text(text.replace(old, new) if path.name == file else text)
    with pytest.raises(CardError, match=message):
        find_legs(load_legged(str(tmp_path / "card.toml")))
