"""The commands of docs/plans.md, as the page has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/plans.md"


def words(command: str) -> list[str]:
    return [sys.executable, "-P", "-m", "robo_rl", *command.split()[1:]]


@pytest.mark.slow
@pytest.mark.release
def test_the_page_s_commands_place_through_an_emulated_server(tmp_path: Path) -> None:
    """Export, verify, serve, run, and replay without the server. The port is a free one."""
    lines = re.findall(r"^\$ (robo-rl [^#\n]*)", PAGE.read_text(), re.M)
    export, verify, emulate, run, replay = (line.strip() for line in lines)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def done(command: str, most: int = 0) -> dict:
        told = subprocess.run(
            [*words(command), "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600,
            check=False,
        )  # fmt: skip
        assert told.returncode <= most, told.stdout + told.stderr
        return json.loads(told.stdout.splitlines()[-1])

    assert done(export)["task"] == "arm-place-plans"
    assert done(verify)["passed"]
    with subprocess.Popen(
        [*words(emulate.replace("8000", "0"))], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = next(re.findall(r"ws://\S+[0-9]", line)[0] for line in server.stdout if "ws://" in line)
            found = done(run.replace("ws://127.0.0.1:8000", url), most=1)  # a busy computer is a fault of the gate's
        finally:
            server.terminate()
    assert found["plans"]["plans"] > 0
    (log,) = (tmp_path / "sessions").glob("*.mcap")
    again = done(replay.replace("sessions/*.mcap", str(log)))
    assert again["compared"] > 0
    assert again["policy"] is None
    assert again["gate"] is None
