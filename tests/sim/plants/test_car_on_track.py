"""Cars on tracks: states that are gone back to, and laps."""

from __future__ import annotations

import pytest
import torch

from robo_rl.controllers.car import PurePursuit
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.car.on_track import CarOnTrack
from robo_rl.sim.tasks.car.race import AHEAD, PERIOD, CarRace


@pytest.fixture(scope="module")
def task() -> CarRace:
    return CarRace()


def test_episodes_are_repeated_bit_for_bit_from_a_state(task: CarRace) -> None:
    env, ids = VecEnv(task, 6, seed=1), torch.arange(6)
    given = {"steering_angle": torch.linspace(-0.2, 0.2, 6)[:, None], "speed": torch.full((6, 1), 2.0)}
    for _ in range(15):
        env.step(given)
    kept = env.state(ids)
    first = [env.step(given).signals["scan"].clone() for _ in range(80)]
    env.set_state(ids, kept)
    again = [env.step(given).signals["scan"].clone() for _ in range(80)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    other = VecEnv(task, 6, seed=2)
    other.set_state(ids, kept)
    assert torch.equal(other.step(given).signals["scan"], first[0])


def test_a_plant_continues_bit_for_bit_from_what_it_saved(task: CarRace) -> None:
    env, given = VecEnv(task, 4, seed=3), {"steering_angle": torch.zeros(4, 1), "speed": torch.ones(4, 1)}
    env.step(given)
    saved = {name: value.clone() for name, value in env.save().items()}
    first = env.step(given).signals["scan"].clone()
    other = VecEnv(task, 4, seed=9)
    other.load(saved)
    assert torch.equal(other.step(given).signals["scan"], first)


def test_every_episode_has_another_track(task: CarRace) -> None:
    env = VecEnv(task, 32, seed=0)
    lengths = [env.plant.tracks.length.clone()]
    env.reset()
    lengths.append(env.plant.tracks.length.clone())
    assert len(torch.cat(lengths).unique()) == 64


def test_pure_pursuit_of_the_centre_line_drives_laps_without_contact(task: CarRace) -> None:
    n = 24
    env = VecEnv(task, n, seed=5, fixed={"track/width": 2.2, "track/kind": 0.0}, evaluation=True)
    driver, state = PurePursuit(task.card.facts(), AHEAD, task.top, grip=0.2), torch.zeros(n, 0)
    finished, touched = torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool)
    for _ in range(round(30 / PERIOD)):
        truth = env.plant.truth()
        told = {"path": truth["ahead"].reshape(n, -1, 2), "wheel_speed": truth["wheel_speed"]}
        step = env.step(driver(told, state)[0])
        touched |= step.failed & ~finished
        finished |= step.succeeded
        if (finished | touched).all():
            break
    assert int(touched.sum()) <= 2
    assert int(finished.sum()) >= n - 2


def test_a_car_that_hits_a_wall_fails_and_one_that_stands_does_not(task: CarRace) -> None:
    env = VecEnv(task, 8, seed=6, evaluation=True)
    failed = torch.zeros(8, dtype=torch.bool)
    for _ in range(120):
        failed |= env.step({"steering_angle": torch.zeros(8, 1), "speed": torch.full((8, 1), 6.0)}).failed
    assert failed.all()
    env = VecEnv(task, 8, seed=6, evaluation=True, fixed={"initial/speed": 0.0})
    for _ in range(120):
        step = env.step({"steering_angle": torch.zeros(8, 1), "speed": torch.zeros(8, 1)})
        assert not step.failed.any()


def test_the_lidar_sees_the_walls_beside_a_car_in_the_middle(task: CarRace) -> None:
    plant = CarOnTrack(task.card, 3, PERIOD, task.scan, 64, AHEAD)
    plant.param("track_width")[:] = torch.tensor([1.6, 2.0, 2.4])
    plant.refresh(torch.arange(3))
    plant.put(torch.arange(3), torch.full((3,), 0.3), *torch.zeros(3, 3).unbind(0))
    angles = task.scan.angle_min + task.scan.angle_increment * torch.arange(64)
    for side in (-1, 1):
        beam = int((angles - side * torch.pi / 2).abs().argmin())
        torch.testing.assert_close(plant.truth()["scan"][:, beam], torch.tensor([0.8, 1.0, 1.2]), rtol=0.0, atol=0.06)
