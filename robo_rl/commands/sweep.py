"""robo-rl sweep."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from robo_rl.console import Progress, give, say
from robo_rl.escaping import shell_word

ATTEMPTS = 4
"""Of a job whose process, or whose computer, was killed."""


def main(
    file: Annotated[Path, tyro.conf.Positional],
    engine: Literal["local", "ray", "slurm"] = "local",
    out: Path | None = None,
    slots: int | None = None,
    address: str = "local",
    json: bool = False,
) -> int:
    """Train many policies that one file describes: tasks, robots, seeds and settings.

    Every job is an ordinary run in the sweep's folder. Ctrl-C saves and stops; the same command goes on, also after a
    crash. With --json: sweep, jobs, done, failed (names of runs).

    Args:
        file: What to train (*.toml), see docs/scale.md.
        engine: local: processes of this computer. ray: a Ray cluster. slurm: a SLURM array job.
        out: The sweep's folder; default: runs/ and the file's name.
        slots: Jobs at once; default: one for each core of this computer, of slurm 1000.
        address: Of an existing Ray cluster; local: one on this computer, for this sweep.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.sweep import create, done, plan

    jobs = plan(file)
    folder = out or Path("runs") / file.stem
    create(folder, jobs)
    slots = slots or (1000 if engine == "slurm" else len(os.sched_getaffinity(0)))
    if slots < 1:
        raise ValueError(f"--slots is {slots}; expected 1 or more")
    refused: set[int] = set()

    def left() -> list[int]:
        return [i for i, job in enumerate(jobs) if i not in refused and not done(folder, job)]

    say(f"{len(jobs)} jobs in {folder}, {len(jobs) - len(left())} of them done", json)
    with Progress("sweep", len(jobs)) as progress:
        for _ in range(ATTEMPTS):
            if not left():
                break
            for index, code in _engine(engine, address)(folder, left(), slots):
                if code in (1, 2):  # it was refused, and would be again
                    refused.add(index)
                ready = len(jobs) - len(left()) - len(refused)
                progress.update(ready, f"done, {len(refused)} failed")
    failed = [jobs[index].name for index in sorted(refused | set(left()))]
    for index in sorted(refused | set(left())):
        say(f"{jobs[index].name} failed: see {folder / 'logs' / f'{index}.log'}", json)
    if not failed:
        say(f"All {len(jobs)} are done. Next:  robo-rl compare {shell_word(folder)}", json)
    result: dict[str, Any] = {"sweep": str(folder), "jobs": len(jobs), "done": len(jobs) - len(failed)}
    give({**result, "failed": failed}, json)
    return 1 if failed else 0


def _engine(name: str, address: str) -> Any:
    from robo_rl.engines import local, slurm

    if name == "ray":
        from robo_rl.engines import ray

        def run(folder: Path, indices: Sequence[int], slots: int) -> Iterator[tuple[int, int]]:
            return ray.run(folder, indices, slots, address)

        return run
    return {"local": local.run, "slurm": slurm.run}[name]
