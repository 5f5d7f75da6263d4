"""Fuzz the C of two bundles of the zoo with sanitizers: link, gates, policies in three precisions, devices.

    apt-get install clang libclang-rt-dev
    python benchmarks/fuzz.py --minutes 60

The time is that of the processor, and divided among the targets. A finding ends the run with the input's file.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import tyro
from results import write

from deploy.bundle import Bundle
from deploy.c.fuzzing import build, run
from deploy.c.generate import Options
from robo_rl.zoo import located

SLICE = 60
"""s of wall clock: a target's turn."""
TARGETS = [
    ("link", "quadrotor-hover", "float32"),
    ("gate", "quadrotor-hover", "float32"),
    ("gate", "quadrotor-track", "float32"),
    ("policy", "quadrotor-hover", "float32"),
    ("policy", "quadrotor-hover", "int16"),
    ("policy", "quadrotor-hover", "int8"),
    ("device", "quadrotor-hover", "float32"),
    ("device", "quadrotor-track", "int16"),
]
"""What, of which policy, in which precision."""


@dataclass
class Arguments:
    """What the command line says."""

    minutes: float = 60.0
    """Of the processor's time, all targets together."""


def main(arguments: Arguments) -> None:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    programs, rows = [], []
    for k, (what, policy, precision) in enumerate(TARGETS):
        options = Options(precision=precision, tolerance=1.0)
        programs.append(build(what, Bundle.read(located(f"zoo:{policy}")), folder / str(k), options))
        rows.append({"target": what, "policy": policy, "precision": precision, "inputs": 0, "cpu_seconds": 0.0})
    while min(row["cpu_seconds"] for row in rows) < arguments.minutes * 60 / len(rows):
        k = min(range(len(rows)), key=lambda k: rows[k]["cpu_seconds"])
        fuzzed = run(programs[k], SLICE)
        rows[k]["inputs"] += fuzzed.inputs
        rows[k]["cpu_seconds"] += fuzzed.cpu_seconds
        name = " ".join(rows[k][key] for key in ("target", "policy", "precision"))
        print(f"{name:<36}{rows[k]['inputs']:>12,} inputs{rows[k]['cpu_seconds']:>8.0f} s", flush=True)
    total = sum(row["cpu_seconds"] for row in rows) / 60
    print(f"{sum(row['inputs'] for row in rows):,} inputs in {total:.1f} minutes of the processor, no finding")
    write("fuzz", {"rows": rows, "findings": 0})


if __name__ == "__main__":
    main(tyro.cli(Arguments))
