"""robo-rl sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from robo_rl.console import Progress, give, say
from robo_rl.files.escaping import shell_word

if TYPE_CHECKING:
    from robo_rl.sweeps.rounds import Outcome, Round

Engine = Callable[[Path, Sequence[int], int], Iterator[tuple[int, int]]]
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
    crash. The file may also ask for a search of settings, population-based training, or a sequential test that ends
    the sweep. With --json: sweep, jobs, done, failed (names of runs), and best, trials, generations or decisions.

    Args:
        file: What to train (*.toml), see docs/scale.md.
        engine: local: processes of this computer. ray: a Ray cluster. slurm: a SLURM array job.
        out: The sweep's folder; default: runs/ and the file's name.
        slots: Jobs at once; default: one for each core of this computer, of slurm 1000.
        address: Of an existing Ray cluster; local: one on this computer, for this sweep.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.sweeps.rounds import rounds
    from robo_rl.sweeps.sweep_file import read_description

    folder = out or Path("runs") / file.stem
    from robo_rl.files import cores

    slots = slots or (1000 if engine == "slurm" else cores.available())
    if slots < 1:
        raise ValueError(f"--slots is {slots}; expected 1 or more")
    most, parts = rounds(read_description(file), folder)
    done, failed = 0, list[str]()
    with Progress("sweep", most) as progress:
        while True:
            try:
                part = next(parts)
            except StopIteration as end:
                outcome: Outcome = end.value
                break
            refused = _train(part, _engine(engine, address), slots, progress, done, len(failed))
            done += len(part.indices) - len(refused)
            failed += [part.jobs[index].name for index in refused]
            for index in refused:
                say(f"{part.jobs[index].name} failed: see {part.folder / 'logs' / f'{index}.log'}", json)
    for line in outcome.lines:
        say(line, json)
    if not failed:
        say(f"All {done} are done. Next:  robo-rl compare {shell_word(folder)}", json)
    give({"sweep": str(folder), "jobs": done + len(failed), "done": done, "failed": failed, **outcome.found}, json)
    return 1 if failed else 0


def _train(part: Round, engine: Engine, slots: int, progress: Progress, before: int, failed: int) -> list[int]:
    """Do the jobs of a round; returns those that failed."""
    from robo_rl.sweeps.sweep import done

    refused: set[int] = set()

    def left() -> list[int]:
        return [i for i in part.indices if i not in refused and not done(part.folder, part.jobs[i])]

    for _ in range(ATTEMPTS):
        if not left():
            break
        for index, code in engine(part.folder, left(), slots):
            if code in (1, 2):  # it was refused, and would be again
                refused.add(index)
            ready = before + len(part.indices) - len(left()) - len(refused)
            progress.update(ready, f"done, {failed + len(refused)} failed")
    return sorted(refused | set(left()))


def _engine(name: str, address: str) -> Engine:
    from robo_rl.learn.distributed.engines import local, slurm
    from robo_rl.sweeps.sweep import done, read

    if name == "ray":
        from robo_rl.learn.distributed.engines import ray

        def run(folder: Path, indices: Sequence[int], slots: int) -> Iterator[tuple[int, int]]:
            return ray.run(folder, indices, slots, address)

        return run
    if name == "slurm":

        def submit(folder: Path, indices: Sequence[int], slots: int) -> Iterator[tuple[int, int]]:
            jobs = read(folder)
            return slurm.run(folder, indices, slots, lambda index: done(folder, jobs[index]))

        return submit
    return local.run
