"""robo-rl runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from robo_rl.console import give, say
from robo_rl.files.escaping import shell_word

FIGURES = ("success", "policy_digest", "steps_per_second", "simulation_steps_per_second")
"""Of done.json; null where there is none."""


def main(
    folder: Annotated[Path, tyro.conf.Positional] = Path("runs"),
    task: str | None = None,
    state: Literal["done", "running", "stopped", "new"] | None = None,
    page: Path | None = None,
    measure: str = "success",
    lower_is_better: bool = False,
    wandb: str | None = None,
    mlflow: str | None = None,
    json: bool = False,
) -> int:
    """List the runs in a folder, with the state and the success rate of each.

    Columns: update is where a stopped run goes on, of how many; success is the part of the held-out episodes that
    succeed, or that do not fail where a task knows no success; "simulated" and "trained" are thousands of
    control steps per second, of simulation alone and with learning.

    A run is done, running, stopped (ended before its last update; 'robo-rl resume' goes on), or new (stopped before its
    first checkpoint). What can't be read is told below the list, which is of the rest; exits with 1 then. With --json:
    refused, a list of sentences on that, and runs, a list of run, task, robot, algorithm, seed, state, update (that a
    stopped run goes on from), updates (in all), success, policy_digest, steps_per_second, simulation_steps_per_second.

    Args:
        folder: Where to look; also three folders deep.
        task: Only runs of this task.
        state: Only runs in this state.
        page: Write a page of the runs, with comparisons, learning curves and the state of each (*.html).
        measure: What the page compares: a figure of 'evaluate --json', such as position_error_mean_m.
        lower_is_better: Of errors: the smaller is the better one.
        wandb: Publish the runs that are done in this project of Weights & Biases, as one group.
        mlflow: Publish the runs that are done, and are not yet there, at this tracking URI of MLflow.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.console import require_place
    from robo_rl.learn.runs.checkpoint import CheckpointError
    from robo_rl.learn.runs.table import Row, found

    require_place(page, "--page", ".html")

    refused: list[str] = []

    def update_of(row: Row) -> int | None:
        try:
            return row.update
        except CheckpointError as error:
            refused.append(str(error))
            return None

    states = [(row, row.state) for row in found([folder], refused) if task in (None, row.run.task_name)]
    rows = [row for row, now in states if state in (None, now)]
    listed = [
        {
            "run": str(row.run.folder), "task": row.run.task_name, "robot": row.run.robot,
            "algorithm": row.run.algorithm, "seed": row.run.seed, "state": now,
            "update": update_of(row), "updates": row.run.hyperparameters.get("updates"),
            **{name: (row.result or {}).get(name) for name in FIGURES},
        }
        for row, now in states
        if state in (None, now)
    ]  # fmt: skip
    wide = max((len(str(one["run"])) for one in listed), default=0)
    if listed:
        titles = f"{'run':<{wide}}  {'algorithm':<9}  {'seed':<9}  {'state':<7}  {'update':<9}  {'success':<7}"
        say(f"{titles}  {'simulated':>12}  {'trained':>12}", json)
    for one in listed:
        success = one["success"]
        at = f"{one['update']}/{one['updates']}" if one["update"] is not None else ""
        rate = f"{success:7.1%}" if isinstance(success, float) else ""
        sps = "  ".join(thousands(one[name]) for name in ("simulation_steps_per_second", "steps_per_second"))
        line = f"{one['run']:<{wide}}  {one['algorithm']:<9}  seed {one['seed']:<4}  {one['state']:<7}  {at:<9}"
        line += f"  {rate:<7}  {sps}"
        say(line.rstrip(), json)
    stopped = [one["run"] for one in listed if one["state"] == "stopped"]
    if stopped:
        say(f"To continue a run that is stopped:  robo-rl resume {shell_word(str(stopped[0]))}", json)
    if page is not None:
        from robo_rl.report.groups import write_page

        if not rows:
            raise ValueError(f"{folder}: no run of these; expected one or more for --page")
        refused += write_page(page, f"{folder.resolve().name}: {len(rows)} runs", rows, measure, lower_is_better)
        say(f"Written: {page}", json)
    done = [row for row in rows if row.result is not None]
    group = folder.resolve().name
    if wandb is not None:
        from robo_rl.learn.runs.trackers import to_wandb

        say(f"Published in {wandb}: {to_wandb(done, wandb, group)} runs", json)
    if mlflow is not None:
        from robo_rl.learn.runs.trackers import to_mlflow

        say(f"Published at {mlflow}: {to_mlflow(done, mlflow, group)} runs", json)
    for sentence in refused:
        say(f"REFUSED: {sentence}", json)
    give({"runs": listed, "refused": refused}, json)
    return 1 if refused else 0


def thousands(rate: object) -> str:
    """Control steps per second in thousands; blank where they are not known."""
    return f"{rate / 1000:8.1f} k/s" if isinstance(rate, float) else " " * 12
