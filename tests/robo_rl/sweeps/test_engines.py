"""A sweep on Ray and on SLURM gives the policies of the command line."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from robo_rl.learn.distributed.engines import slurm
from robo_rl.sweeps import sweep, sweep_file

FEW = 'task = "quadrotor-hover"\nseeds = 2\n[options]\nepisodes = 20\n"apg.updates" = 3\n'
SBATCH = """#!/bin/sh
for word; do script=$word; done
array=$(sed -n 's/^#SBATCH --array=\\([0-9,]*\\)%.*/\\1/p' "$script")
for index in $(echo "$array" | tr , ' '); do SLURM_ARRAY_TASK_ID=$index sh "$script" >/dev/null 2>&1; done
echo 7
"""
"""Runs an array at once, as the scheduler would later."""


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    path = tmp_path / "few.toml"
    path.write_text(FEW)
    return path


def swept(file: Path, engine: str, **environment: str) -> dict[str, str]:
    """The digests of the policies of a sweep on an engine, by run."""
    out = file.parent / engine
    words = [sys.executable, "-m", "robo_rl", "sweep", str(file), "--engine", engine, "--out", str(out), "--slots", "2"]
    subprocess.run(words, check=True, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    return {path.parent.name: json.loads(path.read_text())["policy_digest"] for path in out.glob("*/done.json")}


@pytest.mark.slow
@pytest.mark.release  # with every change what its workers import: test_interpreters.py
def test_ray_and_this_computer_give_the_same_policies(planned: Path) -> None:
    pytest.importorskip("ray", reason="ray is missing: pip install 'robo-rl[scale]'")
    found = swept(planned, "ray")
    assert len(found) == 2
    assert found == swept(planned, "local")


@pytest.mark.slow
def test_slurm_runs_an_array_of_the_jobs(planned: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"sbatch": SBATCH, "squeue": "#!/bin/sh\n", "scancel": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(stat.S_IRWXU)
    found = swept(planned, "slurm", PATH=f"{programs}:{os.environ['PATH']}")
    assert len(found) == 2


def test_a_script_for_slurm_names_the_jobs_and_says_goodbye_in_time(planned: Path, tmp_path: Path) -> None:
    sweep.create(tmp_path / "out", sweep_file.plan(planned))
    text = slurm.script(tmp_path / "out", [0, 4, 7], slots=3)
    assert "#SBATCH --array=0,4,7%3" in text
    assert "--signal=B:TERM@60" in text
    assert '--index "$SLURM_ARRAY_TASK_ID"' in text


def test_an_engine_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from robo_rl.learn.distributed.engines import ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'robo-rl\[scale\]'"):
        next(ray.run(tmp_path, [0], 1))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="sbatch is not installed"):
        next(slurm.run(tmp_path, [0], 1, lambda index: False))


def test_a_cluster_without_tokens_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is missing: pip install 'robo-rl[scale]'")
    from robo_rl.learn.distributed.engines import ray

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(ValueError, match="RAY_AUTH_MODE is disabled"):
        next(ray.run(tmp_path, [0], 1))
    monkeypatch.delenv("RAY_AUTH_MODE")
    with pytest.raises(ValueError, match="expected token"):
        next(ray.run(tmp_path, [0], 1, "10.0.0.1:6379"))
