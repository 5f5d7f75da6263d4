"""Legs are found in the model: another robot may call, order and count its joints as it likes."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.indices import find_indices
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks.legged.gait import FOLD, LIFT
from robo_rl.sim.tasks.legged.legs import find_legs
from robo_rl.sim.tasks.legged.rough import RoughTeacher
from robo_rl.sim.tasks.legged.walk import FlatWalk

ORDER = [7, 0, 4, 11, 2, 9, 1, 10, 3, 8, 6, 5]
AGAINST = [1, 2, 3, 6, 8, 11]
"""Joints of the Go2, by their place in its card, that count the other way in ``renamed``."""


class Same(NamedTuple):
    """A Go2 whose computer has its joints in another order and under other names, half of them counting backwards."""

    card: LeggedCard

    def joints(self, values: Tensor) -> Tensor:
        """Numbers of the Go2's joints (…, 12) as this one has them."""
        signs = torch.ones(12)
        signs[AGAINST] = -1.0
        return (values * signs)[..., ORDER]

    def back(self, values: Tensor) -> Tensor:
        signs = torch.ones(12)
        signs[AGAINST] = -1.0
        return values[..., np.argsort(ORDER).tolist()] * signs


def changed(folder: Path, change: str = "", into: str = "") -> Path:
    """The Go2's model with one piece of its text replaced everywhere."""
    text = load_legged("go2").model.read_text()
    assert change in text
    path = folder / "model.xml"
    path.write_text(text.replace(change, into) if change else text)
    return path


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Same:
    go2 = load_legged("go2")
    spec, joints, motors = mujoco.MjSpec.from_file(str(go2.model)), list(go2.joints), list(go2.motors)
    for place, joint in enumerate(go2.joints):
        found = spec.joint(joint.name)
        found.name = f"axis_{place}"
        joints[place] = dataclasses.replace(joint, name=found.name)
        if place in AGAINST:
            found.axis = -found.axis
            joints[place] = dataclasses.replace(
                joints[place], lower=-joint.upper, upper=-joint.lower, stand=-joint.stand
            )
    path = tmp_path_factory.mktemp("renamed") / "model.xml"
    path.write_text(spec.to_xml())
    card = dataclasses.replace(
        go2, name="renamed", model=path, joints=tuple(joints[i] for i in ORDER), motors=tuple(motors[i] for i in ORDER)
    )
    return Same(card)


def test_the_go2_s_legs_are_those_of_its_card() -> None:
    legs = find_legs(load_legged("go2"))
    assert legs.sides == ("FR", "FL", "RR", "RL")
    assert legs.order == tuple(range(12))
    assert set(legs.turns) == set(legs.knees) == {1.0}
    assert (legs.place, legs.length, legs.radius, legs.mass) == ((0.19, 0.14), 0.27, 0.022, 15.0)


def test_joints_are_found_by_what_they_move(renamed: Same) -> None:
    legs = find_legs(renamed.card)
    assert [renamed.card.joint_names[i] for i in legs.order] == [f"axis_{i}" for i in range(12)]
    assert [i for i in range(12) if legs.turns[i] < 0] == AGAINST
    assert legs._replace(order=(), turns=()) == find_legs(load_legged("go2"))._replace(order=(), turns=())


