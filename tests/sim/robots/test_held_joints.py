"""Joints that the card holds: a robot's torso, head or other arm, as MuJoCo has it with those joints where they are."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from robo_rl.sim.plants.held_joints import hold_joints
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import DrivenJoint, JointGroup, Mechanism
from tests.sim.robots.test_arms_of_others import OWN, changed

TORSO = """<mujoco><compiler angle="degree"/><worldbody><body name="base">
  <body name="torso" pos="0.1 0.2 0.3" euler="20 -30 40"><joint name="lift" type="slide" axis="0 1 2" ref="0.05"/>
    <geom size="0.1"/>
    <body name="head" pos="0 0 0.4" quat="0.5 0.5 -0.5 0.5"><joint name="pan" axis="1 1 0" pos="0.1 0.2 0.3" ref="10"/>
      <geom size="0.1"/><body name="arm" pos="0.3 0 0"><joint name="shoulder" axis="0 1 0"/><geom size="0.1"/>
</body></body></body></body></worldbody></mujoco>"""
SHOULDER = '  <joint name="shoulder_pan_joint" type="revolute">\n    <parent link="base_link"/>'
BESIDE = """  <joint name="lift" type="prismatic"><parent link="base_link"/><child link="torso"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.4" effort="9" velocity="1"/></joint>
  <link name="torso"><inertial><mass value="9"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
"""
LIFTED = BESIDE + SHOULDER.replace("base_link", "torso")
GRIP = "[gripper]"
HELD = '[held]\nlift = { value = 0.1, unit = "m", source = "choice" }\n\n[gripper]'


def test_bodies_are_where_the_held_joints_have_them() -> None:
    whole = mujoco.MjSpec.from_string(TORSO).compile()
    data = mujoco.MjData(whole)
    data.qpos[:] = 0.25, -0.7, 0.4
    mujoco.mj_kinematics(whole, data)
    spec = mujoco.MjSpec.from_string(TORSO)
    driven = JointGroup("joint", (DrivenJoint("shoulder"),))
    held = (("lift", 0.25), ("pan", -0.7))
    hold_joints(spec, Mechanism(name="t", model=Path("t.xml"), base="base", fixed=True, groups=(driven,), held=held))
    model = spec.compile()
    assert [model.joint(i).name for i in range(model.njnt)] == ["shoulder"]
    found = mujoco.MjData(model)
    found.qpos[:] = 0.4
    mujoco.mj_kinematics(model, found)
    np.testing.assert_allclose(found.xpos, data.xpos, atol=1e-12)
    np.testing.assert_allclose(found.xmat, data.xmat, atol=1e-12)


def test_an_arm_on_a_torso_is_as_high_as_the_torso_is_held(tmp_path: Path) -> None:
    plain = load_arm(changed(tmp_path, {}))
    lifted = load_arm(changed(tmp_path, {SHOULDER: LIFTED}, {GRIP: HELD}))
    home = [float(angle) for angle in plain.home]
    difference = np.array(lifted.chain.pose(home).position) - np.array(plain.chain.pose(home).position)
    np.testing.assert_allclose(difference, [0.0, 0.0, 0.1], atol=1e-9)


@pytest.mark.parametrize(
    ("model", "card", "expected"),
    [
        ({SHOULDER: LIFTED}, {}, r"joints is .* in the table \[held\]"),
        ({SHOULDER: LIFTED}, {GRIP: HELD.replace('"m"', '"mm"')}, r"held\.lift\.unit is 'mm'; expected 'rad' of"),
        ({}, {GRIP: HELD}, r"\['lift'\] of the robot's held joints are not in it"),
        ({}, {GRIP: HELD.replace("lift", "elbow_joint")}, "held joint 'elbow_joint' is driven too"),
        ({SHOULDER: LIFTED}, {GRIP: HELD.replace("0.1", "0.5")}, "'lift' is at 0.5 m; expected .* its stops, 0 to 0.4"),
        ({SHOULDER: BESIDE + SHOULDER}, {}, r"what no motor moves is \['lift'\]; expected each in joints"),
    ],
)  # fmt: skip
def test_joints_that_stay_still_are_to_be_in_the_card(
    tmp_path: Path, model: dict[str, str], card: dict[str, str], expected: str
) -> None:
    with pytest.raises(CardError, match=expected):
        load_arm(changed(tmp_path, model, card))


def test_fingers_hang_loose_where_the_card_uses_no_gripper(tmp_path: Path) -> None:
    card = (OWN / "card.toml").read_text()
    gripper, grasp = (card[card.index(name) :].partition("\n\n")[0] for name in ("[gripper]", "[grasp]"))
    arm = load_arm(changed(tmp_path, {}, {gripper: "", grasp: ""}))
    assert arm.fingers is None
    assert arm.chain == load_arm(str(OWN / "card.toml")).chain
