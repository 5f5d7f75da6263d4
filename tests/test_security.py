"""The page on security: every row of its abuse table names a test, and the test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/security.md").read_text()


def test_every_kind_of_abuse_has_a_test() -> None:
    (section,) = re.findall(r"^## Abuse.*?\n(.*?)(?=^## )", PAGE, re.S | re.M)
    tables = re.findall(r"^\|.*\| test \|\n\| --- \| --- \| --- \|\n((?:\|.*\n)+)", section, re.M)
    rows = [line.strip("|").split("|") for table in tables for line in table.splitlines()]
    assert len(rows) == sum(".py::test_" in line for line in section.splitlines()) >= 60
    for row in rows:
        assert len(row) == 3, row
        (path, name) = re.fullmatch(r" `(tests/[\w/]+\.py)::(\w+)` ", row[2]).groups()  # type: ignore[union-attr]
        functions = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text()))
                     if isinstance(node, ast.FunctionDef)}  # fmt: skip
        assert name in functions, f"{path} has no {name}"


def test_the_figures_are_those_of_the_code() -> None:
    from robo_rl.deploy.robot.bundle import MAX_BYTES, onnx_file
    from robo_rl.deploy.robot.logs import recovery as log_recovery
    from robo_rl.files import sandbox as confined

    assert f"{onnx_file.MAX_NODES:,} nodes, {onnx_file.MAX_ELEMENTS >> 20} Mi elements" in PAGE
    assert f"{MAX_BYTES >> 20} MiB" in PAGE
    assert f"{confined.MEMORY >> 20} MB of memory" in PAGE
    assert f"{log_recovery.LARGEST_CHUNK >> 20} MiB at most" in PAGE
    assert f"{log_recovery.RATIO} times the file's size" in PAGE
