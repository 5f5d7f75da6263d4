"""Policies are found by their names: a run, a file, or a task's classical controller."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.policies.loading import load
from robo_rl.sim.robots import FOLDER

STRANGER = f"{Path(__file__).with_name('viewer') / 'cart_and_pole.py'}:Balance"


def test_a_run_and_its_file_fly_alike(trained_run: Path, bundle_file: Path) -> None:
    run, file = load(str(trained_run)), load(str(bundle_file))
    assert (run.name, file.name) == (trained_run.name, "policy.onnx")
    assert run.task.spec.name == file.task.spec.name == "quadrotor-hover"
    found = [rollout(loaded.task, loaded.policy, Conditions(episodes=20)) for loaded in (run, file)]
    errors = [episodes.errors["position_error"] for episodes in found]
    np.testing.assert_allclose(errors[0], errors[1], atol=1e-3)


@pytest.mark.parametrize("name", ["classical", "geometric"])
def test_the_classical_controller_is_found_by_its_own_name_too(name: str) -> None:
    loaded = load(name, "quadrotor-track", "hummingbird")
    assert loaded.name == name
    assert (loaded.task.spec.name, loaded.task.spec.robot.name) == ("quadrotor-track", "hummingbird")
    assert rollout(loaded.task, loaded.policy, Conditions(episodes=10)).survived.mean() > 0.8


def test_a_policy_can_fly_another_task_than_its_own(trained_run: Path, bundle_file: Path) -> None:
    for target in (trained_run, bundle_file):
        loaded = load(str(target), "quadrotor-track")
        assert loaded.task.spec.name == "quadrotor-track"
        assert rollout(loaded.task, loaded.policy, Conditions(episodes=4, seconds=1.1)).summary()["episodes"] == 4


def test_a_policy_can_fly_a_robot_of_one_s_own(trained_run: Path, tmp_path: Path) -> None:
    card = tmp_path / "heavy.toml"
    shutil.copy(FOLDER / "crazyflie" / "card.toml", card)
    loaded = load(str(trained_run), robot=str(card))
    assert loaded.task.spec.robot.name == "heavy"
    state = loaded.policy.initial_state(2)
    commands, _ = loaded.policy({s.name: torch.zeros(2, s.size) for s in loaded.task.spec.signals}, state)
    assert commands["rotor_speed"].shape == (2, 4)


@pytest.mark.parametrize(
    ("target", "task", "sentence"),
    [
        ("classical", None, "a classical controller belongs to a task; expected --task with its name"),
        ("nowhere", None, r"'nowhere' is neither a run's folder nor a \.onnx file, nor 'classical'"),
        ("nowhere", "quadrotor-hover", "'nowhere' is neither a run's folder"),
        ("mppi", "omni-nav", r"controller of omni-nav \(it has: 'dynamic-window'\)"),
        ("mppi", "go2-flat", r"controller of go2-flat \(it has: none\)"),
        ("geometric", None, "'geometric' is neither a run's folder"),
        ("geometric", STRANGER, "'geometric' is neither a run's folder"),
        ("classical", "go2-flat", "task 'go2-flat' has no classical controller"),
        ("nowhere.onnx", None, r"nowhere\.onnx: there is no such file"),
        ("geometric", "quadrotor-sleep", "task 'quadrotor-sleep' is not known"),
    ],
)
def test_what_does_not_fly_is_refused(target: str, task: str | None, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load(target, task)


@pytest.mark.parametrize("name", ["dynamic-window", "mppi"])
def test_a_task_can_have_several_controllers_each_found_by_its_name(name: str) -> None:
    loaded = load(name, "diff-nav")
    assert loaded.policy.controller.name == name
    assert rollout(loaded.task, loaded.policy, Conditions(episodes=2, seconds=2.0)).summary()["episodes"] == 2
