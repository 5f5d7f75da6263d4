"""URDFs as makers publish them: hulls that overlap, inertias that no body has, grippers that close as they count up."""

from __future__ import annotations

import math
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.inertias import LEEWAY
from robo_rl.sim.tasks.arm.workspace import workspace
from robo_rl.sim.tasks.loading import load_task

OWN = Path(__file__).parents[3] / "examples" / "own_arm"
SPHERE = '<collision name="{name}"><origin xyz="{at}"/><geometry><sphere radius="{radius}"/></geometry></collision>'
LIFT = 'ixx="0.0151" iyy="0.1339" izz="0.1339" ixy="0" ixz="0" iyz="0"'
"""Of the own arm's upper arm."""


def changed(folder: Path, model: dict[str, str], card: dict[str, str] | None = None) -> str:
    """The own arm's card in ``folder``, with other words in its URDF and in itself."""
    for name, words in (("arm.urdf", model), ("card.toml", card or {})):
        text = (OWN / name).read_text()
        for old, new in words.items():
            assert old in text
            text = text.replace(old, new)
        (folder / name).write_text(text)
    return str(folder / "card.toml")


def touching(model: mujoco.MjModel, angles: list[float]) -> set[frozenset[str]]:
    """Pairs of bodies that touch with the arm's joints at ``angles`` (rad), the gripper open."""
    data = mujoco.MjData(model)
    data.qpos[: len(angles)] = angles
    data.qpos[len(angles) :] = 0.0425
    mujoco.mj_fwdPosition(model, data)
    bodies = model.geom_bodyid[data.contact.geom]
    return {frozenset(model.body(int(body)).name for body in pair) for pair in bodies}


def test_hulls_that_overlap_at_home_hold_nothing_and_all_else_still_touches(tmp_path: Path) -> None:
    """A base that its first link is stuck in, a forearm that reaches the hand, and that meets the base when folded."""
    big = {
        '<link name="shoulder_link">': '<link name="shoulder_link">'
        + SPHERE.format(name="a", at="0 0 -0.05", radius=0.1),
        '<link name="base_link">': '<link name="base_link">' + SPHERE.format(name="b", at="0 0 0.1", radius=0.1),
        '<link name="forearm_link">': '<link name="forearm_link">'
        + SPHERE.format(name="c", at="-0.38 0 0.1", radius=0.2),
    }
    card = load_arm(changed(tmp_path, big))
    model, home = assemble(card.mechanism, Physics(contacts="model")), [joint.home for joint in card.joints]
    assert touching(model, home) == set()
    data = mujoco.MjData(model)
    data.qpos[: len(home)] = home
    data.qvel[0] = 1.0
    for _ in range(10):
        mujoco.mj_step(model, data)
    assert data.qpos[0] > home[0] + 5 * model.opt.timestep  # the first link turns
    left = {frozenset(pair) for pair in (("base_link", "forearm_link"), ("base_link", "upper_arm_link"))}
    folded = [home[0], -0.8, 2.9, *home[3:]]
    assert touching(model, folded) & left
    plain = assemble(load_arm(str(OWN / "card.toml")).mechanism, Physics(contacts="model"))
    pads = mujoco.mj_name2id(plain, mujoco.mjtObj.mjOBJ_BODY, "left_finger")
    assert not any(pads in (pair >> 16, pair & 0xFFFF) for pair in plain.exclude_signature)  # closed, they touch


@pytest.mark.parametrize("above", [1e-6, 0.16, 0.9 * LEEWAY])
def test_a_moment_of_inertia_a_little_too_great_is_lowered_to_the_others_sum(tmp_path: Path, above: float) -> None:
    """About turned axes: x and y by 30 degrees about z."""
    small, middle = 0.02, 0.05
    most = (1.0 + above) * (small + middle)
    c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    given = turn @ np.diag([small, most, middle]) @ turn.T
    told = f'ixx="{given[0, 0]}" iyy="{given[1, 1]}" izz="{given[2, 2]}" ixy="{given[0, 1]}" ixz="0" iyz="0"'
    model = assemble(load_arm(changed(tmp_path, {LIFT: told})).mechanism, Physics())
    link = model.body("upper_arm_link")
    np.testing.assert_allclose(np.sort(link.inertia), [small, middle, small + middle], rtol=1e-5)
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, link.iquat)
    longest = axes.reshape(3, 3)[:, int(np.argmax(link.inertia))]
    assert abs(longest @ turn[:, 1]) == pytest.approx(1.0, abs=1e-6)


