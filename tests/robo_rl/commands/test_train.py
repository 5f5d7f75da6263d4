"""robo-rl train: what holds when nothing is said, and what is said goes before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robo_rl.cli import main
from robo_rl.commands.training.train import command
from robo_rl.learn.runs import checkpoint
from robo_rl.sim.tasks.loading import load_task

SMALL = ("--ppo.updates", "1", "--ppo.environments", "8", "--ppo.horizon", "4", "--episodes", "0")


def run(folder: Path, *words: str) -> dict:
    """run.json of a training with these words."""
    with pytest.raises(SystemExit) as ended:
        main(["train", *words, "--runs", str(folder)])
    assert ended.value.code == 0
    (made,) = folder.iterdir()
    return json.loads((made / "run.json").read_text())


def test_a_task_brings_its_algorithm_and_figures_and_flags_go_before_them(tmp_path: Path) -> None:
    made = run(tmp_path, "go2-flat", *SMALL)
    own = load_task("go2-flat").settings["ppo"]
    assert made["algorithm"] == "ppo"
    for name in ("hidden", "activation", "desired_kl", "epochs"):
        assert made["hyperparameters"][name] == (list(own[name]) if name == "hidden" else own[name])
    assert (made["hyperparameters"]["environments"], made["hyperparameters"]["horizon"]) == (8, 4)


OWN = """
from robo_rl.sim.tasks.multirotor.quadrotor import QuadrotorHover

class Patient(QuadrotorHover):
    settings = {"apg": {"horizon": 77}}
"""


def test_a_task_in_a_users_file_brings_its_figures_too(tmp_path: Path) -> None:
    (tmp_path / "patient_hover.py").write_text(OWN)
    trained = command([f"{tmp_path}/patient_hover.py:Patient", "--help"])
    assert trained.keywords["apg"].horizon == 77


def test_the_task_is_found_wherever_it_stands_on_the_command_line(tmp_path: Path) -> None:
    made = run(tmp_path, *SMALL, "--seed", "3", "go2-flat")
    assert (made["algorithm"], made["seed"]) == ("ppo", 3)


def test_help_for_a_task_shows_the_figures_that_hold_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "go2-flat", "--help"])
    shown = "".join(capsys.readouterr().out.split())
    assert "(default:ppo)" in shown
    assert f"(default:{load_task('go2-flat').settings['ppo']['updates']})" in shown


def test_tasks_without_figures_of_their_own_have_the_usual_ones() -> None:
    given = command(["quadrotor-hover"]).keywords  # type: ignore[attr-defined]
    assert given["algorithm"] == "apg"
    assert given["ppo"].environments == 1024


def test_bounds_that_can_not_be_are_refused_before_there_is_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "quadrotor-hover", "--bounds", "mass:-1:0", "--runs", str(tmp_path / "runs")])
    assert ended.value.code != 0
    assert "ranges: mass is -1 to 0 ×; expected at least 0" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_rigid_bodies_have_no_derivative_to_learn_by(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "go2-flat", "--algorithm", "apg", "--runs", str(tmp_path / "runs")])
    assert "algorithm is apg; expected one of ['ppo'] for 'go2-flat'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("plant", "sentence"),
    [("bullet", "plant is 'bullet'; expected one of"), (7, "plant is (None, None, 7); expected texts or null")],
)
def test_a_run_of_an_engine_that_is_not_known_is_not_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plant: object, sentence: str
) -> None:
    made = run(tmp_path, "go2-flat", *SMALL)
    assert made["plant"] == "mujoco"
    (folder,) = tmp_path.iterdir()
    (folder / "run.json").write_text(json.dumps({**made, "plant": plant}))
    with pytest.raises(SystemExit):
        main(["resume", str(folder)])
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_a_training_by_warp_goes_on_by_warp(tmp_path: Path) -> None:
    pytest.importorskip("mujoco_warp", reason="mujoco_warp is missing: pip install 'robo-rl[dev]'")
    words = ("--plant", "warp", "--ppo.updates", "2", "--ppo.environments", "2", "--ppo.mini-batches", "1")
    made = run(tmp_path, "go2-flat", *words, "--ppo.horizon", "2", "--episodes", "0")
    assert made["plant"] == "warp"
    (folder,) = tmp_path.iterdir()
    described = {**made, "hyperparameters": {**made["hyperparameters"], "updates": 3}}
    (folder / "run.json").write_text(json.dumps(described))
    with pytest.raises(SystemExit) as ended:
        main(["resume", str(folder), "--episodes", "0"])
    assert ended.value.code == 0
    assert checkpoint.load(folder / "checkpoint.safetensors")[1]["done"] == 3
