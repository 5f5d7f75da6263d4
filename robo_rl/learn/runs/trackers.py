"""Trained runs in a tracker of experiments: Weights & Biases, MLflow.

A run is published when it is done, from its files: settings, metrics, result, and the files that the tracker keeps.
Nothing of a training depends on a tracker. Its name there is its folder's, and its digest is among the settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from robo_rl.files.escaping import printable
from robo_rl.learn.runs.table import Row

FILES = ("run.json", "done.json", "policy.onnx", "report.html")
"""Of a run's folder: the policy file has the contract. Those that are there are attached."""
BATCH, MOST_PARAMETERS, LONGEST = 1000, 100, 500
"""MLflow's limits: metrics and parameters of one call, characters of a value (of its first releases)."""
DIGEST = "configuration_digest"


class PublishingError(ValueError):
    """A tracker did not take a run."""


def to_wandb(rows: Sequence[Row], project: str, group: str) -> int:
    """Publish runs in a project of Weights & Biases, where WANDB_MODE says; returns how many."""
    require_wandb()
    import wandb

    for row in rows:
        try:
            _publish(row, project, group)
        except wandb.errors.Error as error:
            why = printable(str(error).strip().partition("\n")[0])
            raise PublishingError(f"Weights & Biases refused {row.run.folder.name}: {why}") from None
    return len(rows)


def require_wandb() -> None:
    """ValueError where Weights & Biases is not installed."""
    try:
        import wandb  # noqa: F401
    except ModuleNotFoundError:
        raise ValueError("--wandb needs the package 'wandb': pip install 'robo-rl[track]'") from None


def _publish(row: Row, project: str, group: str) -> None:
    import wandb

    run = row.run
    told = wandb.init(
        project=project, group=group, name=run.folder.name, id=run.configuration_digest[:32], resume="allow",
        config=_settings(row), dir=run.folder.parent,
    )  # fmt: skip
    for line in run.metrics():
        told.log({name: value for name, value in line.items() if name != "update"}, step=int(line["update"]))
    told.summary.update(dict(_figures(row)))
    for file in _files(run.folder):
        told.save(str(file), base_path=str(run.folder), policy="now")
    told.finish()


def to_mlflow(rows: Sequence[Row], uri: str, group: str) -> int:
    """Publish runs that are not yet in an MLflow experiment, named after the group, at a tracking URI; how many."""
    try:
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient
    except ModuleNotFoundError:
        raise ValueError(
            "--mlflow needs the package 'mlflow' or 'mlflow-skinny': pip install 'robo-rl[track]'"
        ) from None
    client = MlflowClient(uri)
    known = client.get_experiment_by_name(group)
    experiment = known.experiment_id if known else client.create_experiment(group)
    published = 0
    for row in rows:
        run = row.run
        if client.search_runs([experiment], f"tags.{DIGEST} = '{run.configuration_digest}'", max_results=1):
            continue
        told = client.create_run(experiment, run_name=run.folder.name).info.run_id
        metrics = [
            Metric(name, float(value), 0, int(line["update"]))
            for line in run.metrics() for name, value in line.items() if name != "update"
        ]  # fmt: skip
        metrics += [Metric(f"result/{name}", value, 0, 0) for name, value in _figures(row)]
        for start in range(0, len(metrics), BATCH):
            client.log_batch(told, metrics=metrics[start : start + BATCH])
        parameters = [Param(name, str(value)[:LONGEST]) for name, value in _settings(row).items()]
        for start in range(0, len(parameters), MOST_PARAMETERS):
            client.log_batch(told, params=parameters[start : start + MOST_PARAMETERS])
        for file in _files(run.folder):
            client.log_artifact(told, str(file))
        tags = {DIGEST: run.configuration_digest, "policy_digest": str((row.result or {}).get("policy_digest"))}
        client.log_batch(told, tags=[RunTag(name, value) for name, value in tags.items()])  # last: it is whole
        client.set_terminated(told)
        published += 1
    return published


def _settings(row: Row) -> dict[str, Any]:
    told = {name: value for name, value in row.settings().items() if value is not None}
    digests = {DIGEST: row.run.configuration_digest, "policy_digest": (row.result or {}).get("policy_digest")}
    return {**told, "seed": row.run.seed, **digests}


def _figures(row: Row) -> Iterator[tuple[str, float]]:
    """Numbers of the result."""
    for name, value in (row.result or {}).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield name, float(value)


def _files(folder: Path) -> list[Path]:
    return [folder / name for name in FILES if (folder / name).is_file()]
