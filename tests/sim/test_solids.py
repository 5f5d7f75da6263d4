"""Solids that ground is made of: they cover what they should, and nothing that presses into them is held."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.scenes.solids import Solids, mound, pit, rectangles, terraces
from robo_rl.sim.scenes.terrain import KINDS, Ground, rough_ground

CARD = load_legged("go2")


@pytest.fixture(scope="module")
def ground() -> Ground:
    return rough_ground()


@given(arrays(bool, st.tuples(st.integers(1, 9), st.integers(1, 9))))
@settings(max_examples=200, deadline=None)
def test_rectangles_cover_a_region_and_nothing_else(region: np.ndarray) -> None:
    covered = np.zeros_like(region)
    for top, left, bottom, right in rectangles(region):
        covered[top : bottom + 1, left : right + 1] = True
    np.testing.assert_array_equal(covered, region)


def test_a_frame_is_four_bars_that_overlap_in_the_corners() -> None:
    frame = np.ones((9, 9), bool)
    frame[3:6, 3:6] = False
    assert sorted(rectangles(frame)) == [(0, 0, 2, 8), (0, 0, 8, 2), (0, 6, 8, 8), (6, 0, 8, 8)]


@given(arrays(float, st.tuples(st.just(6), st.just(6)), elements=st.sampled_from([-0.1, 0.0, 0.2])))
@settings(max_examples=50, deadline=None)
def test_the_highest_terrace_at_a_node_is_as_high_as_the_node(heights: np.ndarray) -> None:
    solids = terraces(heights, 0.05, -1.0)
    for row, column in np.ndindex(heights.shape):
        place = 0.05 * (np.array([column, row]) - 2.5)
        over = [(box[:, :2][0] < place).all() and (box[:, :2][1] > place).all() for box in solids.boxes]
        assert max(solids.boxes[over][:, 1, 2]) == pytest.approx(heights[row, column])
    assert (solids.boxes[:, 0, 2] == -1.0).all()


@pytest.mark.parametrize("solids", [mound(0.5, 2.0, 0.6, -1.0), pit(0.5, 2.0, 0.6, -1.0)], ids=["mound", "pit"])
def test_slopes_are_convex_bodies_between_their_edges(solids: Solids) -> None:
    spec = mujoco.MjSpec()
    for number, wedge in enumerate(solids.wedges):
        spec.add_mesh(name=f"{number}", uservert=wedge.ravel())
    for number in range(len(solids.wedges)):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"{number}")
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    sign = 1.0 if len(solids.wedges) == 1 else -1.0
    for x, y in ((0.6, 0.0), (1.0, -0.9), (-1.5, 1.2), (0.1, 1.9), (-0.3, -1.7)):
        down = mujoco.mj_ray(model, data, np.array([x, y, 3.0]), np.array([0, 0, -1.0]), None, 1, -1, np.zeros(1, "i4"))
        assert 3.0 - down == pytest.approx(sign * 0.6 * (2.0 - max(abs(x), abs(y))) / 1.5, abs=1e-6)


def test_near_solids_are_those_that_reach_there(ground: Ground) -> None:
    place = ground.starts[4, list(KINDS).index("stairs up")]
    near = ground.solids.near(place, 1.0)
    assert 0 < len(near.boxes) < 0.2 * len(ground.solids.boxes)
    assert (near.boxes[:, 0, :2] < place + 1.0).all()
    assert (near.boxes[:, 1, :2] > place - 1.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_feet_pressed_into_the_ground_come_out_again(ground: Ground, kind: str) -> None:
    """A height field in place of the solids held 34 of the 48 robots on stairs, and 47 on slopes."""
    n, random = 48, torch.Generator().manual_seed(0)
    plant = MujocoPlant(CARD.mechanism, n, 0.02, ground=ground)
    plant.param("ground_friction")[:] = 1.2
    middle = torch.from_numpy(ground.starts[5, list(KINDS).index(kind)]).float()
    place = middle + 6.0 * (torch.rand(n, 2, generator=random) - 0.5)
    yaw = np.pi * (torch.rand(n, generator=random) - 0.5)
    turn = torch.stack([0 * yaw, 0 * yaw, torch.sin(yaw), torch.cos(yaw)], -1)
    stand = torch.tensor([[joint.stand for joint in CARD.joints]]).expand(n, -1)
    still = torch.zeros(n, 3)
    highest = ground.height(place[:, :1], place[:, 1:])
    plant.place(
        torch.arange(n), torch.cat([place, highest + plant.height - 0.02], -1), turn, still - torch.tensor([0, 0, 2.0]),
        still, stand, torch.zeros_like(stand),
    )  # fmt: skip
    lifted = stand + torch.tensor([0.0, 0.5, -1.0]).repeat(4)
    for k in range(60):
        plant.param("force")[:, 2] = 0.0 if k < 10 else 1.5 * 9.81 * float(plant.nominal.mass.sum())
        plant.step({"joint_position_target": stand if k < 10 else lifted})
    assert float(plant.truth()["foot_force"].max()) == 0.0
    feet = plant.truth()["foot_position"].reshape(n, -1, 3)
    assert bool((feet[:, :, 2] > ground.height(feet[:, :, 0], feet[:, :, 1])).all())


def test_all_of_the_ground_has_the_friction_that_is_set(ground: Ground) -> None:
    plant = MujocoPlant(CARD.mechanism, 3, 0.02, ground=ground)
    plant.param("ground_friction")[1] = 0.6
    plant.refresh(torch.tensor([1]))
    saved = {name: value.clone() for name, value in plant.save().items()}
    for i, expected in ((0, 1.0), (1, 0.6)):
        model = plant.batch.get_model(i)
        np.testing.assert_allclose(model.geom_friction[plant.indices.ground, 0], expected)
    plant.param("ground_friction")[1] = 0.9
    plant.refresh(torch.tensor([1]))
    plant.load(saved)
    np.testing.assert_allclose(plant.batch.get_model(1).geom_friction[plant.indices.ground, 0], 0.6)
