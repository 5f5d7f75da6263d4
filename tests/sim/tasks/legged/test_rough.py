"""Walking on rough ground: what teacher and student see, where robots begin, and levels that move."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from robo_rl.contract import ContractError, Network, Provenance
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.height_scan import HeightScan
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.scenes.solids import Solids
from robo_rl.sim.scenes.terrain import KINDS, Ground
from robo_rl.sim.tasks.legged.rough import AHEAD, ASIDE, RoughTeacher
from robo_rl.sim.tasks.loading import load_task

NOWHERE, NETWORK = Provenance("ppo", 0, 0, "0" * 64), Network((8,), "elu", True)


@pytest.fixture(scope="module")
def env() -> VecEnv:
    return VecEnv(load_task("go2-rough-teacher"), 12, seed=3)


def test_a_scan_on_a_slope_is_the_slope() -> None:
    nodes = np.arange(201) * 0.05 - 5.0
    heights = (0.3 * nodes[None, :] - 0.1 * nodes[:, None]).astype(np.float32)
    below = Solids(np.array([[[-5.0, -5.0, -9.0], [5.0, 5.0, -8.0]]]))
    slope = Ground(heights, 0.05, np.zeros((200, 200), bool), below, np.zeros((1, 1, 2)), ("slope",))
    points = [(0.5, 0.0), (0.0, 0.4), (0.0, 0.0)]
    plant = HeightScan(MujocoPlant(load_legged("go2").mechanism, 1, 0.02, ground=slope), slope, points)
    yaw, still = 0.7, torch.zeros(1, 3)
    turn = torch.tensor([[0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]])
    joints = plant.truth()["joint_position"].clone()
    plant.place(
        torch.tensor([0]), position=torch.tensor([[1.0, -2.0, 1.5]]), orientation=turn, linear_velocity=still,
        angular_velocity=still, joint_position=joints, joint_velocity=torch.zeros_like(joints),
    )  # fmt: skip
    for found, (ahead, aside) in zip(plant.truth()["height_scan"][0].tolist(), points, strict=True):
        x = 1.0 + math.cos(yaw) * ahead - math.sin(yaw) * aside
        y = -2.0 + math.sin(yaw) * ahead + math.cos(yaw) * aside
        assert found == pytest.approx(1.5 - (0.3 * x - 0.1 * y), abs=1e-5)
    assert float(plant.truth()["base_height"]) == pytest.approx(1.5 - 0.3 * 1.0 - 0.1 * 2.0, abs=1e-5)


def test_the_mirror_exchanges_left_and_right_of_the_scan() -> None:
    scan = torch.tensor([[ahead + 10.0 * aside for ahead in AHEAD for aside in ASIDE]]).repeat(2, 1)
    seen = RoughTeacher()._seen(scan, torch.tensor([[1.0], [-1.0]]))
    opposite = torch.tensor([ahead - 10.0 * aside for ahead in AHEAD for aside in ASIDE])
    torch.testing.assert_close(seen[1] - seen[0], 5.0 * (opposite - scan[0]))


def test_robots_begin_on_the_platforms_of_the_kinds_that_they_drew() -> None:
    kinds = torch.arange(7.0)
    env = VecEnv(
        load_task("go2-rough"), 7, fixed={"ground/kind": (kinds + 0.5) / 7, "ground/difficulty": 0.99}, evaluation=True
    )
    truth = env.plant.truth()
    heights = truth["position"][:, 2] - truth["base_height"][:, 0]
    expected = dict.fromkeys(KINDS, 0.0) | {"stairs up": -1.2, "stairs down": 1.2}
    expected |= {"slope up": -3.0 * math.tan(math.radians(24)), "slope down": 3.0 * math.tan(math.radians(24))}
    np.testing.assert_allclose(heights, [expected[name] for name in KINDS], atol=1e-4)
    assert float(truth["base_height"].std()) < 1e-3


def test_good_tracking_leads_to_higher_ground_but_not_with_a_fall_and_bad_tracking_to_lower(env: VecEnv) -> None:
    task, column = env.task, env.levels.names.index("ground/difficulty")
    env.levels.level[:, column] = 0.5
    tracking = task.spec.reward["linear_velocity"]
    good, bad = torch.full((12,), 0.8 * tracking), torch.full((12,), 0.2 * tracking)
    survived = torch.ones(12)
    level = env.levels.level
    level[:] = env.levels.moved(level, {"linear_velocity": good, "survived": survived})
    assert env.levels.level[:, column].tolist() == pytest.approx([0.65] * 12)
    level[:] = env.levels.moved(level, {"linear_velocity": bad, "survived": survived})
    level[:] = env.levels.moved(level, {"linear_velocity": good, "survived": 0 * survived})
    assert env.levels.level[:, column].tolist() == pytest.approx([0.5] * 12)
    env.levels.restart()
    assert env.levels.level[:, column].tolist() == [0.0] * 12


def test_a_saved_environment_goes_on_bit_by_bit(env: VecEnv) -> None:
    commands = {"joint_position_target": env.task.stand.expand(12, -1)}
    saved = {name: value.clone() for name, value in env.save().items()}
    first = [env.step(commands) for _ in range(5)][-1]
    env.load(saved)
    second = [env.step(commands) for _ in range(5)][-1]
    assert all(torch.equal(first.signals[name], second.signals[name]) for name in first.signals)
    assert torch.equal(first.reward, second.reward)


def test_the_teacher_sees_ground_that_its_student_does_not() -> None:
    student, teacher = load_task("go2-rough"), load_task("go2-rough-teacher")
    extra = {s.name for s in teacher.spec.signals} - {s.name for s in student.spec.signals}
    assert extra == {"linear_velocity", "foot_height", "foot_force", "height_scan"}
    assert teacher.student == student.name


def test_no_contract_takes_what_a_simulation_alone_knows() -> None:
    message = "signal 'linear_velocity': source is 'simulation'; expected 'sensor' or 'operator': no robot measures it"
    with pytest.raises(ContractError, match=message):
        RoughTeacher().spec.contract(NOWHERE, NETWORK)
    assert load_task("go2-rough").spec.contract(NOWHERE, NETWORK).task == "go2-rough"


def test_a_foot_in_the_air_may_be_higher_but_not_lower_than_the_clock_wants() -> None:
    task = load_task("go2-rough")
    heights = torch.tensor([[0.022 + 0.2, 0.022 + 0.05, 0.022 + 0.03, 0.022]])
    error = task.lift_error({"foot_height": heights}, torch.tensor([[1.0, 1.0, 0.0, 0.0]]))
    torch.testing.assert_close(error, torch.tensor([[0.0, 0.05 - task.lift, 0.03, 0.0]]))


def test_a_robot_that_is_nowhere_stands_over_no_height() -> None:
    nowhere = torch.tensor([[math.nan]])
    assert math.isfinite(float(load_task("go2-rough").ground.height(nowhere, nowhere)))