@pytest.mark.parametrize("kind", [FlatWalk, RoughTeacher])
def test_the_same_robot_described_otherwise_sees_earns_and_does_the_same(renamed: Same, kind: type[FlatWalk]) -> None:
    """Side by side over a second: one action, one trajectory."""
    n, generator = 8, torch.Generator().manual_seed(0)
    held = {"command/x": 0.3, "command/y": 0.1, "command/yaw": 0.3, "push/x": 0.0, "push/y": 0.0}
    envs = [LearningEnv(VecEnv(kind(card), n, seed=5, fixed=held)) for card in (load_legged("go2"), renamed.card)]
    first, second = (env.env for env in envs)
    for env in (first, second):
        env.sensors.noise.zero_()
        env.draws.bias.zero_()
        env.draws.noise.zero_()
    truth = first.plant.truth()
    still = {"linear_velocity": torch.zeros(n, 3), "angular_velocity": torch.zeros(n, 3)}
    place = {**{name: truth[name].clone() for name in ("position", "orientation")}, **still}
    angles, speeds = truth["joint_position"].clone(), 0.1 * torch.randn(n, 12, generator=generator)
    everybody = torch.arange(n)
    first.plant.place(everybody, **place, joint_position=angles, joint_velocity=speeds)
    second.plant.place(everybody, **place, joint_position=renamed.joints(angles), joint_velocity=renamed.joints(speeds))
    going = torch.ones(n, dtype=torch.bool)
    for k in range(50):
        action = 0.1 * torch.randn(n, 12, generator=generator)
        a, b = (env.step(action) for env in envs)
        going[a.ids], going[b.ids] = False, False
        if k < 25:
            continue  # memories hold where the robots were before
        for name in ("observation", "privileged", "reward"):
            mine, theirs = getattr(a, name)[going], getattr(b, name)[going]
            torch.testing.assert_close(theirs, mine, atol=2e-2, rtol=1e-2)
        angles = renamed.back(second.plant.truth()["joint_position"])
        torch.testing.assert_close(angles[going], truth["joint_position"][going], atol=1e-3, rtol=0)
    assert going.sum() >= n // 2, "the comparison goes all the way"


@pytest.mark.parametrize("knees", [1.0, -1.0])
def test_a_foot_rises_straight_in_mid_swing_whether_knees_are_behind_or_in_front(knees: float) -> None:
    go2 = load_legged("go2")
    joints = tuple(
        joint
        if "hip" in joint.name or knees > 0
        else dataclasses.replace(joint, lower=-joint.upper, upper=-joint.lower, stand=-joint.stand)
        for joint in go2.joints
    )
    card = dataclasses.replace(go2, joints=joints)
    task = FlatWalk(card)
    assert set(task.legs.knees) == {knees}
    model = assemble(card.mechanism, Physics())
    indices, data = find_indices(model, card.mechanism), mujoco.MjData(model)

    def feet(targets: np.ndarray) -> np.ndarray:
        data.qpos[indices.position] = targets
        mujoco.mj_kinematics(model, data)
        return np.array([data.geom(foot).xpos for foot in card.feet])

    stand = task.stand[0].double().numpy()
    middle = task.gait.targets(torch.tensor([[0.0, 1.0, 0.5, 0.0, 0.0]]))[0].double().numpy()
    moved = feet(stand + middle) - feet(stand)
    lifted = task.gait.diagonal[0].numpy() > 0
    np.testing.assert_allclose(moved[lifted, 2], LIFT, atol=0.02)
    np.testing.assert_allclose(moved[lifted, 0], 0.0, atol=0.02)
    np.testing.assert_allclose(moved[~lifted], 0.0, atol=1e-6)
    assert np.abs(middle).max() == pytest.approx(2 * FOLD)


def test_lengths_and_loads_go_with_the_robot() -> None:
    large, small = FlatWalk(), FlatWalk(load_legged("a1"))
    assert small.lift / large.lift == small.lowest / large.lowest == pytest.approx(0.25 / 0.27)
    for name in ("payload", "push/x", "push/y"):
        assert small.spec.ranges[name].end[1] / large.spec.ranges[name].end[1] == pytest.approx(12 / 15)
    assert small.spec.reward["torque"] / large.spec.reward["torque"] == pytest.approx((15 / 12) ** 2)


