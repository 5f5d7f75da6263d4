"""Cards of arms: their chains are those of published figures and of MuJoCo, and wrong cards are refused."""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.arm import ArmCard, load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.tasks.arm.workspace import workspace
from robo_rl.sim.tasks.loading import load_task

OWN = str(Path(__file__).parents[3] / "examples" / "own_arm" / "card.toml")
ARMS = ("panda", "so101", "ur5e", OWN)

PANDA = [  # a, d (m), alpha (rad) of Craig's convention; Franka's documentation, Denavit-Hartenberg parameters
    (0.0, 0.333, 0.0),
    (0.0, 0.0, -math.pi / 2),
    (0.0, 0.316, math.pi / 2),
    (0.0825, 0.0, math.pi / 2),
    (-0.0825, 0.384, -math.pi / 2),
    (0.0, 0.0, math.pi / 2),
    (0.088, 0.0, math.pi / 2),
]
FLANGE, HAND, HAND_TURN = 0.107, 0.1034, -math.pi / 4  # m, m, rad; the same, and the Franka Hand's tool


UR5E = [  # a, d (m), alpha (rad) of the classical convention; Universal Robots, DH parameters of the e-Series
    (0.0, 0.1625, math.pi / 2),
    (-0.425, 0.0, 0.0),
    (-0.3922, 0.0, 0.0),
    (0.0, 0.1333, math.pi / 2),
    (0.0, 0.0997, -math.pi / 2),
    (0.0, 0.0996, 0.0),
]
GRIP = 0.148  # m, from the flange to where the gripper holds


def craig(a: float, d: float, alpha: float, theta: float) -> np.ndarray:
    """(4, 4) from one link to the next: modified Denavit-Hartenberg parameters."""
    ca, sa, ct, st = math.cos(alpha), math.sin(alpha), math.cos(theta), math.sin(theta)
    return np.array([[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1.0]])


def classical(a: float, d: float, alpha: float, theta: float) -> np.ndarray:
    """(4, 4) from one link to the next: Denavit and Hartenberg's own parameters."""
    ca, sa, ct, st = math.cos(alpha), math.sin(alpha), math.cos(theta), math.sin(theta)
    return np.array([[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1.0]])


@pytest.fixture(params=ARMS, ids=["panda", "so101", "ur5e", "own"])
def card(request: pytest.FixtureRequest) -> ArmCard:
    return load_arm(request.param)


def angles(card: ArmCard, count: int) -> np.ndarray:
    """(count, J) rad, anywhere within the stops."""
    lower, upper = np.array([(joint.lower, joint.upper) for joint in card.joints]).T
    return np.random.default_rng(1).uniform(lower, upper, size=(count, len(card.joints)))


def test_the_pandas_tool_is_where_its_published_parameters_have_it() -> None:
    card = load_arm("panda")
    for joints in angles(card, 20):
        frame = np.eye(4)
        for (a, d, alpha), theta in zip(PANDA, joints, strict=True):
            frame = frame @ craig(a, d, alpha, theta)
        frame = frame @ craig(0.0, FLANGE, 0.0, HAND_TURN) @ craig(0.0, HAND, 0.0, 0.0)
        pose = card.chain.pose([float(x) for x in joints])
        np.testing.assert_allclose(pose.position, frame[:3, 3], atol=1e-9)
        np.testing.assert_allclose(np.array([pose.x, pose.y, pose.z]).T, frame[:3, :3], atol=1e-9)


def test_the_ur5es_flange_is_where_its_makers_parameters_have_it() -> None:
    card = load_arm("ur5e")
    for joints in angles(card, 20):
        frame = np.eye(4)
        for (a, d, alpha), theta in zip(UR5E, joints, strict=True):
            frame = frame @ classical(a, d, alpha, theta)
        pose = card.chain.pose([float(x) for x in joints])
        np.testing.assert_allclose(pose.position, frame[:3, 3], atol=1e-9)
        np.testing.assert_allclose(np.array([pose.x, pose.y, pose.z]).T, frame[:3, :3], atol=1e-9)


CENTRES = [(0, -0.02561, 0.00193), (0.2125, 0, 0.11336), (0.15, 0, 0.0265), (0, -0.0018, 0.01634),
           (0, 0.0018, 0.01634), (0, 0, -0.001159)]  # fmt: skip
"""m, of UR5e's links, each in the frame after its joint: Universal Robots, the same page."""


def test_the_centres_of_mass_of_the_ur5es_links_are_where_its_maker_has_them() -> None:
    card = load_arm("ur5e")
    model = assemble(card.mechanism, Physics())
    data, frame = mujoco.MjData(model), np.eye(4)
    data.qpos[:] = joints = angles(card, 1)[0]
    mujoco.mj_kinematics(model, data)
    for name, (a, d, alpha), theta, centre in zip(card.joint_names, UR5E, joints, CENTRES, strict=True):
        frame = frame @ classical(a, d, alpha, theta)
        link = int(model.jnt_bodyid[model.joint(name).id])
        np.testing.assert_allclose(data.xipos[link], (frame @ [*centre, 1.0])[:3], atol=1e-6)