def test_an_inertia_of_no_body_is_refused_with_the_links_name(tmp_path: Path) -> None:
    card = changed(tmp_path, {LIFT: 'ixx="0.02" iyy="0.05" izz="0.1" ixy="0" ixz="0" iyz="0"'})
    with pytest.raises(
        CardError, match=r"body 'upper_arm_link' has the principal moments of inertia 0\.02, 0\.05, 0\.1"
    ):
        assemble(load_arm(card).mechanism, Physics())


def test_a_gripper_that_closes_as_its_joint_counts_up_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """From 0, open, to 42.5 mm, closed: fingers that begin 42.5 mm further out and slide inwards."""
    text = (OWN / "arm.urdf").read_text()
    outwards = re.sub(r'(_finger"/><origin xyz="0 )0( 0\.1"/><axis xyz="0 )(-?)1', _inwards, text)
    assert outwards != text
    changed(tmp_path, {})
    (tmp_path / "arm.urdf").write_text(outwards)
    with pytest.raises(CardError, match=r"closed at 0\.0425 and open at 0.*Turn the <axis>"):
        workspace(load_arm(str(tmp_path / "card.toml")))


def _inwards(found: re.Match[str]) -> str:
    side = -1 if found[3] else 1
    return f"{found[1]}{side * 0.0425}{found[2]}{'' if found[3] else '-'}1"


def test_a_gripper_whose_range_ends_at_zero_is_learnt_with(tmp_path: Path) -> None:
    """Open at 0 and closed at -42.5 mm, as it is after its axis was turned round."""
    model = {
        'xyz="0 0 0.1"/><axis xyz="0 1 0"/>\n    <limit lower="0" upper="0.0425"':
        'xyz="0 0.0425 0.1"/><axis xyz="0 1 0"/>\n    <limit lower="-0.0425" upper="0"',
        'xyz="0 0 0.1"/><axis xyz="0 -1 0"/>\n    <limit lower="0" upper="0.0425"':
        'xyz="0 -0.0425 0.1"/><axis xyz="0 -1 0"/>\n    <limit lower="-0.0425" upper="0"',
    }  # fmt: skip
    card = changed(tmp_path, model, {"range = { value = [0.0, 0.0425]": "range = { value = [-0.0425, 0.0]"})
    seen = [VecEnv(load_task("arm-place", robot), 8, 0).privileged() for robot in (card, str(OWN / "card.toml"))]
    differ = (seen[0] - seen[1]).abs().amax(0) > 1e-4
    assert seen[0].isfinite().all()
    assert int(differ.sum()) == 1  # where the gripper is


MIMIC = '<mimic joint="left_finger_joint"'
SLIDES = '<axis xyz="0 -1 0"/>\n    <limit lower="0" upper="0.0425"'
OTHER_WAY = '<axis xyz="0 1 0"/>\n    <limit lower="-0.0425" upper="0"'
BACKWARDS = 'joint="left_finger_joint" multiplier="-1"'


