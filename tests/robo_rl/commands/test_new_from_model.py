"""``robo-rl new NAME --urdf FILE``: a robot file that loads, stands and reaches, with every guess marked."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import mujoco
import pytest
import torch

from robo_rl.commands.own_robots.new import main
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import DrivenJoint
from robo_rl.sim.robots.model_reader import ModelReader
from robo_rl.sim.robots.proposal import propose
from tests.sim.robots.sliding import JOINTS, MODELS, SCARA, two_scaras

EXAMPLES = Path(__file__).parents[3] / "examples"


def made(folder: Path, how: str, model: Path) -> str:
    assert main(folder, **{how: model}) == 0
    return str(folder / "card.toml")


@pytest.mark.parametrize(
    ("how", "model"),
    [("mjcf", FOLDER / "go2" / "go2.xml"), ("urdf", EXAMPLES / "own_quadruped" / "quadruped.urdf")],
)
def test_a_quadruped_of_a_model_has_its_legs_and_stands(how: str, model: Path, tmp_path: Path) -> None:
    robot = load_robot(made(tmp_path / "made", how, model))
    figures = robot.figures()
    assert figures["no_walk"] is None
    assert len(robot.joints) == 12
    plant = MujocoPlant(robot.mechanism, 1, 0.02)
    plant.place(torch.arange(1))
    stand = torch.tensor([[joint.stand for joint in robot.joints]])
    for _ in range(100):
        plant.step({"joint_position_target": stand})
    height, (x, y, z, _) = float(plant.truth()["position"][0, 2]), plant.truth()["orientation"][0].tolist()
    assert height > 0.7 * figures["height_m"]
    assert math.hypot(x, y) < 0.1
    assert abs(z) < 0.1


def test_an_arm_of_a_model_reaches_around_its_home_with_its_tool_down(tmp_path: Path) -> None:
    robot = load_robot(made(tmp_path / "made", "mjcf", FOLDER / "ur5e" / "ur5e.xml"))
    pose = robot.chain.pose([float(angle) for angle in robot.home])
    assert float(pose.z[2]) == pytest.approx(-1.0, abs=1e-3)
    assert robot.figures()["no_reach"] is None


@pytest.mark.parametrize("name", ["scara", "gantry"])
def test_an_arm_with_slides_has_a_home_and_a_workspace_that_it_reaches(name: str, tmp_path: Path) -> None:
    model, text = MODELS[name]
    (tmp_path / model).write_text(text)
    robot = load_robot(made(tmp_path / "made", "urdf" if model.endswith("urdf") else "mjcf", tmp_path / model))
    assert [(joint.name, joint.slides) for joint in robot.joints] == [(k, told[0]) for k, told in JOINTS[name].items()]
    assert [list(range_of(joint)) for joint in robot.joints] == [told[1] for told in JOINTS[name].values()]
    assert robot.figures()["no_reach"] is None
    lower, upper = robot.workspace
    assert min(b - a for a, b in zip(lower, upper, strict=True)) > 0.05


def test_jaws_are_no_joints_of_an_arm(tmp_path: Path) -> None:
    """The Panda's fingers slide, two on its hand."""
    robot = load_robot(made(tmp_path / "made", "mjcf", FOLDER / "panda" / "panda.xml"))
    assert len(robot.joints) == 7
    assert not robot.slides


def test_two_arms_are_one_robot_each_with_a_workspace_on_its_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.urdf").write_text(two_scaras())
    robot = load_robot(made(tmp_path / "made", "urdf", tmp_path / "two.urdf"))
    told = capsys.readouterr().out
    assert 'a robot with two arms (kind = "two_arms")' in told
    assert "one arm alone is a card with kind" in told
    assert list(robot.arms) == ["left", "right"]
    assert robot.arms["left"].joint_names == ("shoulder_2", "elbow_2", "quill_2", "wrist_2")
    assert robot.figures()["no_reach"] is None
    assert robot.arms["left"].workspace[0][1] > robot.arms["right"].workspace[1][1]


def range_of(joint: DrivenJoint) -> tuple[float, float]:
    return joint.lower, joint.upper


def test_what_is_read_is_the_model_s_and_what_is_guessed_says_so(tmp_path: Path) -> None:
    model = EXAMPLES / "own_quadruped" / "quadruped.urdf"
    card = Path(made(tmp_path / "made", "urdf", model))
    told, joints = tomllib.loads(card.read_text()), mujoco.MjModel.from_xml_path(str(model))
    for motor in told["motors"]:
        (joint,) = motor["joints"]
        assert motor["range"]["value"] == pytest.approx(joints.joint(joint).range)
        for figure, value in motor.items():
            if isinstance(value, dict):
                read = figure in ("range", "effort", "velocity")
                assert value["source"].startswith("quadruped.urdf" if read else "guessed, check"), figure


def test_meshes_elsewhere_in_the_package_come_along(tmp_path: Path) -> None:
    text = (EXAMPLES / "own_quadruped" / "quadruped.urdf").read_text()
    package = tmp_path / "dog_description"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "meshes" / "hull.obj").write_text(
        "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    mesh = '<geometry><mesh filename="package://dog_description/meshes/hull.obj"/></geometry>'
    text = text.replace('<link name="body">', f'<link name="body"><collision name="hull">{mesh}</collision>')
    (package / "urdf" / "dog.urdf").write_text(text)
    made(tmp_path / "made", "urdf", package / "urdf" / "dog.urdf")
    assert (tmp_path / "made" / "meshes" / "hull.obj").is_file()


def test_models_of_no_kind_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "cart.xml").write_text(
        '<mujoco><worldbody><body name="cart"><joint name="x" type="slide"/><geom size="0.1"/></body></worldbody>'
        "</mujoco>"
    )
    with pytest.raises(CardError, match=r"cart\.xml: it has 1 joints, 0 legs"):
        main(tmp_path / "made", mjcf=tmp_path / "cart.xml")
    assert not (tmp_path / "made").exists()


