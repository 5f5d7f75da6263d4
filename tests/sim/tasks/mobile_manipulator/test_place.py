"""Fetching and placing with an arm on a mobile base: how the base moves and carries, and what counts as placed."""

from __future__ import annotations

import math

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.mobile_manipulator.place import MobilePlace
from tests.sim.tasks.mobile_manipulator.scripted import share_placed

N = 12


@pytest.fixture(scope="module")
def task() -> MobilePlace:
    return MobilePlace()


def test_the_base_drives_an_arc_whose_radius_is_speed_over_turn_rate_and_its_odometry_agrees(task: MobilePlace) -> None:
    plant = task.make_plant(1)
    truth, home = plant.truth(), torch.tensor([task.card.home])
    speed, turn = 0.15, 0.6
    commands = {"forward_speed": torch.tensor([[speed]]), "turn_rate": torch.tensor([[turn]])}
    plant.step(commands | {"joint_position_target": home})
    for _ in range(24):  # until its wheels are as fast as they are told
        plant.step(commands)
    begun, heading = truth["base_position"].clone(), float(truth["heading_position"])
    for _ in range(75):
        plant.step(commands)
    turned = float(truth["heading_position"]) - heading
    assert turned == pytest.approx(turn * 3.0, abs=1e-3)
    chord = float((truth["base_position"] - begun).norm())
    assert chord == pytest.approx(2 * speed / turn * math.sin(0.5 * turned), abs=1e-3)
    torch.testing.assert_close(truth["position"], truth["base_position"], atol=2e-3, rtol=0.0)
    z, w = truth["orientation"][0, 2:]
    assert 2 * math.atan2(float(z), float(w)) == pytest.approx(float(truth["heading_position"]), abs=2e-3)


def test_wheels_that_slip_make_the_odometry_wrong_by_as_much(task: MobilePlace) -> None:
    plant = task.make_plant(1)
    plant.param("speed_scale")[:] = 0.9
    commands = {"forward_speed": torch.tensor([[0.2]]), "turn_rate": torch.zeros(1, 1)}
    for _ in range(50):
        plant.step(commands)
    truth = plant.truth()
    assert float(truth["base_position"][0, 0]) == pytest.approx(0.9 * float(truth["position"][0, 0]), abs=1e-4)


def test_what_is_held_comes_along_when_the_base_starts_turns_and_stops(task: MobilePlace) -> None:
    env = VecEnv(task, N, seed=3, evaluation=True)
    plant, every = env.plant, torch.arange(N)
    half = task.half * env.drawn["cube_size"]
    pose = int((task.space.places[:, 2] - 0.06).abs().argmin())
    tool = task.space.places[pose].expand(N, 3)
    upright = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(N, 4)
    angles = task.space.angles[pose].expand(N, -1)
    plant.place(
        every, joint_position=angles, gripper_position=task.space.closed_on(half)[:, None], cube_position=tool,
        cube_orientation=upright,
    )  # fmt: skip
    closed = torch.full((N, 1), task.card.gripper.joint.lower)
    grip = {"joint_position_target": angles, "gripper_position_target": closed}
    for speed, turn in ((0.0, 0.0), (0.26, 0.0), (0.0, 1.8), (0.0, -1.8), (0.0, 0.0)):
        drive = {"forward_speed": torch.full((N, 1), speed), "turn_rate": torch.full((N, 1), turn)}
        for _ in range(15):
            plant.step(grip | drive)
    truth = plant.truth()
    assert float((truth["cube_position"] - truth["tool_position"]).norm(dim=1).max()) < 0.02
    assert float(truth["cube_place"][:, 0].min()) > 0.2  # it has been driven


def test_states_are_gone_back_to_exactly_odometry_included(task: MobilePlace) -> None:
    env, ids = VecEnv(task, 4, seed=1), torch.arange(4)
    commands = task.command(torch.full((4, 6), 0.4), task.first_memory(4))
    for _ in range(5):
        env.step(commands)
    kept = env.state(ids)
    first = [env.step(commands).signals for _ in range(5)]
    env.set_state(ids, kept)
    again = [env.step(commands).signals for _ in range(5)]
    for a, b in zip(first, again, strict=True):
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_cube_counts_as_placed_where_it_truly_is_not_where_odometry_has_it(task: MobilePlace) -> None:
    env = VecEnv(task, 4, seed=1, evaluation=True)
    truth = env.truth(torch.arange(4))
    goal = truth["cube_position_setpoint"]
    turn = torch.tensor([0.3, -2.0, 1.0, 3.0])
    base = torch.tensor([[0.5, 0.2]]).expand(4, 2)
    way = goal - torch.cat([base, torch.zeros(4, 1)], -1)
    x = torch.cos(turn) * way[:, 0] + torch.sin(turn) * way[:, 1]
    y = torch.cos(turn) * way[:, 1] - torch.sin(turn) * way[:, 0]
    half = 0.5 * turn
    elsewhere = {
        **truth, "base_position": base, "heading_position": turn[:, None], "position": base + 0.2,
        "orientation": torch.stack([0 * half, 0 * half, torch.sin(half), torch.cos(half)], -1),
        "cube_position": torch.stack([x, y, goal[:, 2]], -1), "cube_linear_velocity": torch.zeros(4, 3),
        "pad_force": torch.zeros(4, 2), "lifted": torch.ones(4, 1), "lain": torch.full((4, 1), 9.0),
    }  # fmt: skip
    assert bool(task.succeeded(elsewhere).all())
    assert float((task.wanted(elsewhere) - task.destination(elsewhere)).norm(dim=1).min()) > 0.2
    beside = elsewhere["cube_position"] + torch.tensor([0.06, 0.0, 0.0])
    assert not bool(task.succeeded(elsewhere | {"cube_position": beside}).any())


def test_the_script_alone_fetches_and_places(task: MobilePlace) -> None:
    assert share_placed(task) > 0.8


def test_the_last_bits_of_what_is_measured_are_not_magnified_wherever_base_cube_and_place_are(
    task: MobilePlace,
) -> None:
    """In float32 the script does what it does in float64, far within what verify allows between two runtimes."""
    n = 20_000
    torch.manual_seed(0)
    pose = torch.randint(len(task.space.places), (n,))
    in_hand = torch.arange(n) % 2 == 0
    around = torch.rand(n, 3) * torch.tensor([2.4, 2.4, 0.08]) - torch.tensor([1.2, 1.2, 0.0])
    cube = torch.where(in_hand[:, None], task.space.places[pose] + 0.01 * torch.randn(n, 3), around)
    level = 2.0 * torch.rand(n, 2) - 1.0
    # as many places near the cube as far away
    place = torch.where((torch.arange(n) % 4 < 2)[:, None], level, cube[:, :2] + 0.05 * level)
    turn = 3.0 * torch.rand(n)
    zero = torch.zeros(n)
    signals = {
        "position": torch.zeros(n, 2), "orientation": torch.stack([zero, zero, torch.sin(turn), torch.cos(turn)], -1),
        "joint_position": task.space.angles[pose] + 0.02 * torch.randn(n, 4),
        "gripper_position": 0.019 * torch.rand(n, 1), "cube_position": cube, "cube_age": 0.3 * torch.rand(n, 1),
        "cube_position_setpoint": torch.cat([place, torch.full((n, 1), task.half)], -1),
    }  # fmt: skip
    memory = {"script": torch.rand(n, 7)}
    exact = task._script(*({k: v.double() for k, v in part.items()} for part in (memory, signals)))
    assert float((task._script(memory, signals) - exact).abs().max()) < 1e-5
