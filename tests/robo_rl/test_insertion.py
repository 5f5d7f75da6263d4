"""Insertion from the command line: demonstrated, learnt, killed and resumed, exported, proved, compiled to C."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robo_rl.learn.experience.demonstrations import FILE_NAME
from robo_rl.learn.replay_buffer import FILE_NAME as REPLAY
from robo_rl.learn.runs import checkpoint

Robo = Callable[..., dict[str, Any]]
SMALL = ("--sac.updates", "4", "--sac.steps", "5", "--sac.environments", "8", "--sac.first", "16", "--sac.batch", "32")


@pytest.fixture(scope="module")
def folder(trained: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four rounds with demonstrations."""
    from robo_rl.commands.training.demonstrate import main

    file = tmp_path_factory.mktemp("shown") / "shown.safetensors"
    assert main("arm-insert", episodes=2, out=file) == 0
    return trained("arm-insert", "--algorithm", "sac", "--demonstrations", str(file), *SMALL)


@pytest.mark.release
def test_a_run_stands_by_itself_and_its_bundle_is_proved(
    folder: Path, exported: Callable[[Path], Path], tmp_path: Path, robo: Robo
) -> None:
    assert (folder / FILE_NAME).is_file()
    bundle = exported(folder)
    assert robo("verify", bundle, "--episodes", 10, "--min-success", 0)["passed"]
    made = robo("firmware", bundle, "--target", "host", "--fly", 1, "--task", "arm-insert", "--out", tmp_path / "c")
    assert made["passed"]


@pytest.mark.slow
def test_a_training_whose_transitions_are_ahead_of_its_checkpoint_ends_as_it_would_have(
    folder: Path, tmp_path: Path, robo: Robo
) -> None:
    """As ``kill -9`` leaves it: transitions are in the file that no checkpoint knows of."""
    copies = []
    for name in ("whole", "killed"):
        copies.append(shutil.copytree(folder, tmp_path / name))
        (copies[-1] / "checkpoint.safetensors").unlink()
        (copies[-1] / "done.json").unlink()
    (copies[1] / REPLAY).write_bytes(b"\xff" * (copies[1] / REPLAY).stat().st_size)
    for copy in copies:
        robo("resume", copy, "--episodes", 0)
    ends = [checkpoint.load(copy / "checkpoint.safetensors")[0] for copy in (folder, *copies)]
    for end in ends[1:]:
        assert end.keys() == ends[0].keys()
        assert all(end[name].equal(value) for name, value in ends[0].items())
