"""swarm-swap: rooms are drawn as is said, messages are late and told how late, hits count, baselines avoid."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from array_api_compat import array_namespace

sys.path.append(str(Path(__file__).parents[3] / "deploy"))
from seeing import PROVENANCE, drawn_signals

from robo_rl.controllers.multirotor.avoidance import _length, _way_out, nearest_within
from robo_rl.controllers.rotation import heading
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.export import write_bundle
from robo_rl.deploy.robot.bundle import command_differences, greatest
from robo_rl.evaluate.evaluation import ControllerPolicy, GraphPolicy
from robo_rl.policy import PolicyGraph
from robo_rl.sim.accelerate.fuse.program import Program
from robo_rl.sim.accelerate.fuse.structure import flatten
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.multirotor import load_multirotor
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.multirotor.avoiding import avoiding
from robo_rl.sim.tasks.multirotor.room import ARRIVED, CELL, COLUMN, GRACE, MOST_COLUMNS, SECONDS, TEAM
from robo_rl.sim.tasks.multirotor.swarm import SwarmSwap

TASK = SwarmSwap()
EXACT = {"noise": 0.0, "delay": 0.0, "downwash": 0.0}


def stay(env: VecEnv) -> dict[str, torch.Tensor]:
    return {name: value.expand(env.n, -1) for name, value in TASK.command(torch.zeros(1, 3)).items()}


@pytest.fixture(scope="module")
def env() -> VecEnv:
    return VecEnv(TASK, 6, seed=1, evaluation=True, fixed=EXACT)


def test_columns_starts_and_goals_are_in_cells_of_their_own_and_half_of_the_teams_swap() -> None:
    rooms = VecEnv(TASK, 64, seed=2, fixed={"columns": 0.2})
    goal = rooms.draws.goal.unflatten(0, (-1, TEAM))
    ends, starts, columns = goal[:, :, :3], goal[:, :, 3:6], goal[:, 0, 7:].unflatten(1, (MOST_COLUMNS, 2))
    taken = torch.cat([columns, starts[:, :, :2]], 1)
    assert all(len(torch.unique(room, dim=0)) == MOST_COLUMNS + TEAM for room in taken)
    torch.testing.assert_close((taken / CELL - 0.5) % 1.0, torch.zeros_like(taken))
    assert float(taken.abs().max()) == 1.75
    swaps = (ends[:, :, None] == starts[:, None]).all(-1)  # (teams, goals, starts)
    swap = swaps.any(2).all(1)
    assert 0.3 < float(swap.float().mean()) < 0.7
    assert not swaps.diagonal(dim1=1, dim2=2).any()  # nobody is at its goal already
    few = VecEnv(TASK, 2, seed=2).draws.goal[0, 7:].unflatten(0, (MOST_COLUMNS, 2))
    assert int((few[:, 0] < 10.0).sum()) == round(0.1 * 64)


def test_columns_are_shown_once_for_a_team_where_they_stand(env: VecEnv) -> None:
    truth = env.truth()
    (lines,) = (marker.points for marker in TASK.markers(truth) if marker.name == "columns")
    shown = torch.isfinite(lines).all(-1)
    assert (shown.any(1) == (torch.arange(env.n) % TEAM == 0)).all()
    there = truth["columns"][0][truth["columns"][0, :, 0] < 10.0]
    away = torch.cdist(lines[0][shown[0]][:, :2], there)
    torch.testing.assert_close(away.amin(1), torch.full((len(away),), COLUMN))
    assert (away.amin(0) <= COLUMN + 1e-5).all()


def test_a_message_says_where_the_other_was_as_long_ago_as_is_told(env: VecEnv) -> None:
    env.reset()
    places, ages = [], []
    policy = ControllerPolicy(TASK)
    state, signals = policy.initial_state(env.n), env.signals()
    for _ in range(100):
        commands, state = policy(signals, state)
        signals = env.step(commands).signals
        places.append(env.plant.current.position.clone())
        ages.append(signals["peer3_age"][:, 0].numpy().copy())
    track, step = torch.stack(places).numpy(), np.arange(len(places))
    other = (np.arange(env.n) + 3) % TEAM + np.arange(env.n) // TEAM * TEAM
    error = [
        np.interp(99 - ages[-1][row] / 0.02, step, track[:, other[row], axis]) - float(signals["peer3"][row, 0, axis])
        for row in range(env.n)
        for axis in range(3)
    ]
    assert np.abs(error).max() < 0.003  # of a line between control steps
    every = np.concatenate(ages[30:])
    assert every.min() >= 0.05
    assert every.max() > 0.25  # a lost one, at times
    assert len(np.unique(ages[-1].round(4))) > env.n // 2  # each link is late in its own way


def test_the_goal_is_where_a_robot_starts_until_hits_count(env: VecEnv) -> None:
    env.reset()
    for step, goal in ((round(GRACE / 0.02) - 1, slice(3, 6)), (round(GRACE / 0.02), slice(0, 3))):
        env.episode.step[:] = step
        torch.testing.assert_close(env.truth()["position_setpoint"], env.draws.goal[:, goal])


def test_a_policy_that_has_learnt_nothing_asks_for_orca_s_velocity(env: VecEnv) -> None:
    env.reset()
    env.plant.current.linear_velocity.uniform_(-1.0, 1.0)
    env.episode.step[:] = 2 * round(GRACE / 0.02)
    signals = env.step(stay(env)).signals
    expected = TASK.controller().velocity(signals, array_namespace(signals["position"]))
    x, y, z, w = signals["orientation"].split(1, -1)
    found = avoiding(torch.zeros(env.n, 4), signals, heading((x, y, z, w)), TASK.reach)
    assert float(expected.norm(dim=-1).median()) > 0.1
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("name", ["swarm-swap", "swarm-formation", "swarm-goals"])
def test_what_a_learner_asks_of_a_task_can_be_native_code(name: str) -> None:
    """ORCA in the policy's graph is numpy's and torch's code alike, and that of a graph of numbers."""
    task, tensors = load_task(name), []
    env = VecEnv(task, 1, compiled=False)
    asked = torch.zeros(TEAM, task.action_size), env.signals(), task.first_memory(TEAM)
    program = Program.trace(task.act, flatten(asked, tensors), tensors, TEAM)
    assert program.results.shapes