def test_an_arm_without_a_gripper_has_no_task_that_grasps() -> None:
    with pytest.raises(CardError, match="robot 'ur5e' has no gripper; expected an arm whose card has"):
        load_task("arm-place", "ur5e")
    reach = load_task("arm-reach", "ur5e").spec
    assert [command.name for command in reach.commands] == ["joint_position_target"]


def test_a_card_with_a_gripper_but_nothing_to_grasp_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / "so101" / "card.toml").read_text()
    (tmp_path / "card.toml").write_text(text[: text.index("[grasp]")])
    (tmp_path / "so101.xml").write_text((FOLDER / "so101" / "so101.xml").read_text())
    with pytest.raises(CardError, match="gripper and grasp, or neither"):
        load_robot(str(tmp_path / "card.toml"), ArmCard)


def test_the_tool_of_an_own_arms_urdf_is_where_the_makers_parameters_have_it() -> None:
    card = load_arm(OWN)
    for joints in angles(card, 20):
        frame = np.diag([-1.0, -1.0, 1.0, 1.0])  # ROS's base_link is turned by half a turn from the maker's base
        for (a, d, alpha), theta in zip(UR5E, joints, strict=True):
            frame = frame @ classical(a, d, alpha, theta)
        pose = card.chain.pose([float(x) for x in joints])
        np.testing.assert_allclose(pose.position, frame[:3, 3] + GRIP * frame[:3, 2], atol=1e-6)
        np.testing.assert_allclose(np.array([pose.x, pose.y, pose.z]).T, frame[:3, :3], atol=1e-6)


def test_fingers_that_mimic_each_other_in_a_urdf_are_coupled_once() -> None:
    model = assemble(load_arm(OWN).mechanism, Physics())
    assert [model.equality(i).name for i in range(model.neq)] == ["right_finger_joint coupling"]


def test_the_pose_and_the_jacobian_of_a_chain_are_those_of_mujoco(card: ArmCard) -> None:
    model = assemble(card.mechanism, Physics())
    data, site = mujoco.MjData(model), model.site(card.tool).id
    at = [model.joint(name).qposadr[0] for name in card.joint_names]
    columns = [model.joint(name).dofadr[0] for name in card.joint_names]
    linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    for joints in angles(card, 10):
        data.qpos[at] = joints
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacSite(model, data, linear, angular, site)
        pose = card.chain.pose([float(x) for x in joints])
        np.testing.assert_allclose(pose.position, data.site_xpos[site], atol=1e-9)
        found = pose.jacobian()
        np.testing.assert_allclose(np.array(found[0]).T, linear[:, columns], atol=1e-9)
        np.testing.assert_allclose(np.array(found[1]).T, angular[:, columns], atol=1e-9)


def test_all_of_the_workspace_is_in_reach_with_the_tool_pointing_down(card: ArmCard) -> None:
    space = workspace(card)
    pose = card.chain.pose(list(space.angles.double().numpy().T))
    np.testing.assert_allclose(np.stack(pose.position, 1), space.places.numpy(), atol=1e-3)
    assert np.max(pose.z[2]) < -0.999


def test_a_contract_tells_the_chain_and_every_actuator(card: ArmCard) -> None:
    from robo_rl.controllers.arm.chain import Chain

    robot = card.facts()
    assert Chain.from_facts(robot.facts) == card.chain
    hand = (card.gripper.joint.name,) if card.fingers else ()
    assert robot.actuator_names == (*card.joint_names, *hand)


CHANGES = [
    ('tool = "grip"', 'tool = "palm"', "tool"),
    ('joints = ["shoulder_pan", "shoulder_lift"', 'joints = ["shoulder_lift", "shoulder_pan"', "base to tool"),
    ("0.26, 0.1, 0.064", "0.5, 0.1, 0.064", "reach"),
    ('pads = ["fixed pad", "moving pad"]', 'pads = ["fixed pad"]', "two names"),
    ("edges = { value = [0.02, 0.03]", "edges = { value = [0.03, 0.04]", "grasp.edges.value.*around size"),
    ("tips = { value = [-0.05, 0.05]", "tips = { value = [0.05, -0.05]", "grasp.tips.value.*the lower one first"),
    ("edges = { value = [0.02, 0.03]", "edges = { value = [0.02, 0.3]", "room for a cube"),
    ("stiffness = { value = [15.0, 1000.0]", "stiffness = { value = [20.0, 1000.0]", "servos.stiffness.value"),
    ("slides = false", "slides = true", "gripper.range.unit"),
    ("creep = { value = 1e-4", "creep = { value = -1e-4", "grasp.creep.value"),
]


@pytest.mark.parametrize(("old", "new", "told"), CHANGES, ids=[told for _, _, told in CHANGES])
def test_a_card_that_does_not_fit_its_model_is_refused_with_what_was_expected(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    text = (FOLDER / "so101" / "card.toml").read_text()
    assert old in text
    (tmp_path / "card.toml").write_text(text.replace(old, new))
    (tmp_path / "so101.xml").write_text((FOLDER / "so101" / "so101.xml").read_text())
    with pytest.raises(CardError, match=told):
        workspace(load_robot(str(tmp_path / "card.toml"), ArmCard))
