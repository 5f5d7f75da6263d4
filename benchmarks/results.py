"""Where the benchmarks put what they measured: one JSON file per claim in benchmarks/results/."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from robo_rl.benchmark import machine

FOLDER = Path(__file__).parent / "results"


def write(name: str, figures: dict[str, Any]) -> None:
    """Keep ``figures``, with the machine that they are from."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps({**figures, "machine": machine()}, indent=2) + "\n")
    print(f"written to {path.relative_to(FOLDER.parent.parent)}")


def last_json(process: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The object that a command with --json printed on its last line."""
    return json.loads(process.stdout.strip().splitlines()[-1])
