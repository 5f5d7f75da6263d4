"""Cars that practise: contacts, the rule that recovers them, way-points."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.car.practising import RECOVERY, STUCK
from robo_rl.sim.tasks.car.practice import PERIOD, CarPractice


@pytest.fixture(scope="module")
def task() -> CarPractice:
    return CarPractice()


def full_left(n: int, speed: float) -> dict[str, torch.Tensor]:
    return {"steering_angle": torch.full((n, 1), 0.4), "speed": torch.full((n, 1), speed)}


def until(env: VecEnv, name: str, commands: dict[str, torch.Tensor], most: int = 60) -> int:
    """Steps until the first car has met something."""
    for step in range(most):
        env.step(commands)
        if env.plant.truth()[name][0, 0] > 0:
            return step
    raise AssertionError(f"no {name} in {most} steps")


def test_a_car_that_hits_a_wall_is_brought_back_where_it_is(task: CarPractice) -> None:
    env = VecEnv(task, 1, seed=1)
    until(env, "contact", full_left(1, 3.0))
    truth = {name: value.clone() for name, value in env.plant.truth().items()}
    assert truth["recoveries"].item() == 1
    assert truth["clearance"].item() > 0
    assert env.episode.step.item() * PERIOD + RECOVERY == pytest.approx(truth["clock"].item(), abs=1e-4)
    assert abs(truth["progress"].item()) < 8.0
    free = truth["position"].clone()
    env.step(full_left(1, 0.0))
    assert torch.dist(env.plant.truth()["position"], free) < 0.3
    assert not bool(env.past.marks[0].any())


def test_a_car_with_its_back_at_a_wall_is_driven_forward(task: CarPractice) -> None:
    env = VecEnv(task, 1, seed=1)
    one, nothing = torch.arange(1), torch.zeros(1)
    env.plant.put(one, nothing, nothing, torch.full((1,), torch.pi / 2), nothing)
    start = env.plant.truth()["position"].clone()
    backwards = {"steering_angle": torch.zeros(1, 1), "speed": torch.full((1, 1), -1.0)}
    steps = until(env, "contact", backwards) + 1
    truth = env.plant.truth()
    assert truth["recoveries"].item() == 1
    assert truth["clock"].item() == pytest.approx(steps * PERIOD + 2 * RECOVERY, abs=1e-4)
    assert torch.dist(truth["position"], start) < steps * PERIOD - 0.3, "it has come back towards where it was"


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_car_across_the_track_is_turned_towards_its_way_point(task: CarPractice, side: float) -> None:
    """Whichever of the 32 steering angles of chance is next, and between any two walls of 8 tracks."""
    env = VecEnv(task, 8, seed=1, fixed={"track/number": torch.arange(8.0)})
    every = torch.arange(8)
    env.plant.put(every, torch.zeros(8), torch.zeros(8), torch.full((8,), side * 1.8), torch.zeros(8))
    for _ in range(60):  # it only knows full speed ahead
        env.step({"steering_angle": torch.zeros(8, 1), "speed": torch.full((8, 1), 2.0)})
    truth = env.plant.truth()
    assert bool((truth["recoveries"] >= 1).all())
    assert bool((truth["progress"] > 0.5).all()), "all drive the right way round"


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_car_that_lies_along_a_wall_can_steer_away_from_it(task: CarPractice, side: float) -> None:
    """Its rear swings out by half of its overhang's square over the radius, some mm: more than there is room."""
    env = VecEnv(task, 8, seed=1, fixed={"track/number": torch.arange(8.0), "recovery": 0.0})
    nothing = torch.zeros(8)
    beside = 0.5 * env.plant.param("track_width") - 0.5 * task.card.body[1]
    for _ in range(60):  # in a bend only its corners are near
        env.plant.put(torch.arange(8), nothing, side * beside, nothing, nothing)
        beside = torch.where(env.plant.truth()["clearance"][:, 0] > 0, beside, beside - 0.001)
    assert bool((env.plant.truth()["clearance"] < 0.002).all())
    for _ in range(15):
        env.step({"steering_angle": torch.full((8, 1), -side * 0.4), "speed": torch.ones(8, 1)})
    assert bool((env.plant.truth()["clearance"] > 0.05).all())
    assert env.plant.truth()["recoveries"].sum().item() == 0


