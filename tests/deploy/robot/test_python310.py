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


needs_python_310 = pytest.mark.skipif(not INTERPRETER, reason="ROBO_RL_PYTHON310 names no Python 3.10")
GOLDEN = """
import sys, numpy as np
import robo_rl.deploy.robot.loop, robo_rl.deploy.robot.gated, robo_rl.deploy.robot.drivers
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.zoo import names
for name in names():
    bundle = Bundle.read(f"zoo:{name}")
    commands, following = bundle.run(bundle.golden.signals, bundle.golden.states[: len(bundle.golden)])
    assert greatest(command_differences(bundle.contract, commands, bundle.golden.commands)) <= 1e-5, name
assert not {"torch", "mujoco", "onnx"} & set(sys.modules)
print(sys.version_info[:2], np.__version__, len(names()))
"""


def run(*words: str) -> str:
    done = subprocess.run([INTERPRETER, *words], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_python_310
def test_every_driver_check_passes_under_python_3_10() -> None:
    program = "from robo_rl.cli import main; main(['driver', 'check', 'examples/own_driver/my_driver.py:Driver'])"
    passed, _, checks = run("-c", program).partition(" checks passed")[0].split()[-3:]
    assert int(passed) == int(checks) > 0


@needs_python_310
def test_the_gate_answers_every_vector_under_python_3_10() -> None:
    assert ", 0 of them changed" in run("tests/vectors/make_gate_vectors.py", "--check")


@needs_python_310
def test_the_zoo_s_policies_give_their_golden_commands_under_python_3_10() -> None:
    assert run("-c", GOLDEN).startswith("(3, 10) 1.26")
