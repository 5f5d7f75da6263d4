"""The page of a training: what its runs wrote, the newest policy, and two runs beside each other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import WEBGL

from robo_rl.files import held
from robo_rl.learn import new_learner
from robo_rl.learn.runs import training
from robo_rl.learn.runs.folder import Run
from robo_rl.policies.loading import load
from robo_rl.viewer.live import Live
from robo_rl.viewer.page import Page
from robo_rl.viewer.side_by_side import SideBySide
from robo_rl.viewer.training import Newest, curve, state_of

LENGTHS = {f"episode/length_p{q}_s": 0.01 * int(q) for q in ("05", "25", "50", "75", "95")}
LINES = [
    {
        "update": k, "environment_steps": 100 * k, "reward": 0.1 * k, "reward/near": -0.5, "reward/alive": 1.0,
        "error/position_error": 1.0 / k, "episode/failure": 0.5, "episode/count": 4.0, "failure/too far": 1.0,
        **LENGTHS,
    }
    for k in range(1, 9)
]  # fmt: skip


@pytest.fixture
def written(trained_run: Path, tmp_path: Path) -> Path:
    """A run's folder with metrics that are known, of a training that was ended."""
    folder = Path(shutil.copytree(trained_run, tmp_path / "first"))
    (folder / "done.json").unlink()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return folder


def test_a_curve_has_the_lines_that_know_the_metric(written: Path) -> None:
    steps, values = curve([*Run.open(written).metrics(), {"update": 9, "environment_steps": 900}], "reward")
    np.testing.assert_allclose(steps, np.arange(100, 900, 100))
    np.testing.assert_allclose(values, 0.1 * np.arange(1, 9))


def test_a_run_is_in_training_while_its_folder_is_held(written: Path, trained_run: Path) -> None:
    run = Run.open(written)
    assert state_of(run) == f"ended before its last update: robo-rl resume {written}"
    with held(written):
        assert state_of(run) == "in training"
    assert state_of(Run.open(trained_run)) == "done"


def test_robots_get_the_newest_policy(written: Path) -> None:
    run, loaded = Run.open(written), load(str(written))
    live = Live(loaded, 2)
    newest = Newest(run, loaded.policy.policy)
    assert newest.changed() is None
    learner = new_learner(run, run.new_policy())
    training.save(run, learner)
    weights = newest.changed()
    assert weights is not None
    live.renew(loaded.policy.policy, weights)
    for name, value in learner.policy.state_dict().items():
        assert torch.equal(loaded.policy.policy.state_dict()[name], value)
    live.step()
    assert newest.changed() is None


def test_each_of_two_policies_has_its_robots(trained_run: Path) -> None:
    """Commands are those of each policy alone, for its own rows."""
    ours = load(str(trained_run)).policy
    other = load("classical", "quadrotor-hover").policy
    both, live = SideBySide([ours, other]), Live(load(str(trained_run)), 5)
    signals, state = live.env.signals(), both.initial_state(5)
    commands, _ = both(signals, state)
    alone, _ = ours(signals, ours.initial_state(5))
    classical, _ = other(signals, other.initial_state(5))
    for name, value in commands.items():
        torch.testing.assert_close(value[:3], alone[name][:3])
        torch.testing.assert_close(value[3:], torch.as_tensor(classical[name][3:], dtype=value.dtype))


@pytest.mark.browser
def test_a_browser_shows_curves_of_a_run_that_was_killed(written: Path, tmp_path: Path, open_page) -> None:
    second = Path(shutil.copytree(written, tmp_path / "second"))
    runs = [Run.open(written), Run.open(second)]
    loaded = load(str(written))
    live, stop = Live(loaded, 2), threading.Event()
    page = Page(live, runs=runs, newest=Newest(runs[0], loaded.policy.policy))
    threads = [threading.Thread(target=work, args=(stop,)) for work in (live.run, page.run)]
    for thread in threads:
        thread.start()
    try:
        browser = open_page(page.url, WEBGL, (1200, 900))
        browser.until("document.querySelectorAll('.uplot').length >= 8")
        text = browser.run("document.body.innerText")
        for told in (
            "reward per step", "reward terms, stacked", "length of episodes, s: quantiles", "position error, m",
            "causes of failure", "first", "second", "robo-rl resume", "near", "alive",
        ):  # fmt: skip
            assert told in text
        assert browser.complaints == []
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)
        page.server.stop()


def test_the_page_beside_a_training_ends_with_it(written: Path) -> None:
    """Its standard input is what the training holds."""
    words = [sys.executable, "-P", "-m", "robo_rl.commands.beside", str(written), "0", "0"]
    page = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert page.stdin is not None
    assert page.stdout is not None
    assert "is at http://127.0.0.1:" in page.stdout.readline()
    page.stdin.close()
    assert page.wait(timeout=120) == 0
