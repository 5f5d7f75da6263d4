"""The runs in folders: found, told apart by their settings, and grouped for comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from robo_rl.files import is_held
from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.folder import Run, RunError

DIGITS = 12
"""Of a digest, that tell things apart."""
DEEPEST = 3
"""Folders between the one that is looked in and a run's."""
State = Literal["done", "running", "stopped", "new"]
"""Of a run: finished; in training now; ended before its last update, with a checkpoint to resume from; without one."""
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True)
class Row:
    """A run, and what came of it."""

    run: Run
    result: dict[str, Any] | None
    """What done.json holds; None while the training goes on or is interrupted."""

    @property
    def state(self) -> State:
        if self.result is not None:
            return "done"
        if is_held(self.run.folder):
            return "running"
        return "stopped" if self.run.checkpoint_file.is_file() else "new"

    @property
    def update(self) -> int | None:
        """The update of the newest checkpoint of a run that is stopped, else None. CheckpointError if it is damaged."""
        if self.state != "stopped":
            return None
        file = self.run.checkpoint_file
        return checkpoint.require_count(file, checkpoint.load(file)[1], "done")

    def settings(self) -> dict[str, Any]:
        """All that a run is told, but the seed."""
        run = self.run
        told = {"task": run.task_name, "robot": run.robot, "algorithm": run.algorithm, "plant": run.plant}
        more = {"begun_from": run.begun_from and run.begun_from[:DIGITS], "source_digest": run.source_digest[:DIGITS]}
        return told | more | run.hyperparameters | {f"ranges.{name}": tuple(b) for name, b in run.ranges.items()}


def found(paths: Iterable[Path], refused: list[str] | None = None) -> list[Row]:
    """The runs in folders, or below them, in the order of their names. RunError if a path has none, or one is damaged.

    With ``refused``, damaged ones are left out, and it gets a sentence on each.
    """
    rows = []
    for path in paths:
        folders = [path] if (path / "run.json").is_file() else sorted(_below(path, DEEPEST))
        if not folders:
            raise RunError(f"{path}: no run in it; expected the folder of a run, of several, or of a sweep")
        for folder in folders:
            try:
                run = Run.open(folder)
                rows.append(Row(run, run.done()))
            except RunError as error:
                if refused is None:
                    raise
                refused.append(str(error))
    return rows


def _below(folder: Path, deepest: int) -> list[Path]:
    if not folder.is_dir() or deepest < 0:
        return []
    if (folder / "run.json").is_file():
        return [folder]
    return [path for inner in folder.iterdir() if inner.is_dir() for path in _below(inner, deepest - 1)]


def groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows that differ in nothing but the seed, by a label of what tells the groups apart, in order of appearance."""
    kept: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        kept.setdefault(tuple((k, str(v)) for k, v in row.settings().items() if v is not None), []).append(row)
    each = [dict(key) for key in kept]
    names = list(dict.fromkeys(name for one in each for name in one))
    telling = [name for name in names if len({one.get(name) for one in each}) > 1]
    for shown in (_shortened, str):
        told = [", ".join(f"{name} {shown(one[name])}" for name in telling if name in one) for one in each]
        labels = [label or each[0]["task"] for label in told]
        if len(set(labels)) == len(labels):
            break
    return dict(zip(labels, kept.values(), strict=True))


def _shortened(text: str) -> str:
    """A number with four digits; other texts as they are."""
    try:
        return f"{float(text):.4g}" if "." in text else text
    except ValueError:
        return text


def require_same_numerics(rows: Sequence[Row]) -> None:
    """RunError unless all were trained with the same versions and the same class of arithmetic."""
    first: dict[str, Any] | None = None
    for row in rows:
        versions = (row.result or {}).get("versions", {})
        first = versions if first is None else first
        if differs := sorted(k for k in {*versions, *first} if versions.get(k) != first.get(k)):
            said = "; ".join(f"{k}: {first.get(k)} and {versions.get(k)}" for k in differs)
            raise RunError(
                f"{rows[0].run.folder} and {row.run.folder} were trained with different versions ({said}); expected "
                "the same, or --mixed, for differences that are larger than those of the computers"
            )
