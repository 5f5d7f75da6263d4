"""What a model says of a gripper's joints and pads, and of the base, besides what the card has figures for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.figures import CardError

ARM = Path(__file__).parents[3] / "examples" / "own_arm"
URDF = (ARM / "arm.urdf").read_text()
(FINGER,) = re.findall(r'<joint name="right_finger_joint".*?</joint>', URDF, re.DOTALL)
(LEADER,) = re.findall(r'<joint name="left_finger_joint".*?</joint>', URDF, re.DOTALL)
BASE = '<link name="base_link">'


def read(folder: Path, old: str, new: str) -> mujoco.MjModel:
    """The arm with one thing of its model changed, as the simulation has it."""
    assert old in URDF
    (folder / "arm.urdf").write_text(URDF.replace(old, new, 1))
    shutil.copy(ARM / "card.toml", folder)
    return assemble(load_robot(str(folder / "card.toml")).mechanism, Physics(contacts="model"))


REPLACED = {
    "friction": (FINGER, FINGER.replace("</joint>", '<dynamics damping="40" friction="30"/></joint>')),
    "stops": (FINGER, FINGER.replace('upper="0.0425"', 'upper="0.01"')),
    "effort": (FINGER, FINGER.replace('effort="60"', 'effort="0.1"')),
}


@pytest.mark.parametrize("kind", REPLACED)
def test_a_finger_that_follows_has_the_figures_of_the_card(kind: str, tmp_path: Path) -> None:
    """The leader's: else it would jam the hand, or brake it, and nobody would know why."""
    model, plain = read(tmp_path, *REPLACED[kind]), assemble(load_robot(str(ARM / "card.toml")).mechanism, Physics())
    for field in ("jnt_range", "jnt_limited", "jnt_actfrclimited", "dof_damping", "dof_frictionloss", "dof_armature"):
        assert np.array_equal(getattr(model, field), getattr(plain, field)), field


def on(kind: str) -> str:
    joint = f'<joint name="lift" type="{kind}"><parent link="world"/><child link="base_link"/><axis xyz="0 0 1"/>'
    return f'<link name="world"/>{joint}<limit lower="-1" upper="1" effort="9" velocity="1"/></joint>{BASE}'


REFUSED = {
    "a base that slides": (BASE, on("prismatic"), r"what moves the base 'base_link' is \['lift'\]"),
    "a base that turns": (BASE, on("continuous"), r"what moves the base 'base_link' is \['lift'\]"),
    "a base on a plane": (BASE, on("planar"), r"what moves the base 'base_link' is \['lift_TX', 'lift_TY', 'lift_RZ"),
    "two ratios": (LEADER, LEADER.replace("</joint>", '<mimic joint="right_finger_joint" multiplier="3"/></joint>'),
                   "follows 'left_finger_joint' by"),
    "no mass": ('<mass value="4.0"/>', "", "missing element: 'mass' Element 'inertial', line [0-9]+.$"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_move_otherwise_than_the_card_says_is_refused(kind: str, tmp_path: Path) -> None:
    old, new, message = REFUSED[kind]
    with pytest.raises(CardError, match=message):
        read(tmp_path, old, new)


@pytest.mark.parametrize("bits", ["0 0", "4 4", "2 0"])
def test_pads_and_links_touch_what_is_not_the_robot_whatever_their_own_bits(bits: str, tmp_path: Path) -> None:
    """Bits of contype and conaffinity are for the scene that a file was made for."""
    spec = mujoco.MjSpec.from_file(str(ARM / "arm.urdf"))
    spec.compiler.fusestatic = spec.compiler.discardvisual = False
    spec.compile()
    contype, conaffinity = bits.split()
    for name in ("left_pad", "palm") if bits != "0 0" else ("left_pad",):
        spec.geom(name).contype, spec.geom(name).conaffinity = int(contype), int(conaffinity)
    (tmp_path / "arm.xml").write_text(spec.to_xml())
    (tmp_path / "card.toml").write_text((ARM / "card.toml").read_text().replace("arm.urdf", "arm.xml"))
    mechanism = load_robot(str(tmp_path / "card.toml")).mechanism
    model = assemble(mechanism, Physics(contacts="model"))
    ground = model.geom("ground 0").id
    for name in ("left_pad", "right_pad", "palm", "forearm"):
        shape = model.geom(name).id
        touches = model.geom_contype[ground] & model.geom_conaffinity[shape]
        assert touches, name
