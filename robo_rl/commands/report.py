"""robo-rl report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say
from robo_rl.zoo import PREFIX


def main(
    targets: Annotated[tuple[str, ...], tyro.conf.Positional],
    out: Path | None = None,
    episodes: int = 1000,
    seed: int = 0,
    robot: str | None = None,
    task: str | None = None,
    transfer: Path | None = None,
    json: bool = False,
) -> int:
    """Make one page about a policy: plots, tables, a film, and the commands that repeat every number.

    The page is a single HTML file that needs nothing else. With --json: file, bytes, and for the first target what
    'evaluate' gives and decision (AdaStop against the geometric controller: larger means nearer to the set-point);
    targets (the same for each), geometric, and figure_eight_policy_rms_m and figure_eight_geometric_rms_m where
    the task has a figure-eight. Of a robot on legs: what 'evaluate' gives and targets; with --transfer also engines
    and least_kept, as 'transfer' gives them; on rough ground crossings, as 'evaluate --ground' gives them.

    Args:
        targets: Folders of runs or .onnx files, of one task; plots show the first one.
        out: The page; by default report.html in the folder of the first target.
        episodes: Number of flights.
        seed: Of the flights.
        robot: The card of a robot that doesn't come with robo-rl.
        task: Where the task is, if it is from a file of your own: FILE.py:CLASS.
        transfer: Of a robot on legs: a file with what 'robo-rl transfer --json' printed; the page shows it.
        json: Print one JSON object on the last line of stdout.
    """
    if not targets:
        raise ValueError("report needs the folder of a run or an .onnx file")
    from robo_rl.loading import load
    from sim.robots.legged import LeggedCard

    first = Path(targets[0])
    out = (
        out or (first if first.is_dir() else Path() if targets[0].startswith(PREFIX) else first.parent) / "report.html"
    )
    if isinstance(load(targets[0], task, robot).task.spec.robot, LeggedCard):
        from robo_rl.report import legged as walking_report

        walked = walking_report.gather(targets, episodes, seed, robot, transfer, task)
        size, figures = walking_report.write(walked, out), walked.figures()
    elif transfer is not None:
        raise ValueError("--transfer is for robots on legs; 'robo-rl transfer' reports on multirotors by itself")
    else:
        from robo_rl.report import multirotor as report

        findings = report.gather(targets, episodes, seed, robot, task)
        size, figures = report.write(findings, out), findings.figures()
    say(f"{out}: {size:,} bytes. Open it in a browser", json)
    give({"file": str(out), "bytes": size, **figures}, json)
    return 0
