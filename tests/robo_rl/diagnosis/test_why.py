"""``robo-rl why`` names mistakes that were planted in a task, and says nothing of a training that learns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from robo_rl.cli import main
from tests.suite import representatives

ROOT = Path(__file__).parents[3]
APG = ("--apg.updates", "60", "--apg.environments", "64")
PPO = ("--algorithm", "ppo", "--ppo.updates", "24", "--ppo.environments", "64")
MISTAKES: dict[str, tuple[str, tuple[str, ...], str, str]] = {
    "AlwaysZero": ("AlwaysZero", APG, "constant term", "place is always 0"),
    "HugePenalty": ("HugePenalty", APG, "dominant term", "rate is"),
    "Bang": ("Bang", PPO, "at limits", "cart_force is at a limit"),
    "ConstantObservation": ("ConstantObservation", APG, "constant observation", "number 2 of the observation"),
    "Millimetres": ("Millimetres", APG, "scale of observation", "(cart_position) reaches"),
    "FailsAtOnce": ("FailsAtOnce", PPO, "ends at once", "within 1 control steps"),
    "WrongSign": ("WrongSign", APG, "rewards the opposite", "place grows with the cart position error"),
    "NoAlive": ("NoAlive", PPO, "better to fail", "fails early costs less"),
    "IgnoredAction": ("IgnoredAction", APG, "ignored actions", "1 of 1 elements of the action change no command"),
    "RuleOutOfReach": ("RuleOutOfReach", APG, "levels", "wants survived of 1.5"),
    "BlindCritic": ("BlindCritic", PPO, "critic", "of the variance of the returns"),
    "LogarithmOfLess": ("LogarithmOfLess", APG, "not finite", "no longer finite"),
    "small steps": ("Sound", (*APG, "--apg.learning-rate", "1e-8"), "learning rate", "learning rate of 1e-08"),
    "no exploration": ("Sound", (*PPO, "--ppo.initial-deviation", "1e-4"), "exploration", "exploration is small"),
    "noise": ("Sound", (*PPO, "--ppo.initial-deviation", "20"), "exploration", "exploration is large"),
}
"""By name: the task of planted.py, how it is trained, the check that finds it, and what is said."""
OFTEN = ["BlindCritic", "small steps"]
"""Tried with every change; the others before a release."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of an own kind, and the mistakes beside it."""
    made = tmp_path_factory.mktemp("planted")
    for file in (ROOT / "examples" / "own_kind").iterdir():
        if file.suffix in (".py", ".toml"):
            shutil.copy(file, made)
    shutil.copy(Path(__file__).with_name("planted.py"), made)
    return made


def why(folder: Path, task: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Train it, and ask."""
    runs = folder / "runs"
    with pytest.raises(SystemExit) as done:
        main(["train", f"{folder / 'planted.py'}:{task}", "--runs", str(runs), "--episodes", "0", *options, "--json"])
    capsys.readouterr()
    assert done.value.code in (0, 1)  # 1: it ended because nothing finite could be learnt
    newest = max(runs.iterdir(), key=lambda run: run.stat().st_mtime)
    with pytest.raises(SystemExit) as done:
        main(["why", str(newest), "--json"])
    assert done.value.code == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", representatives(list(MISTAKES), OFTEN))
def test_a_planted_mistake_is_named_with_its_figure(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, options, check, text = MISTAKES[name]
    found = why(folder, task, options, capsys)["findings"]
    said = [one["sentence"] for one in found if one["check"] == check]
    assert said, found
    assert any(text in sentence for sentence in said), said
    assert all(any(character.isdigit() for character in one["sentence"]) for one in found if one["check"] == check)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "options"), [("Sound", APG), ("Wide", APG)])
def test_nothing_is_said_of_a_training_that_learns(
    task: str, options: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = why(folder, task, options, capsys)
    assert found["findings"] == []
    assert found["part"] == 1.0


def test_a_run_without_a_checkpoint_is_refused(trained_run: Path, tmp_path: Path) -> None:
    """As is a folder without a run."""
    shutil.copy(trained_run / "run.json", tmp_path)
    with pytest.raises(SystemExit) as done:
        main(["why", str(tmp_path)])
    assert done.value.code == 1
