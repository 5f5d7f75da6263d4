"""robo-rl runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say


def main(
    folder: Annotated[Path, tyro.conf.Positional] = Path("runs"),
    task: str | None = None,
    state: str | None = None,
    json: bool = False,
) -> int:
    """List the runs in a folder, with the state and the success rate of each.

    With --json: runs, a list of run, task, robot, algorithm, seed, state (new, begun, done), success, policy_digest.

    Args:
        folder: Where to look; also three folders deep.
        task: Only runs of this task.
        state: Only runs in this state: new, begun or done.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.run_table import found

    rows = [row for row in found([folder]) if task in (None, row.run.task_name) and state in (None, row.state)]
    listed = [
        {
            "run": str(row.run.folder), "task": row.run.task_name, "robot": row.run.robot,
            "algorithm": row.run.algorithm, "seed": row.run.seed, "state": row.state,
            "success": (row.result or {}).get("success"), "policy_digest": (row.result or {}).get("policy_digest"),
        }
        for row in rows
    ]  # fmt: skip
    wide = max((len(str(one["run"])) for one in listed), default=0)
    for one in listed:
        success = one["success"]
        rate = f"{success:7.1%}" if isinstance(success, float) else ""
        say(f"{one['run']:<{wide}}  {one['algorithm']:<9}  seed {one['seed']:<4}  {one['state']:<5}  {rate}", json)
    give({"runs": listed}, json)
    return 0
