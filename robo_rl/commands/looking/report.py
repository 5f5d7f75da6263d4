"""robo-rl report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, require_place, say
from robo_rl.zoo import PREFIX


def main(
    targets: Annotated[tuple[str, ...], tyro.conf.Positional],
    out: Path | None = None,
    episodes: int = 1000,
    seed: int = 0,
    robot: str | None = None,
    task: str | None = None,
    transfer: Path | None = None,
    plain: bool = False,
    json: bool = False,
) -> int:
    """Write an HTML report of a policy: plots, tables, a video, and the commands that reproduce every number.

    The report is a single self-contained HTML file. With --json: file, bytes, and for the first target what
    'evaluate' gives; targets (the same for each); where the task has a classical controller, decision of each (AdaStop
    against the controller: larger means a smaller error) and classical, what 'evaluate' gives of it; with --transfer
    engines and least_kept, as 'transfer' gives them. Kinds of robots add their own: figure_eight_policy_rms_m and
    figure_eight_geometric_rms_m where the task has a figure-eight; on rough ground crossings, as 'evaluate --ground'
    gives them.

    Args:
        targets: Folders of runs or .onnx files, of one task; plots show the first one.
        out: The page; by default report.html in the folder of the first target.
        episodes: Number of episodes.
        seed: Random seed of the episodes.
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        task: The task, if it is defined in your own file: FILE.py:CLASS; 'inside': the one that the file brings.
        transfer: A file with the output of 'robo-rl transfer --json' for the first target, to show on the page.
        plain: A page without scripts, 1.3 MB smaller: its plots are drawings alone.
        json: Print one JSON object on the last line of stdout.
    """
    if not targets:
        raise ValueError("report needs the folder of a run or an .onnx file")
    import torch

    from robo_rl.report.general import figures_of, gather, sections_of, write

    torch.set_num_threads(1)  # of a thousand robots' small operations; a second thread waits longer than it computes
    first = Path(targets[0])
    folder = first if first.is_dir() else Path() if targets[0].startswith(PREFIX) else first.parent
    out = out or folder / "report.html"
    require_place(out, "--out", ".html")
    findings = gather(targets, episodes, seed, robot, task, transfer)
    sections = sections_of(findings)
    size = write(findings, sections, out, plain)
    say(f"{out}: {size:,} bytes. Open it in a browser", json)
    give({"file": str(out), "bytes": size, **figures_of(findings, sections)}, json)
    return 0
