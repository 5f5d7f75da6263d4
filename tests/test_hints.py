"""Every hint that a command prints works when it is pasted, for a user's own robot and task.

The files are taken away after the training, so what follows stands on run and bundle alone.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from robo_rl.cli import main
from robo_rl.deploy.build.pack import repack
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.robots import FOLDER
from robo_rl.sim.tasks.attached import attached_of
from robo_rl.sim.tasks.loading import load_task
from robo_rl.viewer.live import Live

ROOT = Path(__file__).parents[1]
(CIRCLE, *_) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-task.md").read_text(), re.S)
FEW = {
    "evaluate": ["--episodes", "20"],
    "report": ["--episodes", "20"],
    "verify": ["--episodes", "20", "--min-success", "0"],
    "compress": ["--episodes", "20", "--updates", "20"],
    "play": ["--no-open"],
}
"""What is added to a hint, to save time."""

Paste = Callable[..., list[str]]


@pytest.fixture
def paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """Runs a line as it would be typed in a folder, and gives the hints that it prints."""
    monkeypatch.chdir(tmp_path)

    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Live, "run", ended)  # as Ctrl-C does once the page is served

    def run(line: str) -> list[str]:
        words = shlex.split(line)
        assert words[0] == "robo-rl"
        capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main([*words[1:], *FEW.get(words[1], [])])
        out, err = capsys.readouterr()
        assert done.value.code == 0, f"{line}: {err[-500:]}"
        return [hint.strip() for line in out.splitlines() for hint in re.findall(r"robo-rl [a-z]+ .*?(?=  |$)", line)]

    return run


def all_pasted(paste: Paste, hints: list[str]) -> dict[str, str]:
    """Paste every hint, and those that they print, each command once; the last line of each by its command."""
    done: dict[str, str] = {}
    while hints:
        hint, *hints = hints
        if (command := hint.split()[1]) not in done:
            done[command] = hint
            hints += paste(hint)
    return done


@pytest.mark.release
def test_of_one_s_own_robot(paste: Paste, tmp_path: Path) -> None:
    (tmp_path / "racer.toml").write_text((FOLDER / "crazyflie" / "card.toml").read_text())
    hints = paste("robo-rl train quadrotor-hover --robot racer.toml --episodes 20")
    (tmp_path / "racer.toml").unlink()
    done = all_pasted(paste, hints)
    assert {"play", "export", "report", "evaluate", "verify", "inspect"} <= done.keys()


@pytest.mark.slow
def test_commands_that_simulate_a_file_need_nothing_else(paste: Paste, tmp_path: Path) -> None:
    card = tmp_path / "racer.toml"
    card.write_text((FOLDER / "crazyflie" / "card.toml").read_text())
    task, contract = load_task("quadrotor-hover", str(card)), Bundle.read("zoo:quadrotor-hover").contract
    contract = dataclasses.replace(contract, robot=task.spec.robot.facts())
    repack("zoo:quadrotor-hover", contract, tmp_path / "policy.onnx", attached_of(task))
    card.unlink()
    hints = paste("robo-rl firmware policy.onnx --target host --precision int16 --episodes 0")
    assert hints == ["robo-rl firmware policy.onnx --target host --precision int16 --run"]
    assert paste("robo-rl compress policy.onnx") == ["robo-rl firmware policy_small.onnx --small --run"]
    assert paste("robo-rl firmware policy.onnx --target host --fly 4") == []
    assert paste("robo-rl transfer policy.onnx --episodes 20 --perturbations none") == []


@pytest.mark.release
def test_of_one_s_own_task(paste: Paste, tmp_path: Path) -> None:
    (tmp_path / "circle.py").write_text(CIRCLE)
    hints = paste("robo-rl train ./circle.py:Circle --episodes 20 --apg.updates 10")
    (tmp_path / "circle.py").unlink()
    done = all_pasted(paste, hints)
    assert done["verify"] == "robo-rl verify policy.onnx --task inside"
    assert {"play", "export", "report", "evaluate", "inspect"} <= done.keys()
    hints = paste("robo-rl firmware policy.onnx --target host --task inside")
    assert all_pasted(paste, hints)["firmware"] == "robo-rl firmware policy.onnx --target host --task inside --run"
    assert paste("robo-rl compress policy.onnx --task inside") == [
        "robo-rl firmware policy_small.onnx --small --run",
    ]
