"""What a robot's computer runs is Python 3.10 with numpy 1.26, as on Ubuntu 22.04: no torch, MuJoCo or onnx."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("deploy/robot", "deploy/robot/drivers", "controllers", "robo_rl/contract")
NEWER = {"tomllib", "StrEnum", "UTC", "Self", "ExceptionGroup", "assert_never", "LiteralString", "batched"}
"""Names of the standard library that came with 3.11 and later."""
INTERPRETER = os.environ.get("ROBO_RL_PYTHON310", "")
"""A Python 3.10 with numpy 1.26, onnxruntime, array-api-compat, rich, tyro and tomli."""
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_of_the_robots_side_is_python_3_10(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 10))
    guarded = {node for check in ast.walk(tree) if isinstance(check, ast.If) and "version_info" in ast.dump(check.test)
               for node in ast.walk(check)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in guarded:
            assert not NEWER & {alias.name for alias in node.names}, f"line {node.lineno}"


@pytest.mark.skipif(not INTERPRETER, reason="ROBO_RL_PYTHON310 names no Python 3.10")
def test_a_driver_is_enabled_and_follows_under_python_3_10() -> None:
    program = (
        "import sys; from robo_rl.cli import main; "
        "code = main(['driver', 'check', 'examples/own_driver/my_driver.py:Driver', '--only',"
        " 'a refused enable, whose cause is removed'])"
    )
    done = subprocess.run(
        [INTERPRETER, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert "1 of 1 checks passed" in done.stdout, done.stdout + done.stderr
    light = (
        "import sys, robo_rl.deploy.robot.loop, robo_rl.deploy.robot.gated, robo_rl.deploy.robot.drivers; "
        "assert not {'torch', 'mujoco', 'onnx'} & set(sys.modules)"
    )
    subprocess.run([INTERPRETER, "-c", light], cwd=ROOT, check=True, timeout=60)
