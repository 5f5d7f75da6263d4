"""Search for settings with Optuna (Akiba et al. 2019): its tree-structured Parzen estimator chooses, batch by batch.

    [search]
    trials = 32
    batch = 8                # chosen and trained together, whatever the number of processes
    measure = "success"      # of 'robo-rl evaluate --json', the mean over tasks, robots and seeds
    lower_is_better = false
    prune = 0.5              # end trainings below this quantile of earlier ones; 0 (default) for none
    seed = 0

Pruning is the median rule of Golovin et al. 2017 (Google Vizier, section 3.2): a training whose reward, at a quarter or
at half of its updates, is below that of so many of the trials of earlier batches that were not ended, ends there. As
earlier batches are whole, this level is known before the training begins, and is one of its options.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.learn.runs.folder import HELD_OUT, Run
from robo_rl.sweeps import space
from robo_rl.sweeps.rounds import Outcome, Rounds, new_round
from robo_rl.sweeps.sweep import Job, done
from robo_rl.sweeps.sweep_file import MOST_JOBS, Description, Measured, require

MOMENTS = (0.25, 0.5)
"""Parts of the updates at which a training may be ended."""
WORST = -1e30
"""In place of a reward that is none: of a training that diverged."""
Curve = dict[int, float]
"""Reward by update, at the moments."""


def plan(description: Description, folder: Path) -> tuple[int, Rounds]:
    """How many jobs there are at most, and their rounds: the batches."""
    table = "search"
    description.only(table, "trials", "batch", "measure", "lower_is_better", "prune", "seed")
    each = len(description.tasks) * len(description.robots) * len(description.seeds)
    trials = description.count(table, "trials", 32, 1, MOST_JOBS // each)
    batch = description.count(table, "batch", 8, 1, MOST_JOBS)
    prune = description.number(table, "prune", 0.0, 0.0, 1.0)
    seed = description.count(table, "seed", 0, 0, HELD_OUT - 1)
    known = space.read_space(description)
    longer = [name for name in known if name.endswith(".updates")]
    require(not (prune and longer), description.file, "space", longer, "the same updates for all, or prune = 0")
    require(not prune or len(description.tasks) == 1, description.file, "task", description.tasks, "one to prune")
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError:
        raise ValueError("a search needs the package 'optuna': pip install 'robo-rl[scale]'") from None
    return trials * each, _batches(description, folder, known, trials, batch, prune, seed, description.measure(table))


def _batches(
    description: Description, folder: Path, known: space.Space, trials: int, batch: int, prune: float, seed: int,
    measure: Measured,
) -> Rounds:  # fmt: skip
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True, n_startup_trials=min(10, batch))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    curves: list[Curve] = []
    found: list[dict[str, Any]] = []
    for number, start in enumerate(range(0, trials, batch)):
        asked = [study.ask() for _ in range(start, min(trials, start + batch))]
        chosen = [{name: _suggested(trial, name, x) for name, x in known.items()} for trial in asked]
        floors = {"stop-below": _floors(curves, prune)} if prune and curves else {}
        jobs = [description.jobs([space.words(description, settings) | floors]) for settings in chosen]
        part = new_round(folder / f"batch-{number}", [job for one in jobs for job in one])
        yield part
        new = []
        for trial, settings, one in zip(asked, chosen, jobs, strict=True):
            told = _told(part.folder, one, measure)
            found.append({"settings": settings, "runs": [str(part.folder / job.name) for job in one], **told})
            if told["state"] == "complete" and prune:
                new += [_curve(Run.open(part.folder / job.name)) for job in one]
            value = told[measure.name]
            if told["state"] == "complete" and value is not None:
                study.tell(trial, -value if measure.lower_is_better else value)
            elif told["state"] == "pruned":  # reported, so that the sampler knows where not to look again
                trial.report(*_last(part.folder, one))
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
        curves += new
    return _outcome(found, measure)


def _told(folder: Path, jobs: list[Job], measure: Measured) -> dict[str, Any]:
    """State and figure of a trial: complete, pruned, or failed where a training was refused."""
    if not all(done(folder, job) for job in jobs):
        return {"state": "failed", measure.name: None}
    stopped = any("stopped_at" in (Run.open(folder / job.name).done() or {}) for job in jobs)
    score = float(np.mean([measure.score(folder, job) for job in jobs]))
    return {"state": "pruned" if stopped else "complete", measure.name: measure.value(score)}


def _outcome(found: list[dict[str, Any]], measure: Measured) -> Outcome:
    counts = {state: sum(one["state"] == state for one in found) for state in ("complete", "pruned", "failed")}
    whole = [one for one in found if one["state"] == "complete" and one[measure.name] is not None]
    sign = -1.0 if measure.lower_is_better else 1.0
    best = max(whole, key=lambda one: sign * one[measure.name]) if whole else None
    lines = [f"{len(found)} trials: {', '.join(f'{count} {state}' for state, count in counts.items() if count)}"]
    if best is not None:
        lines.append(f"The best: {measure.name} {best[measure.name]:.4g} with {best['settings']}, in {best['runs'][0]}")
    return Outcome(lines, {"best": best, "trials": found})


def _suggested(trial: Any, name: str, dimension: space.Range | space.Choice) -> Any:
    if isinstance(dimension, space.Choice):
        return dimension.values[trial.suggest_categorical(name, list(range(len(dimension.values))))]
    if dimension.whole:
        return trial.suggest_int(name, int(dimension.low), int(dimension.high), log=dimension.log)
    return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)


def _curve(run: Run) -> Curve:
    """The rewards that were reported next to the moments of a training."""
    lines = run.metrics()
    last = lines[-1]["update"]
    wanted = [min(lines, key=lambda line: abs(line["update"] - part * last)) for part in MOMENTS]
    return {int(line["update"]): float(line["reward"]) for line in wanted if line["update"] < last}


def _last(folder: Path, jobs: list[Job]) -> tuple[float, int]:
    """Reward and update at which a trial's first training that was ended was."""
    lines = [Run.open(folder / job.name).metrics()[-1] for job in jobs]
    first = min(lines, key=lambda line: line["update"])
    reward = float(first["reward"])
    return (reward if math.isfinite(reward) else WORST), int(first["update"])


def _floors(curves: list[Curve], quantile: float) -> list[str]:
    """Words of ``train --stop-below``."""
    floors = {
        update: float(np.quantile([one[update] for one in curves if update in one], quantile)) for update in curves[0]
    }
    return [f"{update}:{floor!r}" for update, floor in floors.items() if math.isfinite(floor)]
