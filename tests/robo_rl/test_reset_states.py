"""Reset states: what the families are, what a file holds, what is refused, and how episodes begin with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strange import attempt, changed
from torch import Tensor

from robo_rl.cli import main
from robo_rl.learn import ppo
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.experience.demonstrations import contract_of, digest
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.learn.experience.reset_states import (
    FILE_NAME,
    OWN,
    ResetStateError,
    ResetStates,
    Starts,
    begin_with,
    collect,
    read,
    weights_of,
    write,
)
from robo_rl.learn.runs import checkpoint
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.env_state import EnvState
from robo_rl.sim.tasks.arm.place import Place
from robo_rl.sim.tasks.arm.place_direct import CLOSE, PlaceDirect
from tests.suite import examples

COUNT = 16
FAMILIES = PlaceDirect.families


@pytest.fixture(scope="module")
def task() -> PlaceDirect:
    return PlaceDirect()


@pytest.fixture(scope="module")
def states(task: PlaceDirect) -> ResetStates:
    return collect(task, COUNT, seed=1)[0]


@pytest.fixture(scope="module")
def file(task: PlaceDirect, states: ResetStates, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("states") / FILE_NAME
    write(path, task, states)
    return path


@pytest.fixture(scope="module")
def env(task: PlaceDirect) -> LearningEnv:
    return LearningEnv(VecEnv(task, len(FAMILIES) * COUNT, seed=7))


def begun(env: LearningEnv, states: ResetStates) -> dict[str, Tensor]:
    begin_with(env, torch.arange(env.n), states.states)
    return {name: value.clone() for name, value in env.env.truth().items()}


def test_families_are_what_they_are_called(env: LearningEnv, task: PlaceDirect, states: ResetStates) -> None:
    truth = begun(env, states)
    assert states.family.bincount().tolist() == [COUNT] * len(FAMILIES)
    near, grasped, placed = (states.family == k for k in range(3))
    cube, place, tool = (truth[name] for name in ("cube_position", "cube_position_setpoint", "tool_position"))
    half = env.env.plant.param("object_size")[:, 0, 2]
    assert float((cube - tool)[near].norm(dim=1).max()) < CLOSE
    torch.testing.assert_close(cube[near, 2], half[near].float(), atol=2e-3, rtol=0.0)  # it lies on the ground
    assert float(truth["pad_force"][grasped].min()) > 0.0
    assert float((cube - tool)[grasped].norm(dim=1).max()) < CLOSE
    assert float((cube - place)[grasped][:, :2].norm(dim=1).min()) >= CLOSE
    assert float((cube - place)[placed][:, :2].norm(dim=1).max()) < CLOSE
    lifted = truth["lifted"][:, 0]
    assert lifted[near].max() == 0.0
    assert lifted[grasped | placed].min() == 1.0


def test_what_is_in_the_hand_stays_there(env: LearningEnv, task: PlaceDirect, states: ResetStates) -> None:
    before = begun(env, states)
    for _ in range(25):
        env.step(task.hold(env.signals, env.memory))
    after = env.env.truth()
    moved = [(t["cube_position"] - t["tool_position"])[states.family == 1] for t in (before, after)]
    assert float((moved[1] - moved[0]).norm(dim=1).max()) < 0.01


def test_an_episode_has_its_own_time_and_random_numbers_and_the_memory_of_the_state(
    env: LearningEnv, states: ResetStates
) -> None:
    env.env.levels.level.fill_(0.25)
    stream = env.env.stream.clone()
    begun(env, states)
    assert torch.equal(env.env.stream, stream)
    assert float(env.env.levels.level.min()) == 0.25
    assert float(env.env.episode.step.abs().max()) == 0.0
    assert float(env.env.kept.sums.abs().max()) == 0.0
    torch.testing.assert_close(env.memory["script"], states.states["memory/script"])
    assert not set(OWN) & set(states.states)


def test_episodes_begin_as_often_as_weights_tell(task: PlaceDirect, states: ResetStates) -> None:
    env = LearningEnv(VecEnv(task, 64, seed=2))
    torch.manual_seed(0)
    weights = weights_of(["start:1", "grasped:3"], FAMILIES)
    starts = Starts(env, states, weights)
    families = []
    for _ in range(12):
        env.reset()
        families.append(starts.begun.clone())
        lifted = env.env.truth()["lifted"][:, 0]
        assert torch.equal(lifted > 0.5, starts.begun == 2)
    counts = torch.cat(families).bincount(minlength=4)
    assert counts[[1, 3]].tolist() == [0, 0]
    assert 0.68 < float(counts[2] / counts.sum()) < 0.82  # of 768, three standard deviations about 3/4


def test_a_file_is_read_as_it_was_written(task: PlaceDirect, file: Path, states: ResetStates) -> None:
    found = read(file, task)
    assert torch.equal(found.family, states.family)
    assert found.states.tensors.keys() == states.states.tensors.keys()
    assert all(torch.equal(found.states[name], states.states[name]) for name in states.states)


def test_a_file_of_another_task_is_refused(file: Path) -> None:
    with pytest.raises(ResetStateError, match=r"recorded at task 'arm-place-direct'"):
        read(file, Place())


@settings(max_examples=examples(100))
@given(data=st.data())
def test_strange_files_are_read_or_refused_in_a_sentence(
    task: PlaceDirect, env: LearningEnv, states: ResetStates, file: Path, data: st.DataObject
) -> None:
    told: Any = {"contract": json.loads(contract_of(task).to_json()), "families": list(FAMILIES)}
    told = data.draw(st.one_of(st.just(told), changed(told)))
    if isinstance(told, dict) and isinstance(told.get("contract"), dict):
        told["contract"] = json.dumps(told["contract"])
    other = {"family": states.family, **states.states.tensors}
    for name in data.draw(st.lists(st.sampled_from(sorted(other)), max_size=2, unique=True)):
        value = other[name]
        strange = [
            torch.zeros(0), torch.zeros(()), value.double(), value[:-1], value[:, None], torch.full_like(value, 7),
            torch.full_like(value.double(), float("nan")), torch.full_like(value.double(), 1e300),
        ]  # fmt: skip
        other[name] = data.draw(st.sampled_from(strange))
    if data.draw(st.booleans()):
        other[data.draw(st.text(min_size=1, max_size=5))] = torch.zeros(3)
    path = file.parent / "strange.safetensors"
    checkpoint.save(path, other, told)
    found, sentence = attempt(lambda: read(path, task, env), ResetStateError)
    if found is None:
        assert str(path) in sentence
        assert len(sentence) < 1500
        return
    assert found.family.shape == (len(FAMILIES) * COUNT,)
    assert 0 <= int(found.family.min()) <= int(found.family.max()) < len(FAMILIES)


@given(words=st.lists(st.one_of(st.text(max_size=12), st.sampled_from(["start:1", "grasped:0", "grasped:nan"]))))
def test_weights_are_read_or_refused_in_a_sentence(words: list[str]) -> None:
    found, sentence = attempt(lambda: weights_of(words, FAMILIES), ResetStateError)
    if found is None:
        assert "expected" in sentence
    else:
        assert set(found) == {"start", *FAMILIES}
        assert sum(found.values()) > 0.0


def test_a_training_goes_on_to_the_bit(task: PlaceDirect, file: Path) -> None:
    config = PpoConfig(environments=8, horizon=8, mini_batches=2, hidden=(8,), reset_states=digest(file))

    def learner() -> ppo.Learner:
        torch.manual_seed(3)
        policy = PolicyGraph(task, config.hidden, config.activation, config.normalize)
        return ppo.Learner(task, policy, config, 0, folder=file.parent)

    first = learner()
    assert {f"success/{name}" for name in ("start", *FAMILIES)} <= first.update().keys()
    saved, policy, random = first.save(), first.policy.state_dict(), torch.random.get_rng_state()
    saved = ({name: value.clone() for name, value in saved[0].items()}, dict(saved[1]))
    policy = {name: value.clone() for name, value in policy.items()}
    expected = first.update()
    second = learner()
    second.policy.load_state_dict(policy)
    second.load(*saved)
    torch.random.set_rng_state(random)
    found = second.update()
    same = [name for name in expected if not name.startswith("success/")]  # averages of what was seen since it began
    assert {name: found[name] for name in same} == {name: expected[name] for name in same}


def test_states_that_were_changed_under_a_run_are_refused(task: PlaceDirect, file: Path) -> None:
    config = PpoConfig(environments=8, horizon=8, hidden=(8,), reset_states="0" * 64)
    with pytest.raises(ResetStateError, match="not the reset states that the run began with"):
        ppo.Learner(task, PolicyGraph(task, (8,)), config, 0, folder=file.parent)


def test_a_family_without_states_is_not_drawn(task: PlaceDirect, states: ResetStates) -> None:
    env = LearningEnv(VecEnv(task, 4, seed=2))
    some = states.family > 0
    without = ResetStates(states.families, states.family[some], EnvState(states.states.at(some).tensors))
    assert Starts(env, without, weights_of([], FAMILIES)).chance.tolist()[1] == 0.0
    with pytest.raises(ResetStateError, match="there are none of"):
        Starts(env, without, weights_of(["near_grasp:1"], FAMILIES))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["reset-states", "quadrotor-hover"], "has no families of states"),
        (["reset-states", "arm-place-direct", "--states", "0"], "expected 1 to 100000"),
        (["reset-states", "arm-place-direct", "--out", "FILE"], "which exists"),
        (["train", "arm-place-direct", "--algorithm", "ppo", "--reset-states", "nowhere"], "does not exist"),
        (["train", "arm-place-direct", "--algorithm", "ppo", "--ppo.reset-weights", "start:1"], "--reset-states FILE"),
        (["train", "quadrotor-hover", "--reset-states", "FILE"], "can't begin from any; expected ppo or sac"),
        (
            ["train", "arm-place-direct", "--algorithm", "ppo", "--reset-states", "FILE", "--ppo.reset-weights", "x:1"],
            "expected NAME:WEIGHT, NAME one of ['start', 'near_grasp', 'grasped', 'nearly_placed']",
        ),
    ],
)
def test_the_command_line_refuses_in_a_sentence(
    words: list[str], sentence: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([str(file) if word == "FILE" else word for word in words])
    assert ended.value.code == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
