"""What many tests need once: a policy that flies, and the file it is exported to."""

from __future__ import annotations

import os
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