def test_a_model_given_for_a_robot_file_leads_to_the_command() -> None:
    with pytest.raises(CardError, match="robo-rl new NAME --urdf"):
        load_robot(EXAMPLES / "own_quadruped" / "quadruped.urdf")


def test_an_equality_that_is_switched_off_ties_no_joints(tmp_path: Path) -> None:
    links = "".join(
        f'<body name="l{k}" pos="0 0 0.2"><joint name="j{k}" axis="0 {k % 2} {1 - k % 2}" range="-100 100"/>'
        '<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.15" mass="1"/>'
        for k in range(4)
    )
    (tmp_path / "arm.xml").write_text(
        f'<mujoco><worldbody><body name="base"><geom size="0.05" mass="1"/>{links}{"</body>" * 4}</body></worldbody>'
        '<equality><joint active="false" joint1="j1" joint2="j2"/></equality></mujoco>'
    )
    reader = ModelReader(tmp_path / "arm.xml")
    assert [reader.name(joint) for joint in reader.longest()] == ["j0", "j1", "j2", "j3"]


LEG = """<body name="thigh"><joint name="hip" axis="0 1 0" range="-150 0"/><geom size="0.05" fromto="0 0 0 0 0 -0.4"
type="capsule"/><body pos="0 0 -0.4"><joint name="{knee}" axis="0 1 0" range="-150 0"/><geom size="0.05"
fromto="0 0 0 0 0 -0.4" type="capsule"/><body pos="0 0 -0.4"><joint name="ankle" axis="0 1 0" range="-45 45"/>
<geom size="0.05" fromto="-0.1 0 0 0.2 0 0" type="capsule"/></body></body></body>"""
PLANAR = """<joint name="rootx" type="slide" axis="1 0 0"/><joint name="rootz" type="slide" axis="0 0 1"/>
<joint name="rooty" axis="0 1 0"/>"""


@pytest.mark.parametrize(
    ("joints", "knee", "told"),
    [
        (PLANAR, "knee", r"its trunk 'torso' moves in a plane, by the joints \['rootx', 'rootz', 'rooty'\].*own-task"),
        ("", "left knee", "a joint of the body '' has the name 'left knee'; expected 1 to 64 letters"),
        ("", "knä", "has the name 'knä'; expected"),
    ],
)
def test_models_that_no_card_can_have_are_refused_by_what_is_in_them(
    joints: str, knee: str, told: str, tmp_path: Path
) -> None:
    body = f'<body name="torso" pos="0 0 1">{joints}<geom size="0.1"/>{LEG.format(knee=knee)}</body>'
    (tmp_path / "hopper.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.raises(CardError, match=told):
        propose(tmp_path / "hopper.xml", "hopper")


@pytest.mark.parametrize(
    ("limits", "stops"),
    [
        ('upper="2"', (0.0, 2.0)),
        ('lower="-2"', (-2.0, 0.0)),
        ('lower="-1e16" upper="1e16"', (-math.pi, math.pi)),
        ("", (-math.pi, math.pi)),
    ],
)
def test_stops_that_a_urdf_leaves_out_are_zero_and_endless_ones_none(
    limits: str, stops: tuple[float, float], tmp_path: Path
) -> None:
    """wiki.ros.org/urdf/XML/joint: lower and upper default to 0; MuJoCo alone knows no stop where one is left out."""
    text = SCARA.replace('<limit lower="-2.6" upper="2.6"', f"<limit {limits}")
    (tmp_path / "arm.urdf").write_text(text)
    reader = ModelReader(tmp_path / "arm.urdf")
    elbow = reader.model.joint("elbow").id
    assert reader.stops(elbow) == pytest.approx(stops)
    assert reader.limited(elbow) == (stops[1] < math.pi)


def test_limits_that_may_be_degrees_are_told(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(SCARA.replace('"-2.6" upper="2.6"', '"-150" upper="150"'))
    assert (
        "range: ['elbow'] turn by more than 12.6 rad; are the model's limits in degrees?"
        in propose(tmp_path / "arm.urdf", "arm").doubts
    )


def test_a_second_arm_on_a_base_of_its_own_is_told(tmp_path: Path) -> None:
    arms = "".join(
        f'<body name="base{k}" pos="0 {k} 0"><geom size="0.05" mass="1"/>'
        + "".join(
            f'<body name="l{k}{j}" pos="0 0 0.2"><joint name="j{k}{j}" axis="0 {j % 2} {1 - j % 2}" range="-100 100"/>'
            '<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.15" mass="1"/>'
            for j in range(4)
        )
        + "</body>" * 5
        for k in range(2)
    )
    (tmp_path / "two.xml").write_text(f"<mujoco><worldbody>{arms}</worldbody></mujoco>")
    doubts = propose(tmp_path / "two.xml", "two").doubts
    assert any("'base1' stands beside it, with joints of its own" in doubt for doubt in doubts)
