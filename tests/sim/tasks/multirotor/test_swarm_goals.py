"""swarm-formation and swarm-goals: goals are where and when is said; what is not kept or reached counts to the end."""

from __future__ import annotations

import torch

from robo_rl.evaluate.evaluation import ControllerPolicy
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.multirotor.formation import CENTRE, LEFT, OFF, RADIUS, SPEED, SwarmFormation
from robo_rl.sim.tasks.multirotor.room import ARRIVED, CELL, COLUMN, COLUMNS, GRACE, MOST_COLUMNS, ROOM, TEAM
from robo_rl.sim.tasks.multirotor.successive import GOALS, LEG, SwarmGoals

EXACT = {"noise": 0.0, "delay": 0.0, "downwash": 0.0, "columns": 0.0}


def at(env: VecEnv, seconds: float) -> dict[str, torch.Tensor]:
    """The truth that many seconds into all episodes."""
    env.episode.step[:] = round(seconds / env.task.spec.control_period)
    return env.truth()


def put(env: VecEnv, place: torch.Tensor, seconds: float) -> None:
    """All robots where they are said to be, at rest, one step before so many seconds."""
    env.episode.step[:] = round(seconds / env.task.spec.control_period) - 1
    env.plant.current.position.copy_(place)
    env.plant.current.linear_velocity[:] = 0.0
    env.step({name: value.expand(env.n, -1) for name, value in env.task.command(torch.zeros(1, 3)).items()})


def test_a_ring_crosses_the_room_among_columns_from_all_four_sides() -> None:
    task = SwarmFormation()
    goal = VecEnv(task, 32, seed=1, fixed={"columns": 0.2}).draws.goal
    start, end, columns = goal[:, 3:6], goal[:, :3], goal[:, COLUMNS].unflatten(1, (MOST_COLUMNS, 2))
    middles = torch.stack([start, end]).unflatten(1, (-1, TEAM)).mean(2)
    torch.testing.assert_close(middles[..., :2].abs().amax(-1), torch.full((2, 32), CENTRE))
    assert len(torch.unique(middles[0].round(decimals=2), dim=0)) == 4
    ring = (start.unflatten(0, (-1, TEAM)) - middles[0][:, None])[..., :2]
    torch.testing.assert_close(ring.norm(dim=-1), torch.full((32, TEAM), RADIUS))
    assert float(torch.stack([start, end])[..., :2].abs().max()) < ROOM[0] / 2 - task.reach
    there = columns[:, :, 0].abs() < 10.0
    assert (there.sum(1) == round(0.2 * 24)).all()
    gap = (columns[:, :, None] - torch.stack([start, end], 1)[:, None, :, :2]).norm(dim=-1)[there] - COLUMN
    assert float(gap.min()) > task.reach + 0.08  # nobody begins or ends at a column
    truth = task.reference(torch.full((len(goal),), OFF + 1.0), goal)
    torch.testing.assert_close((truth["position_setpoint"] - start).norm(dim=-1), torch.full((len(goal),), SPEED))


def test_a_formation_that_is_late_as_a_whole_is_kept_and_one_that_strays_has_left_it_to_the_end() -> None:
    task = SwarmFormation()
    env = VecEnv(task, 2, seed=1, evaluation=True, fixed=EXACT)
    late = at(env, OFF + 2.0)["position_setpoint"] - 0.3
    put(env, late, OFF + 2.0)
    assert float(task.astray(env.truth()).max()) < 0.02
    late[0, 0] -= 1.2 * LEFT
    put(env, late, OFF + 2.0)
    assert env.truth()["left"][:, 0].tolist() == [1.0] + [0.0] * 15
    put(env, at(env, 8.0)["position_setpoint"], 8.0)
    assert env.truth()["left"][:2, 0].tolist() == [1.0, 0.0]
    over = at(env, task.seconds)
    assert task.failures(over)["left the formation"][:2].tolist() == [True, False]
    assert not task.succeeded(over)[0]
    assert task.errors(over)["lost"][0] == 1.0


def test_each_goal_has_its_time_and_a_cell_of_its_own_and_one_that_is_missed_counts_to_the_end() -> None:
    task = SwarmGoals()
    env = VecEnv(task, 2, seed=1, evaluation=True, fixed={**EXACT, "columns": 0.2})
    moments = [GRACE - 0.02, *(GRACE + LEG * k for k in range(GOALS))]
    places = torch.stack([at(env, moment)["position_setpoint"].clone() for moment in moments])
    columns = env.draws.goal[:: env.team, COLUMNS].unflatten(1, (MOST_COLUMNS, 2))
    taken = torch.cat([places[..., :2].unflatten(1, (-1, TEAM)).transpose(0, 1).flatten(1, 2), columns], 1)
    assert all(len(torch.unique(room, dim=0)) == (1 + GOALS) * TEAM + MOST_COLUMNS for room in taken)
    torch.testing.assert_close((taken / CELL - 0.5) % 1.0, torch.zeros_like(taken))
    first = places[1].clone()
    first[3, 2] += 1.1 * ARRIVED if float(first[3, 2]) < 1.0 else -1.1 * ARRIVED
    put(env, first, GRACE + LEG / 2)
    assert not env.truth()["missed"].any()  # there is time
    put(env, first, GRACE + LEG - task.period)
    env.step({name: value.expand(env.n, -1) for name, value in task.command(torch.zeros(1, 3)).items()})
    put(env, places[2], GRACE + 2 * LEG)
    assert env.truth()["missed"][:, 0].nonzero()[:, 0].tolist() == [3]
    over = at(env, task.seconds)
    assert task.failures(over)["missed a goal"].nonzero()[:, 0].tolist() == [3]


def test_the_baseline_keeps_its_formation_where_nothing_stands() -> None:
    task = SwarmFormation()
    env = VecEnv(task, 1, seed=1, evaluation=True, fixed=EXACT)
    policy = ControllerPolicy(task)
    state, signals = policy.initial_state(env.n), env.signals()
    for _ in range(task.spec.episode_steps - 1):
        commands, state = policy(signals, state)
        signals = env.step(commands).signals
    assert float(task.astray(env.truth()).max()) < 0.1
    assert not task.errors(env.truth())["lost"].any()
