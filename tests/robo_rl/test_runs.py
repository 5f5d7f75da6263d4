"""Runs: the folder a training makes, and the refusal of damaged ones."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch

from robo_rl.learn.config import ApgConfig, PpoConfig
from robo_rl.learn.runs.folder import HELD_OUT, Run, RunError
from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.figures import CardError

SMALL = dataclasses.asdict(ApgConfig(updates=2, environments=8, horizon=4, hidden=(8,)))


def test_a_run_is_a_new_folder_named_after_its_task_and_seed(tmp_path: Path) -> None:
    first = Run.create(tmp_path / "deep" / "runs", "quadrotor-hover", None, "apg", 3, SMALL)
    second = Run.create(tmp_path / "deep" / "runs", "quadrotor-hover", None, "apg", 3, SMALL)
    other = Run.create(tmp_path / "deep" / "runs", "quadrotor-track", None, "ppo", 0, dataclasses.asdict(PpoConfig()))
    names = [run.folder.name for run in (first, second, other)]
    assert names == ["quadrotor-hover-seed3-1", "quadrotor-hover-seed3-2", "quadrotor-track-ppo-seed0-1"]


def test_an_opened_run_is_the_created_one(tmp_path: Path) -> None:
    created = Run.create(tmp_path, "quadrotor-hover", "hummingbird", "apg", 3, SMALL)
    opened = Run.open(created.folder)
    assert json.dumps(opened.description()) == json.dumps(created.description())
    assert opened.task().spec.robot == load_robot("hummingbird")
    assert opened.provenance(0) == created.provenance(0)


@pytest.mark.parametrize(
    ("task", "robot", "seed", "sentence"),
    [
        ("quadrotor-sleep", None, 0, "task 'quadrotor-sleep' is not known; did you mean"),
        ("quadrotor-hover", "balloon", 0, "robot 'balloon' is not known; expected one of"),
        ("quadrotor-hover", None, -1, "seed is -1; expected 0 to"),
        ("quadrotor-hover", None, HELD_OUT, f"seed is {HELD_OUT}; expected 0 to {HELD_OUT - 1}"),
    ],
)
def test_a_wrong_choice_is_refused_before_a_folder_exists(
    tmp_path: Path, task: str, robot: str | None, seed: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Run.create(tmp_path / "runs", task, robot, "apg", seed, SMALL)
    assert not (tmp_path / "runs").exists()


def test_a_user_s_robot_card_is_copied_into_the_run(tmp_path: Path) -> None:
    mine = tmp_path / "my_drone" / "card.toml"
    mine.parent.mkdir()
    text = (FOLDER / "hummingbird" / "card.toml").read_text().replace("value = 0.5", "value = 0.55", 1)
    mine.write_text(text)
    mass = load_robot(str(mine)).mass
    run = Run.create(tmp_path / "runs", "quadrotor-hover", str(mine), "apg", 0, SMALL)
    mine.unlink()
    opened = Run.open(shutil.move(run.folder, tmp_path / "moved"))
    card = opened.task().spec.robot
    assert (card.name, card.mass) == ("my_drone", mass)


def test_a_run_whose_card_is_gone_says_so(tmp_path: Path) -> None:
    mine = tmp_path / "drone.toml"
    shutil.copy(FOLDER / "crazyflie" / "card.toml", mine)
    run = Run.create(tmp_path / "runs", "quadrotor-hover", str(mine), "apg", 0, SMALL)
    (run.folder / "drone.toml").unlink()
    with pytest.raises(CardError, match=r"drone\.toml' is not known"):
        Run.open(run.folder).task()


def damaged(**changes: Any) -> str:
    data = {
        "task_name": "quadrotor-hover",
        "robot": None,
        "algorithm": "apg",
        "seed": 0,
        "hyperparameters": SMALL,
        "versions": {},
    }
    return json.dumps({key: value for key, value in (data | changes).items() if value != "missing"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        "\xff",
        damaged(seed="missing"),
        damaged(versions="missing"),
        damaged(surprise=1),
        damaged(algorithm="dqn"),
        damaged(algorithm=["apg"]),
        damaged(hyperparameters=None),
        damaged(hyperparameters={"updates": 3, "magic": 1}),
        damaged()[:-10],
    ],
)
def test_a_damaged_run_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(RunError, match=r"run\.json: .*; expected a file written by 'robo-rl train'"):
        Run.open(tmp_path)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"run\.json does not exist; expected the folder of a run"):
        Run.open(tmp_path)
    with pytest.raises(RunError, match=r"nowhere/run\.json does not exist"):
        Run.open(tmp_path / "nowhere")
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").touch()
    with pytest.raises(RunError, match=r"run\.json does not exist; expected one of the runs in it: .*/a, .*/b"):
        Run.open(tmp_path)


def test_a_checkpoint_of_another_network_is_refused_by_name(trained_run: Path, tmp_path: Path) -> None:
    run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, SMALL)
    shutil.copy(Run.open(trained_run).checkpoint_file, run.folder)
    with pytest.raises(RunError, match=r"checkpoint\.safetensors does not fit .*run\.json \("):
        run.policy()


def test_the_trained_policy_is_the_one_in_the_checkpoint(trained_run: Path) -> None:
    run = Run.open(trained_run)
    policy, provenance = run.policy()
    stored = safetensors.torch.load_file(run.checkpoint_file)
    for name, value in policy.state_dict().items():
        np.testing.assert_array_equal(value, stored[f"policy/{name}"])
    assert not any(parameter.requires_grad for parameter in policy.parameters())
    settings = run.hyperparameters
    updates = json.loads((trained_run / "metrics.jsonl").read_text().splitlines()[-1])["update"]
    assert provenance.environment_steps == updates * settings["environments"] * settings["horizon"]
    assert (provenance.algorithm, provenance.seed, provenance.source) == ("apg", 0, "")


def test_the_configuration_digest_depends_on_all_choices_and_on_nothing_else(tmp_path: Path) -> None:
    def digest(task: str = "quadrotor-hover", robot: str | None = None, seed: int = 0, **changes: Any) -> str:
        run = Run.create(tmp_path, task, robot, "apg", seed, SMALL | changes)
        return run.provenance(0).configuration_digest

    assert digest() == digest()
    others = [digest(task="quadrotor-track"), digest(robot="hummingbird"), digest(seed=1)]
    for name, value in SMALL.items():
        given = {
            "hidden": (9,),
            "betas": (0.5, 0.5),
            "activation": "relu",
            "replay": 0.5,
            "adversary": ("mass",),
            "rationality": (1.0, 1.0),
        }
        change = given.get(name, 2 * value)
        others.append(digest(**{name: change}))
    assert len({digest(), *others}) == len(others) + 1


def test_a_run_keeps_the_card_and_the_model_of_a_robot_of_one_s_own(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "own_quadruped"
    mine = shutil.copytree(example, tmp_path / "mine")
    run = Run.create(tmp_path / "runs", "go2-flat", str(mine / "card.toml"), "ppo", 0, dataclasses.asdict(PpoConfig()))
    shutil.rmtree(mine)
    card = Run.open(run.folder).task().spec.robot
    assert card.name == "mine"
    assert card.model.parent == run.folder
