"""robo-rl report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say


def main(
    targets: Annotated[tuple[str, ...], tyro.conf.Positional],
    out: Path | None = None,
    episodes: int = 1000,
    seed: int = 0,
    robot: str | None = None,
    json: bool = False,
) -> int:
    """Make one page about a policy: plots, tables, a film, and the commands that repeat every number.

    The page is a single HTML file that needs nothing else. With --json: file, bytes, and for the first target what
    'evaluate' gives and decision (AdaStop against the geometric controller: larger means nearer to the set-point);
    targets (the same for each), geometric, and figure_eight_policy_rms_m and figure_eight_geometric_rms_m where
    the task has a figure-eight.

    Args:
        targets: Folders of runs or .onnx files, of one task; plots show the first one.
        out: The page; by default report.html in the folder of the first target.
        episodes: Number of flights.
        seed: Of the flights.
        robot: The card of a robot that doesn't come with robo-rl.
        json: Print one JSON object on the last line of stdout.
    """
    if not targets:
        raise ValueError("report needs the folder of a run or an .onnx file")
    from deploy.report import gather, write

    first = Path(targets[0])
    out = out or (first if first.is_dir() else first.parent) / "report.html"
    findings = gather(targets, episodes, seed, robot)
    size = write(findings, out)
    say(f"{out}: {size:,} bytes. Open it in a browser", json)
    give({"file": str(out), "bytes": size, **findings.figures()}, json)
    return 0