@pytest.mark.parametrize(
    ("change", "into", "sentence"),
    [
        ('"FR_hip_joint" axis="1 0 0"', '"FR_hip_joint" axis="0 0 1"', "'FR_hip_joint' turns about .* expected x"),
        ('"RL_calf_joint" axis="0 1 0"', '"RL_calf_joint" axis="1 0 0"', "'RL_calf_joint' turns about .* expected y"),
    ],
)  # fmt: skip
def test_legs_that_bend_otherwise_are_refused(tmp_path: Path, change: str, into: str, sentence: str) -> None:
    card = dataclasses.replace(load_legged("go2"), model=changed(tmp_path, change, into))
    with pytest.raises(CardError, match=sentence):
        find_legs(card)


def test_feet_that_are_not_the_ends_of_four_legs_are_refused(tmp_path: Path) -> None:
    card = load_legged("go2")
    with pytest.raises(CardError, match=r"go2 has 3 feet; expected four legs of three joints each"):
        find_legs(dataclasses.replace(card, feet=card.feet[:3]))
    stiff = dataclasses.replace(card, joints=card.joints[1:], motors=card.motors[1:])
    with pytest.raises(
        CardError, match=r"what no motor moves is \['FR_hip_joint'\]; expected each in the card's joints"
    ):
        find_legs(stiff)
    model = changed(tmp_path, '<joint name="FR_hip_joint" axis="1 0 0"/>')
    with pytest.raises(CardError, match=r"'FR_foot' hangs on the joints \['FR_thigh_joint', 'FR_calf_joint'\]"):
        find_legs(dataclasses.replace(stiff, model=model))


def test_a_joint_that_moves_no_foot_is_refused(tmp_path: Path) -> None:
    go2 = load_legged("go2")
    hip = '<body name="FR_hip"'
    inertial = '<inertial pos="0 0 0" mass="0.5" diaginertia="0.001 0.001 0.001"/>'
    arm = f'<body name="arm" pos="0.2 0 0.1"><joint name="arm" axis="0 0 1"/>{inertial}</body>'
    path = changed(tmp_path, hip, f"{arm}\n{hip}")
    joints, motors = (*go2.joints, dataclasses.replace(go2.joints[0], name="arm")), (*go2.motors, go2.motors[0])
    with pytest.raises(CardError, match=r"joints \['arm'\] move no foot"):
        find_legs(dataclasses.replace(go2, model=path, joints=joints, motors=motors))


def test_which_way_straight_legs_would_bend_is_not_guessed() -> None:
    go2 = load_legged("go2")
    straight = [
        joint if "hip" in joint.name else dataclasses.replace(joint, stand=0.0, lower=-3.0, upper=3.0)
        for joint in go2.joints
    ]
    with pytest.raises(CardError, match=r"joint 'FR_calf_joint' is .* expected 'stand' angles of legs that are bent"):
        find_legs(dataclasses.replace(go2, joints=tuple(straight)))
    upside_down = [
        joint if "thigh" not in joint.name else dataclasses.replace(joint, stand=3.0, lower=-3.2, upper=3.2)
        for joint in go2.joints
    ]
    with pytest.raises(CardError, match="feet down"):
        find_legs(dataclasses.replace(go2, joints=tuple(upside_down)))


def test_a_robot_of_a_third_of_a_kilogram_has_finite_weights_and_loads(tmp_path: Path) -> None:
    text = load_legged("go2").model.read_text()
    for name in ("mass", "fullinertia", "diaginertia"):
        text = re.sub(
            f'{name}="([^"]+)"', lambda m, n=name: f'{n}="{" ".join(str(0.02 * float(x)) for x in m[1].split())}"', text
        )
    path = tmp_path / "model.xml"
    path.write_text(text)
    task = FlatWalk(dataclasses.replace(load_legged("go2"), model=path))
    assert task.legs.mass == pytest.approx(0.3)
    assert task.spec.reward["torque"] == pytest.approx(FlatWalk().spec.reward["torque"] * 50**2)
    assert task.spec.ranges["payload"].end[1] == pytest.approx(0.04)
