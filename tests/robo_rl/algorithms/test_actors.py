"""Actors: they collect what the learner itself would, what is old is dropped, and one that is lost is replaced."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
import torch

from robo_rl.learn.actors import CHUNK, Actor, Actors, Chunk, tensors, usable
from robo_rl.learn.collectors import Simulated
from robo_rl.learn.config import SacConfig
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.explorer import Explorer
from robo_rl.learn.runs.folder import Run
from robo_rl.learn.sac import Learner
from robo_rl.sim.env import VecEnv

BALANCE = Path(__file__).parents[3] / "examples" / "own_kind" / "balance.py"
SMALL = SacConfig(
    updates=6,
    steps=20,
    environments=4,
    gradient_steps=1,
    batch=8,
    first=80,
    hidden=(8,),
    critic_hidden=(8, 8),
    actors=2,
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path, f"{BALANCE}:Balance", None, "sac", 0, dataclasses.asdict(SMALL))


def learner(run: Run, **changes: int) -> Learner:
    torch.manual_seed(0)
    policy = run.new_policy()
    return Learner(policy.task, policy, dataclasses.replace(SMALL, **changes), 0, folder=run.folder)


def test_an_actor_collects_what_the_learner_would_with_the_same_weights_and_seed(run: Run) -> None:
    trained = learner(run, actors=0)
    for value in trained.act.parameters():
        torch.nn.init.normal_(value, std=0.3)
    chunk = Actor(str(run.folder), 3, seed=5).collect(7, trained.act.weights())
    explorer, env = Explorer(trained.policy, SMALL), LearningEnv(VecEnv(trained.policy.task, 3, 5))
    explorer.load_state_dict(trained.act.state_dict())
    torch.manual_seed(5)
    robots = Simulated(explorer, env)
    expected = [robots.collect(0).transitions[0] for _ in range(CHUNK)]
    assert chunk.version == 7
    assert len(chunk.transitions[2]) == CHUNK * 3
    for mine, theirs in zip(tensors(chunk), zip(*expected, strict=True), strict=True):
        assert torch.equal(mine, torch.cat(theirs))


@pytest.mark.parametrize(("now", "of", "most", "good"), [(5, 5, 0, True), (6, 5, 0, False), (55, 5, 50, True)])
def test_chunks_that_lag_more_than_they_may_are_not_usable(now: int, of: int, most: int, good: bool) -> None:
    assert usable(now, of, most) is good


def test_without_ray_actors_are_refused_in_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"^actors is 2, which needs the package 'ray': pip install 'robo-rl"):
        learner(run)


def test_actors_need_the_folder_of_a_run_and_equal_shares(run: Run) -> None:
    policy = run.new_policy()
    with pytest.raises(ValueError, match=r"without a run's folder; expected 'robo-rl train'"):
        Learner(policy.task, policy, SMALL, 0)
    with pytest.raises(ValueError, match=r"environments is 4; expected a multiple of the 3 actors"):
        dataclasses.replace(SMALL, actors=3)


@pytest.mark.release
def test_a_training_by_actors_learns_as_often_as_without_drops_what_is_old_and_replaces_the_lost(run: Run) -> None:
    ray = pytest.importorskip("ray", reason="ray is missing: pip install 'robo-rl[scale]'")
    trained = learner(run, lag=0)
    actors = trained.collector
    assert isinstance(actors, Actors)
    try:
        assert actors.next(0, trained.act.weights).version == 0
        ray.wait(list(actors._working))  # the other actor's chunk is there, of version 0 too
        assert actors.next(3, trained.act.weights).version == 3
        assert (actors.dropped, actors.lag) == (1, 0)
        ray.kill(next(iter(actors._working.values())))
        while actors.begun < 3:  # its last chunk may have been there already
            assert actors.next(3, trained.act.weights).version == 3

        got: list[tuple[int, Chunk]] = []
        take = actors.next

        def noted(*arguments: object) -> Chunk:
            got.append((trained.learnt, take(*arguments)))  # type: ignore[arg-type]
            return got[-1][1]

        actors.next = noted  # type: ignore[method-assign]
        for _ in range(5):
            metrics = trained.update()
    finally:
        actors.close()
    assert trained.environment_steps == 5 * 20 * 4
    assert trained.replay.written == sum(len(chunk.transitions[2]) for _, chunk in got)
    assert trained.learnt == 5 * 20 - (SMALL.first - 2 * CHUNK) // 4  # the last chunk before the first time came whole
    assert all(now == chunk.version for now, chunk in got)
    assert metrics["lag"] == 0
