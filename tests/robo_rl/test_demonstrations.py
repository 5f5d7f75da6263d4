"""Demonstrations: what a file holds, what it fits, what is refused, and what is learnt from it."""

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
from robo_rl.learn import bc
from robo_rl.learn.config import BcConfig
from robo_rl.learn.experience.demonstrations import (
    FILE_NAME,
    DemonstrationError,
    contract_of,
    demonstrate,
    digest,
    read,
    write,
)
from robo_rl.learn.runs import checkpoint
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.arm.insert import Insert
from robo_rl.sim.tasks.arm.place import Place
from tests.suite import examples

EPISODES = 3


@pytest.fixture(scope="module")
def task() -> Insert:
    return Insert()


@pytest.fixture(scope="module")
def tensors(task: Insert) -> dict[str, Tensor]:
    return demonstrate(task, EPISODES, seed=2)[0]


@pytest.fixture(scope="module")
def file(task: Insert, tensors: dict[str, Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demonstrations") / FILE_NAME
    write(path, task, tensors)
    return path


def test_episodes_are_whole_follow_one_another_and_end_in_success(tensors: dict[str, Tensor]) -> None:
    for k in range(EPISODES):
        rows = tensors["episode"] == k
        seen, later = tensors["observation"][rows], tensors["next_observation"][rows]
        assert len(seen) > 10
        assert torch.equal(seen[1:], later[:-1])
        ended, reward = tensors["ended"][rows], tensors["reward"][rows]
        assert ended[-1] == 1.0
        assert float(ended[:-1].max()) == 0.0
        assert float(reward[-1]) > 0.9
        assert float(reward[:-1].max()) <= 0.0


def test_actions_are_those_of_the_script_on_what_is_recorded(task: Insert, tensors: dict[str, Tensor]) -> None:
    memory = task.first_memory(1)
    for k in range(20):
        signals = {signal.name: tensors[f"signal/{signal.name}"][k : k + 1] for signal in task.spec.signals}
        torch.testing.assert_close(task.observe(signals, memory)[0], tensors["observation"][k], atol=1e-5, rtol=0.0)
        action = task.script(signals, memory)
        torch.testing.assert_close(action[0], tensors["action"][k], atol=1e-5, rtol=0.0)
        memory = task.remember(memory, signals, task.command(action, memory))


def test_a_file_is_read_as_it_was_written(task: Insert, file: Path, tensors: dict[str, Tensor]) -> None:
    shown, episodes = read(file, task)
    assert episodes == EPISODES
    for name, value in shown._asdict().items():
        assert torch.equal(value, tensors[name])


def test_a_file_of_another_task_is_refused(file: Path) -> None:
    with pytest.raises(DemonstrationError, match=r"task 'arm-insert' .* are not those of 'arm-place'"):
        read(file, Place())


def test_a_damaged_file_is_refused(file: Path, task: Insert, tmp_path: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    path = tmp_path / FILE_NAME
    path.write_bytes(data)
    with pytest.raises(DemonstrationError, match="another SHA-256"):
        read(path, task)


@settings(max_examples=examples(150))
@given(data=st.data())
def test_strange_files_are_read_or_refused_in_a_sentence(
    task: Insert, tensors: dict[str, Tensor], file: Path, data: st.DataObject
) -> None:
    numbers: Any = {"task": task.name, "contract": json.loads(contract_of(task).to_json())}
    numbers = data.draw(st.one_of(st.just(numbers), changed(numbers)))
    if isinstance(numbers, dict) and isinstance(numbers.get("contract"), dict):
        numbers["contract"] = json.dumps(numbers["contract"])
    other = dict(tensors)
    for name in data.draw(st.lists(st.sampled_from(sorted(tensors)), max_size=2)):
        other[name] = data.draw(
            st.sampled_from([
                torch.zeros(0), torch.zeros(()), tensors[name].double(), tensors[name][:-1], tensors[name][:, None],
                torch.full_like(tensors[name].float(), float("nan")), torch.zeros_like(tensors[name]),
                torch.full_like(tensors[name], 7), torch.zeros(3, dtype=torch.bool),
            ])
        )  # fmt: skip
    path = file.parent / "strange.safetensors"
    checkpoint.save(path, other, numbers)
    found, told = attempt(lambda: read(path, task), DemonstrationError)
    if found is None:
        assert str(path) in told
        assert len(told) < 1500
        return
    assert all(bool(torch.isfinite(value).all()) for value in found[0])
    assert len({len(value) for value in found[0]}) == 1


@settings(max_examples=60)
@given(data=st.binary(max_size=100))
def test_a_file_of_any_bytes_is_refused(task: Insert, file: Path, data: bytes) -> None:
    path = file.parent / "bytes.safetensors"
    path.write_bytes(data)
    with pytest.raises(DemonstrationError):
        read(path, task)


def test_a_clone_does_what_was_demonstrated(task: Insert, file: Path) -> None:
    torch.manual_seed(0)
    policy = PolicyGraph(task, (64,), "relu")
    config = BcConfig(updates=30, hidden=(64,), demonstrations=digest(file))
    learner = bc.Learner(task, policy, config, 0, folder=file.parent)
    first = learner.update()["error"]
    for _ in range(29):
        last = learner.update()["error"]
    assert last < 0.4 * first
    shown, _ = read(file, task)
    error = (policy.network(policy.features(shown.observation)).detach() - shown.action).square().mean().sqrt()
    assert float(error) < 0.25


def test_demonstrations_that_were_changed_under_a_run_are_refused(task: Insert, file: Path) -> None:
    config = BcConfig(demonstrations="0" * 64)
    with pytest.raises(DemonstrationError, match="not the demonstrations that the run began with"):
        bc.Learner(task, PolicyGraph(task, (8,)), config, 0, folder=file.parent)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "arm-insert", "--algorithm", "bc"], "expected --demonstrations FILE"),
        (["train", "arm-insert", "--algorithm", "ppo", "--demonstrations", "FILE"], "expected sac or bc"),
        (["train", "arm-insert", "--demonstrations", "nowhere"], "the file does not exist"),
        (["train", "quadrotor-hover", "--algorithm", "sac"], "expected one of ['apg', 'ppo']"),
        (["demonstrate", "quadrotor-hover"], "has no script"),
        (["demonstrate", "arm-insert", "--episodes", "0"], "expected 1 to 100000"),
        (["demonstrate", "arm-insert", "--out", "FILE"], "which exists"),
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
