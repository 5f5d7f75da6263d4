"""Bullet beside MuJoCo: where two engines must agree, they do."""

from __future__ import annotations

import copy
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.robots.urdf import Style, write_urdf

pybullet = pytest.importorskip("pybullet", reason="pybullet is missing: pip install 'robo-rl[dev]'")
from pybullet_utils.bullet_client import BulletClient  # noqa: E402

from robo_rl.sim.plants.bullet import BulletPlant  # noqa: E402
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant  # noqa: E402

CARD = load_legged("go2")
STAND = torch.tensor([[joint.stand for joint in CARD.joints]])
UPRIGHT = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
STILL = torch.zeros(1, 3)


def test_a_killed_process_is_told_and_does_not_hang() -> None:
    plant = BulletPlant(CARD.mechanism, 2, 0.02, processes=2)
    for child in multiprocessing.active_children():
        child.kill()
    with pytest.raises(ChildProcessError, match="by Bullet ended, exit code -9"):
        plant.step({"joint_position_target": STAND.expand(2, -1)})


def both() -> tuple[BulletPlant, MujocoPlant]:
    physics = Physics(timestep=0.001, contacts="all")
    return BulletPlant(CARD.mechanism, 1, 0.02), MujocoPlant(CARD.mechanism, 1, 0.02, physics, threads=1)


def test_both_engines_give_the_same_truth_for_the_same_placement() -> None:
    turn = torch.tensor([[0.3, -0.2, 0.1, 0.9]])
    state = (
        torch.tensor([[0.1, -0.2, 2.0]]), turn / turn.norm(), torch.tensor([[1.0, -0.5, 0.2]]),
        torch.tensor([[0.5, 1.0, -2.0]]), STAND + 0.1, torch.linspace(-1, 1, 12)[None],
    )  # fmt: skip
    bullet, reference = both()
    for plant in (bullet, reference):
        plant.place(torch.arange(1), *state)
    for name in reference.truth():
        if name not in ("joint_torque", "foot_force"):
            torch.testing.assert_close(bullet.truth()[name], reference.truth()[name], atol=2e-5, rtol=1e-5)


def test_a_standing_robot_stands_alike_in_both_engines() -> None:
    bullet, reference = both()
    for plant in (bullet, reference):
        for _ in range(100):
            plant.step({"joint_position_target": STAND})
    one, two = bullet.truth(), reference.truth()
    weight = float(reference.nominal.mass.sum()) * 9.81
    assert float(one["foot_force"].sum()) == pytest.approx(weight, rel=0.01)
    torch.testing.assert_close(one["foot_force"], two["foot_force"], rtol=0.15, atol=0.0)
    torch.testing.assert_close(one["position"][:, 2], two["position"][:, 2], rtol=0.0, atol=0.015)
    torch.testing.assert_close(one["joint_position"], two["joint_position"], rtol=0.0, atol=0.12)


def test_a_robot_in_the_air_moves_alike_in_both_engines() -> None:
    bullet, reference = both()
    for plant in (bullet, reference):
        plant.param("joint_friction")[:] = 0.0
        place = torch.tensor([[0.0, 0.0, 5.0]])
        plant.place(torch.arange(1), place, UPRIGHT, STILL, STILL, STAND, torch.zeros_like(STAND))
        for k in range(10):
            plant.step({"joint_position_target": STAND + 0.2 * np.sin(0.5 * k)})
    one, two = bullet.truth(), reference.truth()
    torch.testing.assert_close(one["position"], two["position"], rtol=0.0, atol=0.03)
    torch.testing.assert_close(one["joint_position"], two["joint_position"], rtol=0.0, atol=0.05)


def test_parameters_of_a_robot_reach_its_world() -> None:
    plant = BulletPlant(CARD.mechanism, 1, 0.02)
    plant.param("mass")[0, 0] += 3.0
    plant.place(
        torch.arange(1), torch.tensor([[0.0, 0.0, 0.29]]), UPRIGHT, STILL, STILL, STAND, torch.zeros_like(STAND)
    )
    for _ in range(100):
        plant.step({"joint_position_target": STAND})
    weight = float(plant.param("mass").sum()) * 9.81
    assert float(plant.truth()["foot_force"].sum()) == pytest.approx(weight, rel=0.02)


def test_every_drawn_number_reaches_bullet_as_it_is(tmp_path: Path) -> None:
    """Bullet reads a file in pieces of 8,191 characters: whatever they cut in two would be another number."""
    plant, draw = MujocoPlant(CARD.mechanism, 1, 0.02, Physics(contacts="all")), np.random.default_rng(0)
    client = BulletClient(pybullet.DIRECT)
    for k in range(40):
        model = copy.copy(plant.model)
        mass = plant.nominal.mass[0].numpy() * draw.uniform(0.9, 1.1, plant.nominal.mass.shape[1])
        center = plant.nominal.center_of_mass[0].numpy() + draw.uniform(-0.03, 0.03, (len(mass), 3))
        model.body_mass[1:], model.body_ipos[1:] = mass, center
        path = tmp_path / f"{k}.urdf"
        path.write_text(write_urdf(model, "a" * (1 + 10 * k), CARD.base, style=Style(visual=False)))  # cut elsewhere
        robot = client.loadURDF(str(path), flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
        found = {client.getBodyInfo(robot)[0].decode(): -1}
        found |= {client.getJointInfo(robot, i)[12].decode(): i for i in range(client.getNumJoints(robot))}
        for i in range(1, plant.model.nbody):
            figures = client.getDynamicsInfo(robot, found[plant.model.body(i).name])
            assert figures[0] == pytest.approx(mass[i - 1], rel=1e-12)
            np.testing.assert_allclose(figures[3], center[i - 1], rtol=0, atol=1e-12)


def test_a_delayed_target_moves_the_joints_that_much_later() -> None:
    plant = BulletPlant(CARD.mechanism, 2, 0.02)
    plant.param("command_delay")[1] = 0.02
    stands = STAND.expand(2, -1)
    place = torch.tensor([[0.0, 0.0, 5.0]]).expand(2, -1)
    still = torch.zeros(2, 3)
    plant.place(torch.arange(2), place, UPRIGHT.expand(2, -1), still, still, stands, torch.zeros_like(stands))
    plant.step({"joint_position_target": stands + 0.3})
    moved = (plant.truth()["joint_position"] - stands).abs().amax(1)
    assert float(moved[0]) > 0.01
    assert float(moved[1]) < 1e-3


def test_robots_move_alike_however_many_processes_share_them() -> None:
    def walked(processes: int) -> torch.Tensor:
        plant = BulletPlant(CARD.mechanism, 3, 0.02, processes)
        plant.param("mass")[1, 0] += 2.0
        plant.param("force")[2, 0] = 30.0
        stands = STAND.expand(3, -1)
        place, still = torch.tensor([[0.0, 0.0, 0.3]]), torch.zeros(3, 3)
        for ids in (torch.arange(3), torch.tensor([1])):
            k = len(ids)
            plant.place(
                ids, place.expand(k, -1), UPRIGHT.expand(k, -1), still[:k], still[:k], stands[:k], 0 * stands[:k]
            )
        for _ in range(3):
            plant.step({"joint_position_target": stands + torch.tensor([[0.0], [0.1], [0.2]])})
        return torch.cat(list(plant.truth().values()), -1)

    assert torch.equal(walked(1), walked(2))
