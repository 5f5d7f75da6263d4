"""The scripts of benchmarks/ tell what they measure when they are asked for help, and don't measure."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [path for path in sorted((ROOT / "benchmarks").glob("*.py")) if "__main__" in path.read_text()]


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_help_measures_nothing(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: what all of them import, torch among it, takes seconds each time."""
    text = script.read_text()
    reads = any(reader in text for reader in ("words(__doc__", "ArgumentParser(", "tyro.cli("))
    assert reads, "it measures whatever it is told: call results.words(__doc__) first"
    needed = {"ros_decision": "rclpy", "ros_latency": "rclpy", "ros_loop": "rclpy", "native_node_latency": "rclpy",
              "walking_sb3": "stable_baselines3", "franka_wire": "franky_sim"}  # fmt: skip
    if script.stem in needed:
        extra = {"walking_sb3": "bench", "franka_wire": "franka-sim"}.get(script.stem, "ros")
        pytest.importorskip(needed[script.stem], reason=f"needs {needed[script.stem]}: pip install 'robo-rl[{extra}]'")
    monkeypatch.setattr(sys, "path", [str(script.parent), str(ROOT / "ros2_ws/src/robo_rl_ros"), *sys.path])
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code in (None, 0)
    assert len(capsys.readouterr().out) > 100
    assert list(tmp_path.iterdir()) == []