def test_without_the_rule_a_car_stays_at_the_wall_and_can_drive_away_itself(task: CarPractice) -> None:
    env = VecEnv(task, 1, seed=1, fixed={"recovery": 0.0})
    until(env, "contact", full_left(1, 3.0))
    place = env.plant.truth()["position"].clone()
    for _ in range(round(STUCK[1] / PERIOD) + 2):
        env.step(full_left(1, 3.0))
    assert torch.dist(env.plant.truth()["position"], place) < 0.2
    assert env.plant.truth()["recoveries"].item() == 0
    for _ in range(10):
        env.step({"steering_angle": torch.full((1, 1), -0.4), "speed": torch.full((1, 1), -1.0)})
    assert torch.dist(env.plant.truth()["position"], place) > 0.3


def test_a_car_that_stands_is_found_to_be_stuck(task: CarPractice) -> None:
    env = VecEnv(task, 1, seed=2)
    assert until(env, "stuck", full_left(1, 0.0)) == round(STUCK[1] / PERIOD) - 1
    assert env.plant.truth()["recoveries"].item() == 1


def test_an_attended_car_fails_at_the_first_contact(task: CarPractice) -> None:
    env = VecEnv(task, 1, seed=1, evaluation=True)
    for _ in range(60):
        if env.step(full_left(1, 3.0)).failed.item():
            break
    else:
        raise AssertionError("no failure")
    assert env.plant.truth()["recoveries"].item() == 0


def test_a_recovery_does_not_touch_the_other_cars(task: CarPractice) -> None:
    """Each car's future is its own: the second one drives on as it would without the first."""
    pair = VecEnv(task, 2, seed=1)
    calm = {name: torch.cat([value[:1], 0.0 * value[:1] + rest]) for (name, value), rest in zip(
        full_left(2, 3.0).items(), (0.0, 0.5), strict=True)}  # fmt: skip
    alone = VecEnv(task, 1, seed=1, first=1)
    recovered = 0
    for _ in range(20):
        pair.step(calm)
        alone.step({name: value[1:] for name, value in calm.items()})
        recovered = pair.plant.truth()["recoveries"][0, 0].item()
        for name in ("position", "velocity", "scan", "waypoint_position", "clock"):
            assert torch.equal(pair.plant.truth()[name][1:], alone.plant.truth()[name]), name
    assert recovered >= 1


def test_a_practice_goes_on_bit_for_bit_from_a_state_and_from_what_was_saved(task: CarPractice) -> None:
    def play(env: VecEnv) -> list[torch.Tensor]:
        seen = []
        for k in range(25):
            step = env.step(full_left(env.n, 1.0 + 0.1 * k))
            seen.append(torch.cat([step.reward, step.signals["scan"].flatten()]))
        return seen

    env = VecEnv(task, 3, seed=5)
    play(env)
    saved = {name: value.clone() for name, value in env.save().items()}
    ids = torch.arange(3)
    state = env.state(ids)
    expected = play(env)
    other = VecEnv(task, 3, seed=9)
    other.load(saved)
    assert all(torch.equal(a, b) for a, b in zip(expected, play(other), strict=True))
    other = VecEnv(task, 3, seed=8)
    other.set_state(ids, state)
    other.plant.param("attended").copy_(env.plant.param("attended"))
    for name in ("track_shape", "track_size", "track_width", "track_direction"):
        assert torch.equal(other.plant.param(name), env.plant.param(name))
    assert all(torch.equal(a, b) for a, b in zip(expected, play(other), strict=True))


def test_way_points_lie_ahead_on_the_centre_line_and_a_lap_earns_its_length(task: CarPractice) -> None:
    env = VecEnv(task, 8, seed=3, evaluation=True)
    earned, running, lengths = torch.zeros(8), torch.ones(8, dtype=torch.bool), env.plant.tracks.length.clone()
    for _ in range(500):
        signals: Any = env.signals()
        step = env.step(task.command(task.script(signals, {}), {}))
        truth = env.plant.truth()
        running &= ~(step.failed | step.succeeded)
        earned += torch.where(running, truth["advance"][:, 0], 0.0)
        goal = env.plant.waypoints()
        nearest = (env.plant.tracks.centre[..., :2] - goal[:, None]).norm(dim=-1).amin(1)
        assert bool((nearest < 0.2).all())
        seen = truth["waypoint_position"].norm(dim=-1)
        assert torch.allclose(seen, (goal - truth["position"]).norm(dim=-1), atol=1e-3)
        if not running.any():
            break
    assert not running.any()
    assert bool((earned > 0.9 * lengths).all())
    assert bool((earned < 1.02 * lengths).all())


def test_the_same_number_is_the_same_track_and_another_number_another(task: CarPractice) -> None:
    lengths = [
        float(VecEnv(task, 1, seed, fixed={"track/number": number}).plant.tracks.length)
        for seed, number in ((0, 4.0), (7, 4.0), (0, 5.0))
    ]
    assert lengths[0] == lengths[1] != lengths[2]
