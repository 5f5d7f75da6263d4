"""Cars in traffic: states that are gone back to, routes, and what is counted on them."""

from __future__ import annotations

import pytest
import torch

from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.car.lanes import LIMIT, CarLanes


@pytest.fixture(scope="module")
def task() -> CarLanes:
    return CarLanes()


def given(n: int) -> dict[str, torch.Tensor]:
    return {"steering_angle": torch.linspace(-0.02, 0.02, n)[:, None], "speed": torch.full((n, 1), 8.0)}


def test_episodes_are_repeated_bit_for_bit_from_a_state(task: CarLanes) -> None:
    env, ids = VecEnv(task, 6, seed=1), torch.arange(6)
    for _ in range(15):
        env.step(given(6))
    kept = env.state(ids)
    first = [env.step(given(6)).signals["neighbour_position"].clone() for _ in range(80)]
    env.set_state(ids, kept)
    again = [env.step(given(6)).signals["neighbour_position"].clone() for _ in range(80)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    other = VecEnv(task, 6, seed=2)
    other.set_state(ids, kept)
    assert torch.equal(other.step(given(6)).signals["neighbour_position"], first[0])


def test_a_plant_continues_bit_for_bit_from_what_it_saved(task: CarLanes) -> None:
    env = VecEnv(task, 4, seed=3)
    env.step(given(4))
    saved = {name: value.clone() for name, value in env.save().items()}
    first = env.step(given(4)).signals
    other = VecEnv(task, 4, seed=9)
    other.load(saved)
    again = other.step(given(4)).signals
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_idm_and_mobil_complete_routes_and_keep_to_lights_and_lanes(task: CarLanes) -> None:
    episodes = rollout(task, ControllerPolicy(task), Conditions(96, seed=4))
    assert float(episodes.success.mean()) > 0.9
    score = episodes.summary()["driving_score_mean_1"]
    completed = episodes.errors["driving_score"][episodes.success]
    assert float(completed.min()) > 0.98
    assert float(episodes.success.mean()) <= score + 0.02


def test_only_the_lane_of_the_route_leads_to_its_end(task: CarLanes) -> None:
    """Kept to its first lane on an empty road, a car fails where the lanes part, unless that is the route's."""
    fixed = {
        "traffic/density": 0.0,
        "road/crossings": 0.0,
        "road/bends": 0.0,
        "initial/speed": 8.0,
        "initial/turn": 0.0,
    }
    fixed |= {"steering_offset": 0.0}
    n = 64
    env = VecEnv(task, n, seed=5, fixed=fixed)
    same = env.signals()["lane_count"][:, 2] == 0
    won, lost, place = torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool), torch.zeros(n)
    for _ in range(500):
        before = env.plant.truth()["completion"][:, 0].clone()
        seen = env.signals()
        aim = seen["route"][:, 3, 1:] / 20.0**2 * 2 * task.base  # the lane's middle, 20 m ahead
        step = env.step({"steering_angle": aim, "speed": torch.full((n, 1), 10.0)})
        running = ~(won | lost)
        place[running & step.failed] = before[running & step.failed]
        won |= running & step.succeeded
        lost |= running & step.failed
        if bool((won | lost).all()):
            break
    assert torch.equal(won, same)
    assert 5 < int(won.sum()) < n - 5
    assert float((place[lost] - 0.8).abs().max()) < 0.01


def test_the_reward_of_a_route_is_what_is_completed_less_where_faults_are(task: CarLanes) -> None:
    n = 8
    truth = {name: value[:1].repeat(n, *[1] * (value.ndim - 1)) for name, value in task.make_plant(1).truth().items()}
    truth["gained"][:] = 0.01
    truth["velocity"] = torch.tensor([[8.0, 0.0]]).repeat(n, 1)
    for name in ("edge", "time_to_collision"):
        truth[name] = torch.full((n, 1), 5.0)
    truth["velocity"][1, 0] = LIMIT + 1.115  # half of the slack
    truth["edge"][2] = -0.1
    truth["time_to_collision"][3] = 0.5
    truth["astray"][4] = 3.5
    truth["jerk"][5] = 5.0
    truth["collision"][6] = 1.0
    truth["lane_offset"], truth["lane_count"] = torch.zeros(n, 1), torch.zeros(n, 3)
    truth["lane_count"][7, 2] = -1.0  # the route's lane is the next to the right
    terms = task.reward(truth, {}, {})
    expected = torch.tensor([1.0, 0.5, 0.0, 0.5, 0.5, 0.875, 1.0, 1.0 - task.elsewhere])
    torch.testing.assert_close(terms["route"], 0.01 * expected)
    assert terms["terminal"].tolist() == [0.0] * 6 + [1.0, 0.0]
