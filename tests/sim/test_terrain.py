"""Rough ground: heights against MuJoCo's own rays, and patches against what they are meant to be."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.scenes.terrain import CELL, KINDS, PATCH, RISER, ROWS, SLOPE, Ground, rough_ground


@pytest.fixture(scope="module")
def ground() -> Ground:
    return rough_ground()


def middle_row(ground: Ground, kind: str, row: int) -> np.ndarray:
    """Heights from the middle of a patch to its edge, along x."""
    x, y = ground.starts[row, list(KINDS).index(kind)]
    reach = ground.reach
    first, at = round((x + reach[0]) / CELL), round((y + reach[1]) / CELL)
    return ground.heights[at, first : first + PATCH // 2 + 1]


def test_heights_are_where_rays_meet_the_compiled_model(ground: Ground) -> None:
    model = assemble(load_legged("go2").mechanism, Physics(), ground)
    data = mujoco.MjData(model)
    data.qpos[2] = 20.0  # the robot is out of the way
    mujoco.mj_forward(model, data)
    places = np.random.default_rng(0).uniform(-1, 1, (2000, 2)) * ground.reach
    found, hit = [], np.zeros(1, np.int32)
    for x, y in places:
        down = mujoco.mj_ray(model, data, np.array([x, y, 5.0]), np.array([0, 0, -1.0]), None, 1, -1, hit)
        found.append(5.0 - down)
    mine = ground.height(*torch.from_numpy(places).unbind(1))
    error = np.abs(mine.numpy() - found)
    assert np.mean(error < 1e-6) > 0.995
    assert error.max() < 6e-3  # where the crease between two slopes goes across a cell


def test_the_ground_is_level_beyond_its_grid(ground: Ground) -> None:
    far = torch.tensor([1000.0, -1000.0, math.inf])
    assert ground.height(far, far).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("row", [0, 4, 5])
def test_stairs_have_ten_risers_of_the_height_of_their_row(ground: Ground, row: int) -> None:
    for kind, sign in (("stairs up", 1.0), ("stairs down", -1.0)):
        rises = np.diff(middle_row(ground, kind, row))
        np.testing.assert_allclose(rises[rises != 0], [sign * RISER * (row + 1) / 6] * 10, rtol=1e-5)


def test_the_fifth_row_has_stairs_of_ten_centimetres_and_slopes_of_twenty_degrees(ground: Ground) -> None:
    assert np.diff(middle_row(ground, "stairs up", 4)).max() == pytest.approx(0.10, abs=1e-6)
    steepest = np.diff(middle_row(ground, "slope up", 4)).max() / CELL
    assert math.degrees(math.atan(steepest)) == pytest.approx(math.degrees(SLOPE) * 5 / 6, abs=0.1)


def test_patches_meet_at_height_zero(ground: Ground) -> None:
    first = round(ground.reach[0] / CELL) - len(KINDS) * PATCH // 2
    assert not ground.heights[:, first::PATCH].any()


def test_starts_are_on_the_platforms_of_the_drawn_patches(ground: Ground) -> None:
    stairs = (list(KINDS).index("stairs down") + 0.5) / len(KINDS)
    place = ground.start(torch.tensor([0.99, 1.0, 0.0]), torch.tensor([stairs, stairs, 0.0]))
    np.testing.assert_allclose(place[:2, 2], 10 * RISER, rtol=1e-5)
    np.testing.assert_allclose(place[0], place[1])
    first = RISER / ROWS  # of the easiest stairs up, from their edge down to their platform
    assert float(place[2, 2]) == pytest.approx(-10 * first)


def test_a_robot_stands_on_stairs_as_high_as_on_the_plane(ground: Ground) -> None:
    from robo_rl.sim.plants.mujoco_cpu import MujocoPlant

    card = load_legged("go2")
    rough, flat = MujocoPlant(card.mechanism, 1, 0.02, ground=ground), MujocoPlant(card.mechanism, 1, 0.02)
    start = ground.start(torch.tensor([1.0]), torch.tensor([(list(KINDS).index("stairs down") + 0.5) / len(KINDS)]))
    stand = torch.tensor([[joint.stand for joint in card.joints]])
    still = torch.zeros(1, 3)
    upright = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    for plant, at in ((rough, start), (flat, torch.zeros(1, 3))):
        up = at + torch.tensor([[0.0, 0.0, plant.height]])
        plant.place(torch.tensor([0]), up.float(), upright, still, still, stand, torch.zeros_like(stand))
        for _ in range(50):
            plant.step({"joint_position_target": stand})
    above = rough.truth()["position"][0, 2] - start[0, 2]
    assert float(above) == pytest.approx(
        float(flat.truth()["position"][0, 2]), abs=0.01
    )  # several soft contacts sag less than one
    assert float(rough.truth()["foot_force"].sum()) == pytest.approx(9.81 * float(flat.nominal.mass.sum()), rel=0.02)


def test_bullets_ground_is_as_high_as_ours(ground: Ground) -> None:
    pytest.importorskip("pybullet", reason="pybullet is missing: pip install 'robo-rl[dev]'")
    from robo_rl.sim.plants import bullet

    card = load_legged("go2")
    plant = bullet.BulletPlant(card.mechanism, 1, 0.02, processes=1, ground=ground)
    joints, still = plant.truth()["joint_position"].clone(), torch.zeros(1, 3)
    for kind in ("stairs up", "slope up", "slope down", "blocks"):
        place = ground.starts[4, list(KINDS).index(kind)]
        at = torch.tensor([[*place, 5.0]]).float()
        plant.place(torch.tensor([0]), at, torch.tensor([[0.0, 0.0, 0.0, 1.0]]), still, still, joints, 0 * joints)
        world = plant._hosts[0].worlds[0]
        places = place + np.random.default_rng(1).uniform(-3.9, 3.9, (200, 2))
        places = places[np.abs(places - place).max(1) > 0.5]  # not under the robot
        rays = world.bullet.rayTestBatch([[*p, 3.0] for p in places], [[*p, -3.0] for p in places])
        found = np.array([ray[3][2] for ray in rays])
        mine = ground.height(*torch.from_numpy(places).unbind(1)).numpy()
        error = np.abs(mine - found)
        assert np.mean(error < 2e-3) > 0.98, kind  # Bullet's wedges have a margin of a millimetre
        assert error.max() < 6e-3, kind
