"""Legs of any number, as they are found in a model: against another module's mirror, and on a robot made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks.legged.gait import JOINTS, Trot
from robo_rl.sim.tasks.legged.legs import find_legs
from robo_rl.sim.tasks.legged.limbs import find_limbs

MOTOR = """
[[motors]]
name = "{name}"
joints = [{joints}]
stand = {{ value = {stand}, unit = "rad", source = "a test" }}
range = {{ value = [-2.0, 2.0], unit = "rad", source = "a test" }}
effort = {{ value = 5.0, unit = "N*m", source = "a test" }}
velocity = {{ value = 9.0, unit = "rad/s", source = "a test" }}
stiffness = {{ value = 20.0, unit = "N*m/rad", source = "a test" }}
damping = {{ value = 0.5, unit = "N*m*s/rad", source = "a test" }}
armature = {{ value = 0.001, unit = "kg*m^2", source = "a test" }}
friction = {{ value = 0.0, unit = "N*m", source = "a test" }}
"""


def insect(folder: Path, stands: dict[str, float] | None = None, hold: str = "") -> LeggedCard:
    """A robot of six legs of two joints (yaw, lift), with a tail that lifts and wags, its joints in a mixed order."""
    legs = ""
    for x, row in ((0.2, "f"), (0.0, "m"), (-0.2, "r")):
        for y, side in ((0.1, "l"), (-0.1, "r")):
            legs += f"""
<body name="{row}{side}" pos="{x} {y} 0"><joint name="{row}{side}_yaw" axis="0 0 1"/>
<inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/>
<body pos="0 {y} 0"><joint name="{row}{side}_lift" axis="{1 if y > 0 else -1} 0 0"/>
<inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/>
<geom name="{row}{side}_foot" type="sphere" size="0.01" pos="0 {y} -0.1"/></body></body>"""
    (folder / "insect.xml").write_text(f"""
<mujoco><compiler angle="radian" autolimits="true"/><worldbody><body name="base">
<inertial pos="0 0 0" mass="2" diaginertia="0.01 0.01 0.01"/>{legs}
<body name="tail" pos="-0.3 0 0"><joint name="tail_lift" axis="0 1 0"/><joint name="tail_wag" axis="0 0 1"/>
<inertial pos="-0.1 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/></body></body></worldbody></mujoco>""")
    every = [f"{row}{side}_{part}" for part in ("lift", "yaw") for side in "rl" for row in "fmr"]
    every = ["tail_wag", *every, "tail_lift"]
    motors = "".join(MOTOR.format(name=name, joints=f'"{name}"', stand=(stands or {}).get(name, 0.0)) for name in every)
    (folder / "insect.toml").write_text(
        f'kind = "legged"\ntitle = "An insect"\nmodel = "insect.xml"\nbase = "base"\njoints = {every}\n'
        f"feet = {[f'{row}{side}_foot' for side in 'lr' for row in 'fmr']}\n{motors}{hold}".replace("'", '"')
    )
    return load_robot(folder / "insect.toml", LeggedCard)


@pytest.mark.parametrize("name", ["go2", "a1"])
def test_the_mirror_that_is_found_is_the_one_of_the_trot(name: str) -> None:
    """``gait`` mirrors by the sides and parts of quadrupeds' legs; ``limbs`` by places and axes in the model."""
    card = load_legged(name)
    limbs, trot = find_limbs(card), Trot(find_legs(card))
    joints = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 12)).astype(np.float32))
    theirs = trot.jointwise(trot.mirrored(trot.legwise(joints), torch.full((4, 1), -1.0), JOINTS))
    torch.testing.assert_close(joints[:, list(limbs.opposite)] * torch.tensor(limbs.signs), theirs, rtol=0, atol=0)
    assert [len(leg) for leg in limbs.legs] == [3, 3, 3, 3]
    assert limbs.others == ()


def test_six_legs_of_two_joints_and_a_tail_are_found(tmp_path: Path) -> None:
    card = insect(tmp_path)
    limbs, names = find_limbs(card), card.joint_names
    assert [[names[i] for i in leg] for leg in limbs.legs] == [
        [f"{row}{side}_yaw", f"{row}{side}_lift"] for side in "lr" for row in "fmr"
    ]
    assert {names[i] for i in limbs.others} == {"tail_lift", "tail_wag"}
    image = {name: (names[limbs.opposite[i]], limbs.signs[i]) for i, name in enumerate(names)}
    assert image["fl_yaw"] == ("fr_yaw", -1.0)
    assert image["mr_lift"] == ("ml_lift", 1.0)  # their axes are opposite, as mirrors have them
    assert image["tail_lift"] == ("tail_lift", 1.0)
    assert image["tail_wag"] == ("tail_wag", -1.0)
    assert limbs.opposite_foot == (3, 4, 5, 0, 1, 2)
    assert limbs.mass == pytest.approx(2 + 12 * 0.1 + 0.1)


def test_a_mirror_of_a_mirror_is_the_robot(tmp_path: Path) -> None:
    for card in (insect(tmp_path), load_legged("go2")):
        limbs = find_limbs(card)
        assert [limbs.opposite[i] for i in limbs.opposite] == list(range(len(card.joints)))
        assert all(limbs.signs[i] == limbs.signs[k] for i, k in enumerate(limbs.opposite))


def test_a_robot_that_is_not_alike_on_both_sides_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CardError, match=r"'f._lift' and 'f._lift' are mirror images, but stand at .*; expected -?0.3"):
        find_limbs(insect(tmp_path, {"fl_lift": 0.3, "fr_lift": -0.3}))
    find_limbs(insect(tmp_path, {"fl_lift": 0.3, "fr_lift": 0.3}))
    card = insect(tmp_path)
    card.model.write_text(card.model.read_text().replace('pos="0.2 -0.1 0"', 'pos="0.3 -0.1 0"'))
    with pytest.raises(CardError, match=r"joint 'f._\w+' at .* has no mirror image on the other side"):
        find_limbs(card)


def test_gains_of_the_hold_are_those_of_all_motors_or_of_none(tmp_path: Path) -> None:
    hold = 'hold_stiffness = { value = 300.0, unit = "N*m/rad", source = "a test" }\n'
    with pytest.raises(CardError, match=r"motors\[0\] is .*; expected the fields .*'hold_damping', 'hold_stiffness'"):
        insect(tmp_path, hold=hold)
    assert load_legged("go2").joints[0].hold_stiffness is None


def test_the_hardware_of_a_card_is_a_fact_of_the_contract(tmp_path: Path) -> None:
    told = '[hardware]\nmode_machine = { value = 5, unit = "1", source = "a test" }\n'
    card = insect(tmp_path, hold=told)
    assert card.facts().facts["hardware"] == {"mode_machine": 5.0}
    assert card.sources["hardware.mode_machine"] == "a test"
    assert set(load_legged("go2").facts().facts) == {"feet", "stand"}