def test_a_hit_counts_after_the_grace_and_for_the_whole_team(env: VecEnv) -> None:
    env.reset()
    place = env.plant.current.position
    place[1] = place[0] + torch.tensor([0.05, 0.0, 0.0])
    env.step(stay(env))
    assert env.task.touching(env.truth())[:2].all()
    assert not env.truth()["hits"].any()  # too early to count
    env.episode.step[:] = round(GRACE / 0.02)
    place[1] = place[0] + torch.tensor([0.05, 0.0, 0.0])
    env.step(stay(env))
    assert env.truth()["hits"][:3, 0].tolist() == [1.0, 1.0, 0.0]
    goal = env.truth()["position_setpoint"]
    place.copy_(goal)
    place[-1, 2] += 1.1 * ARRIVED if float(goal[-1, 2]) < 1.0 else -1.1 * ARRIVED
    env.plant.param("columns")[:] = 50.0
    env.plant.current.linear_velocity[:] = 0.0
    env.episode.step[:] = round(SECONDS / 0.02) - 1.0
    step = env.step(stay(env))
    assert step.failed.unflatten(0, (-1, TEAM))[:, 0].tolist() == [True, False, False, False, False, True]
    assert step.succeeded.unflatten(0, (-1, TEAM))[:, 0].tolist() == [False, True, True, True, True, False]


def test_a_robot_that_is_too_large_for_the_cells_is_refused() -> None:
    with pytest.raises(CardError, match=r"robot 'x500' reaches 0\.\d+ m from its middle; expected at most 0\.1 m"):
        SwarmSwap(load_multirotor("x500"))


def test_the_nearest_point_within_half_spaces_is_that_of_a_quadratic_program() -> None:
    from scipy.optimize import minimize

    random = np.random.default_rng(0)
    for _ in range(10):
        normal = random.normal(size=(4, 3))
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        least, point = -random.uniform(0.0, 0.5, 4), random.normal(size=3)
        lower, upper = -random.uniform(0.2, 2.0, 3), random.uniform(0.2, 2.0, 3)
        found = nearest_within(point[None], normal[None], least[None, :, None], lower[None], upper[None], np, 300)[0]
        kept = [{"type": "ineq", "fun": lambda x, n=n, b=b: n @ x - b} for n, b in zip(normal, least, strict=True)]
        box = list(zip(lower, upper, strict=True))
        best = minimize(lambda x, p=point: ((x - p) ** 2).sum(), np.zeros(3), bounds=box, constraints=kept).x
        assert np.linalg.norm(found - best) < 0.003