@pytest.mark.parametrize(
    ("mimic", "followers"),
    [(BACKWARDS, '["right_finger_joint"]'), (None, "{ right_finger_joint = -1.0 }")],
    ids=["told by the model", "told by the card"],
)
def test_a_finger_that_moves_the_other_way_is_where_it_is_when_its_axis_is_turned(
    tmp_path: Path, mimic: str | None, followers: str
) -> None:
    """The own arm's right finger with its axis turned round: the same gripper, described as robosuite's Panda is."""
    told = (OWN / "arm.urdf").read_text()
    found = re.search(r"\s*<mimic[^>]*/>", told)
    assert found
    model = {SLIDES: OTHER_WAY, found[0]: f"<mimic {mimic}/>" if mimic else ""}
    card = load_arm(changed(tmp_path, model, {'["right_finger_joint"]': followers}))
    plain = load_arm(str(OWN / "card.toml"))
    assert workspace(card).closed == pytest.approx(workspace(plain).closed, abs=1e-9)
    seen = [
        VecEnv(load_task("arm-place", robot), 4, 0) for robot in (str(tmp_path / "card.toml"), str(OWN / "card.toml"))
    ]
    for env in seen:
        for _ in range(10):
            commands = {c.name: torch.zeros(4, c.size) for c in env.task.spec.commands}
            commands["joint_position_target"] += torch.tensor([plain.home])
            env.step(commands)
    truths = [env.plant.truth() for env in seen]
    for name in ("gripper_position", "pad_position", "tool_position"):
        torch.testing.assert_close(truths[0][name], truths[1][name], atol=1e-5, rtol=0.0)


def test_fingers_that_move_the_same_way_are_refused_with_how_a_follower_is_turned(tmp_path: Path) -> None:
    told = re.sub(r"\s*<mimic[^>]*/>", "", (OWN / "arm.urdf").read_text())
    changed(tmp_path, {SLIDES: OTHER_WAY})
    (tmp_path / "arm.urdf").write_text(told.replace(SLIDES, OTHER_WAY))
    with pytest.raises(CardError, match=r"stay .* m apart .*\{ NAME = -1\.0 \}"):
        workspace(load_arm(str(tmp_path / "card.toml")))


HAND = '<link name="hand">'
MESH = HAND + '<collision><geometry><mesh filename="package://robots/my_arm/meshes/a.stl"/></geometry></collision>'


@pytest.mark.parametrize("folder", ["robots/my_arm/meshes", "my_arm/meshes", "meshes", ""])
def test_a_mesh_is_found_by_any_end_of_its_packages_path(tmp_path: Path, folder: str) -> None:
    card = changed(tmp_path, {HAND: MESH})
    with pytest.raises(CardError, match=r"a\.stl.*looked for there as ARM/meshes/A\.stl, meshes/A\.stl and A\.stl"):
        load_arm(card).figures()
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "a.stl").write_bytes(_tetrahedron())
    arm = load_arm(card)
    assert tmp_path / folder / "a.stl" in arm.files()
    assert assemble(arm.mechanism, Physics(contacts="model")).nmesh == 1


def _tetrahedron() -> bytes:
    """A binary STL of 1 cm."""
    corners = 0.01 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(np.zeros(3, np.float32).tobytes() + corners[list(face)].tobytes() + b"\0\0" for face in faces)
    return b"\0" * 80 + np.uint32(4).tobytes() + body


@pytest.mark.parametrize("name", ["arm.urdf", "arm.urdf.xacro"])
def test_a_xacro_is_told_from_a_urdf(tmp_path: Path, name: str) -> None:
    card = changed(tmp_path, {}, {'"arm.urdf"': f'"{name}"'})
    (tmp_path / name).write_text((OWN / "arm.urdf").read_text().replace('xyz="0 0 0.1625"', 'xyz="0 0 ${height}"'))
    with pytest.raises(CardError, match=rf"expand it, `xacro {re.escape(name)} > expanded\.urdf`"):
        load_arm(card)


def test_a_mesh_outside_of_the_models_folder_is_read_from_a_copy_in_it(tmp_path: Path) -> None:
    """As in a ROS package: ``urdf/arm.urdf`` and ``meshes/a.stl``. A run's folder has no such neighbour."""
    (tmp_path / "urdf").mkdir()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes/a.stl").write_bytes(_tetrahedron())
    outside = HAND + '<collision><geometry><mesh filename="../meshes/a.stl"/></geometry></collision>'
    card = changed(tmp_path / "urdf", {HAND: outside})
    with pytest.raises(CardError, match=r"a\.stl.*; expected meshes beside the model file"):
        load_arm(card).figures()
    (tmp_path / "urdf/meshes").mkdir()
    (tmp_path / "urdf/meshes/a.stl").write_bytes(_tetrahedron())
    arm = load_arm(card)
    assert arm.figures()["no_reach"] is None
    assert tmp_path / "urdf/meshes/a.stl" in arm.files()
