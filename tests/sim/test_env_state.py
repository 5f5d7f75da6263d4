"""States of environments: going back to them, elsewhere, again and again; joined and in files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import load_task

TASKS = ("quadrotor-hover", "quadrotor-track")


def later(env: VecEnv, steps: int, seed: int, rows: torch.Tensor, n: int) -> list[torch.Tensor]:
    """All that ``rows`` give in some steps, under commands that are theirs and the same every time."""
    own = 2000 * torch.rand(steps, len(rows), 4, generator=torch.Generator().manual_seed(seed))
    commands = 1000 * torch.rand(steps, n, 4)
    commands[:, rows] = own
    found = []
    for command in commands:
        step = env.step({"rotor_speed": command})
        found += [value[rows] for value in (*step.signals.values(), step.reward, step.failed, step.timeout)]
        found.append(env.privileged()[rows])
    return [*found, *(value[rows] for value in env.drawn.values()), env.levels.level[rows]]


def used(task: Task, n: int, seed: int, steps: int = 60) -> VecEnv:
    """Environments some episodes on."""
    env = VecEnv(task, n, seed=seed, episode_length=1.0)
    later(env, steps, 1, torch.arange(n), n)
    return env


@pytest.mark.parametrize("name", TASKS)
def test_a_state_repeats_its_future_bit_by_bit_in_another_slot_of_another_environment(name: str) -> None:
    task = load_task(name)
    first, ids = used(task, 12, seed=1), torch.tensor([2, 9, 5])
    state = first.state(ids)
    expected = later(first, 150, 7, ids, 12)  # episodes end and begin on the way
    for n, slots in ((3, [0, 1, 2]), (40, [39, 0, 17])):
        other, there = used(task, n, seed=99), torch.tensor(slots)
        other.set_state(there, state)
        found = later(other, 150, 7, there, n)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    first.set_state(ids, state)
    assert all(torch.equal(a, b) for a, b in zip(later(first, 150, 7, ids, 12), expected, strict=True))


def test_setting_some_environments_leaves_the_others_as_they_are() -> None:
    task = load_task("quadrotor-hover")
    env, same = used(task, 6, seed=1), used(task, 6, seed=1)
    env.set_state(torch.tensor([4]), used(task, 3, seed=8).state(torch.tensor([1])))
    others = torch.tensor([0, 1, 2, 3, 5])
    ours, theirs = (later(each, 80, 3, others, 6) for each in (env, same))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_a_state_with_the_stream_of_another_place_goes_on_there_with_other_draws() -> None:
    task = load_task("quadrotor-hover")
    env = used(task, 8, seed=1)
    ids = torch.arange(8)
    own, state = env.state(ids), env.state(torch.zeros(8, dtype=torch.long))
    env.set_state(ids, EnvState({**state.tensors, "stream": own["stream"]}))
    step = env.step({"rotor_speed": torch.full((8, 4), 1500.0)})
    assert len(torch.unique(env.plant.current.position, dim=0)) == 1
    assert len(torch.unique(step.signals["position"], dim=0)) == 8  # noise of their own


def test_states_are_indexed_joined_and_kept_in_files(tmp_path: Path) -> None:
    env = used(load_task("quadrotor-track"), 10, seed=1)
    every = env.state(torch.arange(10))
    parts = EnvState.concatenated(
        [every.at(slice(0, 4)), every.at(torch.tensor([4, 5])), env.state(torch.arange(6, 10))]
    )
    assert len(parts) == len(every) == 10
    parts.save(tmp_path / "states.safetensors")
    read = EnvState.load(tmp_path / "states.safetensors")
    assert set(read) == set(every)
    assert all(torch.equal(read[name], every[name]) for name in every)
    assert torch.equal(
        every.at(every["plant/position"][:, 0] > 0)["stream"], env.stream[env.plant.current.position[:, 0] > 0]
    )


def test_states_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    hover, track = (used(load_task(name), 3, seed=1) for name in TASKS)
    ids = torch.arange(3)
    with pytest.raises(ValueError, match=r"'levels' is .*; expected"):
        hover.set_state(ids, track.state(ids))
    with pytest.raises(ValueError, match="a state of another task"):
        EnvState.concatenated([hover.state(ids), track.state(ids)])
    (tmp_path / "no").write_text("nothing")
    with pytest.raises(ValueError, match="states of environments can't be read"):
        EnvState.load(tmp_path / "no")


def test_a_state_of_a_learning_environment_holds_what_its_policy_remembers() -> None:
    task = load_task("quadrotor-track")
    first, second = (LearningEnv(VecEnv(task, n, seed=n)) for n in (6, 9))
    generator = torch.Generator().manual_seed(0)
    actions = 0.4 * torch.randn(200, 2, 4, generator=generator)
    for action in actions[:40]:
        first.step(torch.cat([action, action, action]))
    ids, there = torch.tensor([1, 4]), torch.tensor([8, 0])
    second.set_state(there, first.state(ids))
    assert torch.equal(first.observation()[ids], second.observation()[there])
    for action in actions[40:]:
        given = [torch.zeros(env.n, 4) for env in (first, second)]
        given[0][ids] = given[1][there] = action
        ours, theirs = first.step(given[0]), second.step(given[1])
        for a, b in (
            (ours.observation, theirs.observation),
            (ours.reward, theirs.reward),
            (ours.failed, theirs.failed),
        ):
            assert torch.equal(a[ids], b[there])
