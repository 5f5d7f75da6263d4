"""Fuzz what reads other people's files and messages: the readers of contracts, graphs and logs; the C, with sanitizers.

    apt-get install clang libclang-rt-dev && pip install -e '.[dev]'
    python benchmarks/fuzz.py --minutes 60

Of the C of two bundles of the zoo: link, gates, policies in three precisions, devices. The time is that of the
processor, and divided among the targets. A finding ends the run with what the target said; its input is kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tyro
from results import write

from robo_rl.deploy.build import fuzz_readers
from robo_rl.deploy.build.c.fuzzing import Finding, Fuzzed, build, run
from robo_rl.deploy.build.c.generate import Options
from robo_rl.deploy.robot.bundle import Bundle
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
"""What of the C, of which policy, in which precision."""


@dataclass
class Arguments:
    """What the command line says."""

    minutes: float = 60.0
    """Of the processor's time, all targets together."""


def targets(folder: Path) -> dict[str, Callable[[], Fuzzed]]:
    """What feeds each target for a turn, by name."""
    made: dict[str, Callable[[], Fuzzed]] = {}
    for what in fuzz_readers.TARGETS:
        made[f"reader of {what}s"] = partial(fuzz_readers.run, what, folder / what, SLICE)
    for k, (what, policy, precision) in enumerate(TARGETS):
        options = Options(precision=precision, tolerance=1.0)
        program = build(what, Bundle.read(located(f"zoo:{policy}")), folder / str(k), options)
        made[f"{what} {policy} {precision}"] = partial(run, program, SLICE)
    return made


def main(arguments: Arguments) -> None:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    feeds = targets(folder)
    rows = {name: Fuzzed(0, 0.0) for name in feeds}
    while min(row.cpu_seconds for row in rows.values()) < arguments.minutes * 60 / len(rows):
        name = min(rows, key=lambda name: rows[name].cpu_seconds)
        try:
            fuzzed = feeds[name]()
        except Finding as finding:
            raise SystemExit(f"{name}: {finding}\ninputs are in {folder}") from None
        rows[name] = Fuzzed(rows[name].inputs + fuzzed.inputs, rows[name].cpu_seconds + fuzzed.cpu_seconds)
        print(f"{name:<36}{rows[name].inputs:>12,} inputs{rows[name].cpu_seconds:>8.0f} s", flush=True)
    total = sum(row.cpu_seconds for row in rows.values()) / 60
    print(f"{sum(row.inputs for row in rows.values()):,} inputs in {total:.1f} minutes of the processor, no finding")
    figures = [
        {"target": name, "inputs": row.inputs, "cpu_seconds": round(row.cpu_seconds)} for name, row in rows.items()
    ]
    write("fuzz", {"rows": figures, "findings": 0})


if __name__ == "__main__":
    main(tyro.cli(Arguments))
