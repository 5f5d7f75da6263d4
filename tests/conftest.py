"""What many tests need once: a policy that flies, and the file it is exported to."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of quadrotor-hover, trained by the command with its defaults."""
    from robo_rl.commands.train import main

    folder = tmp_path_factory.mktemp("runs")
    assert main("quadrotor-hover", runs=folder, episodes=0) == 0
    (run,) = folder.iterdir()
    return run


@pytest.fixture(scope="session")
def bundle_file(trained_run: Path) -> Path:
    """The bundle of that run. Copy it before you change it."""
    from robo_rl.commands.export import main

    out = trained_run / "policy.onnx"
    assert main(trained_run, out) == 0
    return out


@pytest.fixture(scope="session")
def chromium() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs headless Chromium with options and a URL; what its console says is on stderr, as CONSOLE lines.

    Time is virtual: pages get ten seconds of it, as soon as all that they wait for has come.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for path in map(shutil.which, names) if path), None)
    if program is None:
        pytest.skip("needs a browser: apt-get install chromium")

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            command += ["--disable-background-networking", "--enable-logging=stderr", "--v=0"]
            command += [f"--user-data-dir={profile}", "--virtual-time-budget=10000", *options]
            return subprocess.run(command, capture_output=True, text=True, timeout=300)

    return run