def test_the_way_out_of_a_collision_almost_head_on_has_the_digits_of_float32() -> None:
    """So that torch, onnxruntime and C go to the same side."""
    random = np.random.default_rng(0)
    apart = random.normal(size=(1000, 1, 3))
    velocity = 0.7 * apart + 1e-3 * random.normal(size=apart.shape)
    given = (apart, velocity, np.full((1000, 1, 1), 0.2))
    exact, found = (_way_out(*(x.astype(kind) for x in given), 1.5, np)[0] for kind in (np.float64, np.float32))
    off = np.abs(found - exact).max((1, 2))
    assert np.quantile(off, 0.99) < 0.001  # 0.2 by the squared lengths' difference
    assert off.max() < 0.01


def test_what_is_not_apart_and_does_not_move_has_a_finite_way_out() -> None:
    """By more than onnxscript takes for 0: numpy.isclose(x, 0)."""
    assert not np.isclose(_length(np.zeros((1, 3), np.float32), np) ** 2, 0.0)


@pytest.mark.parametrize("controller", [TASK.controller(), *TASK.controllers()], ids=lambda c: c.name)
def test_two_on_one_line_pass_each_other_without_contact_where_the_law_below_alone_hits(controller: object) -> None:
    team = VecEnv(TASK, 1, seed=1, evaluation=True, fixed={**EXACT, "columns": 0.0, "force": 0.0, "wind": 0.0})
    place, goal = team.plant.current.position, team.draws.goal
    far = torch.tensor([[-1.7, 1.7, 0.3], [1.7, 1.7, 0.3], [-1.7, -1.7, 0.3], [1.7, -1.7, 0.3]])
    place[:] = torch.cat([torch.tensor([[-1.2, 0.0, 1.0], [1.2, 0.05, 1.0]]), far, far[:2] + torch.tensor([0, 0, 1.4])])
    goal[:, :3] = place
    goal[:2, :3] = place[[1, 0]]
    goal[:, 7:] = 50.0
    policy = ControllerPolicy(TASK, controller)
    state, signals, nearest = policy.initial_state(team.n), team.signals(), 9.0
    for _ in range(350):
        commands, state = policy(signals, state)
        signals = team.step(commands).signals
        nearest = min(nearest, float(team.truth()["clearance"][:2, 0].min()))
    assert nearest > 0.0
    assert float(TASK.distance(team.truth())[:2].max()) < ARRIVED


@pytest.mark.parametrize("flown", ["controller", "graph"])
def test_robots_whose_rotors_differ_hover_at_their_places(flown: str) -> None:
    alone = VecEnv(TASK, 3, seed=3, evaluation=True, fixed={**EXACT, "columns": 0.0, "torque": 2e-5, "delay": 0.02})
    graph = PolicyGraph(TASK, (8,))
    graph.network[-1].weight.data.zero_()
    policy = ControllerPolicy(TASK) if flown == "controller" else GraphPolicy(graph)
    alone.draws.goal[:, :3] = alone.draws.goal[:, 3:6]
    state, signals = policy.initial_state(alone.n), alone.signals()
    with torch.no_grad():
        for _ in range(350):
            commands, state = policy(signals, state)
            signals = alone.step(commands).signals
    assert float(TASK.distance(alone.truth()).max()) < 0.1  # 0.2 where rates that turn nothing are not found


def test_c_gives_what_torch_gives_of_attention_to_messages_and_columns(tmp_path: Path) -> None:
    torch.manual_seed(0)
    policy = PolicyGraph(TASK, (32, 32)).requires_grad_(False).eval()
    policy.network[-1].weight.mul_(60.0)
    policy.network[-1].bias.uniform_()
    signals = drawn_signals(policy, 200, 4, seed=1)
    bundle = write_bundle(policy, PROVENANCE, signals, tmp_path / "policy.onnx")
    compiled = compile_host(generate(bundle, tmp_path))
    given = {name: value[:, 0] for name, value in signals.items()}
    state = np.tile(bundle.contract.initial_state, (200, 1))
    found, after = compiled.run(given, state)
    with torch.no_grad():
        expected, then = policy({name: torch.from_numpy(v) for name, v in given.items()}, torch.from_numpy(state))
    assert greatest([*command_differences(bundle.contract, found, expected), after - then.numpy()]) <= 1e-5
    old = {**given, **{f"peer{k}_age": np.full_like(given["peer1_age"], 5.0) for k in range(1, TEAM)}}
    unlike = {**old, "peer2": given["peer5"]}
    assert np.array_equal(compiled.run(old, state)[0]["body_rate"], compiled.run(unlike, state)[0]["body_rate"])
    assert np.ptp(found["body_rate"], axis=0).min() > 0.1
