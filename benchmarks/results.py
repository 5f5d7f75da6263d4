"""Where the benchmarks put what they measured: one JSON file per claim in benchmarks/results/; command lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from robo_rl.evaluate.benchmark import machine

FOLDER = Path(__file__).parent / "results"


def write(name: str, figures: dict[str, Any]) -> None:
    """Keep ``figures``, with the machine that they are from."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps({**figures, "machine": machine()}, indent=2) + "\n")
    print(f"written to {path.relative_to(FOLDER.parent.parent)}")


def words(text: str, most: int = 0) -> list[str]:
    """The words of a script's command line. With --help ``text`` is printed instead; more than ``most`` are refused."""
    given = sys.argv[1:]
    if {"-h", "--help"} & set(given):
        print(text.strip())
        sys.exit(0)
    if len(given) > most or any(word.startswith("-") for word in given):
        sys.exit(f"{Path(sys.argv[0]).name}: {' '.join(given)}: expected at most {most} words, no options")
    return given


def last_json(process: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The object that a command with --json printed on its last line."""
    return json.loads(process.stdout.strip().splitlines()[-1])
