"""Evaluation over a grid of conditions, on several processes: the totals are the same for any number of them.

What an episode draws follows from the seed and the episode's number alone. Cells of the grid have numbers of their own,
so no two episodes are alike, and work is cut into the same parts however many processes there are.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from robo_rl.console import Progress
from robo_rl.evaluate.evaluation import BATCH, Conditions, Episodes, rollout
from robo_rl.evaluate.proportion import wilson
from robo_rl.files import cores
from robo_rl.files.interpreter import safe_path
from robo_rl.policies.loading import Loaded, load
from robo_rl.sim.accelerate.fuse.random import LIMIT
from robo_rl.sim.tasks import Measure

MOST_CELLS = 10_000


@dataclass(frozen=True)
class Target:
    """What a process loads: the words of the command line."""

    target: str
    task: str | None = None
    robot: str | None = None
    seed: int = 0
    seconds: float | None = None
    fixed: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Cell:
    """Part of a cell's episodes, or all of them."""

    survived: int
    success: int
    duration: float
    """s, of all together."""
    errors: dict[str, float]
    """By measure, of the episodes that survived: the sum, of root mean squares that of the squares."""
    episodes: int

    def __add__(self, other: Cell) -> Cell:
        errors = {name: value + other.errors[name] for name, value in self.errors.items()}
        return Cell(
            self.survived + other.survived,
            self.success + other.success,
            self.duration + other.duration,
            errors,
            self.episodes + other.episodes,
        )


def axis(name: str, text: str) -> list[float]:
    """``low:high:count``, or ``value,value,…``. ValueError says what was expected."""
    try:
        if ":" in text:
            low, high, count = text.split(":")
            ends = (float(low), float(high))
            values = np.linspace(ends[0], ends[1], int(count)).tolist() if np.isfinite(ends).all() else []
        else:
            values = [float(value) for value in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"--grid {name} is {text!r}; expected LOW:HIGH:COUNT, as in 0.8:1.2:9, or VALUE,VALUE,…")
    return values


def evaluate(target: Target, axes: Mapping[str, list[float]], episodes: int, workers: int) -> list[Cell]:
    """``episodes`` in all, as many in each cell; cells in the order of ``itertools.product`` of the axes."""
    cells = math.prod(map(len, axes.values()))
    each = -(-episodes // cells)
    if cells > MOST_CELLS or cells * each > LIMIT:
        raise ValueError(
            f"--grid has {cells} cells of {each} episodes; expected at most {MOST_CELLS}, and {LIMIT} episodes"
        )
    values = [dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*axes.values())]
    parts = [(k, start, min(BATCH, each - start)) for k in range(cells) for start in range(0, each, BATCH)]
    arguments = [(target, values[k], k * each + start, count) for k, start, count in parts]
    results: dict[int, Cell] = {}
    with Progress("evaluating", cells * each) as progress:
        for number, cell in _evaluated(arguments, workers):
            results[number] = cell
            progress.update(sum(cell.episodes for cell in results.values()))
    found: list[Cell | None] = [None] * cells
    for number, (k, _, _) in enumerate(parts):
        before = found[k]
        found[k] = results[number] if before is None else before + results[number]
    return [cell for cell in found if cell is not None]


def table(target: Target, axes: Mapping[str, list[float]], cells: Sequence[Cell]) -> dict[str, Any]:
    """What ``robo-rl evaluate --grid --json`` prints."""
    measures = load(target.target, target.task, target.robot).task.measures
    rows = []
    for chosen, cell in zip(itertools.product(*axes.values()), cells, strict=True):
        low, high = wilson(cell.success, cell.episodes)
        rows.append({
            "values": dict(zip(axes, chosen, strict=True)), "episodes": cell.episodes,
            "success": cell.success / cell.episodes,
            "success_low": low, "success_high": high,
            **{measure.key: _mean(measure, cell) for measure in measures},
            "duration_mean_s": cell.duration / cell.episodes,
        })  # fmt: skip
    total = sum(cells[1:], cells[0])
    return {
        "target": target.target, "episodes": total.episodes, "success": total.success / total.episodes,
        "axes": dict(axes), "cells": rows,
    }  # fmt: skip


def _mean(measure: Measure, cell: Cell) -> float:
    if not cell.survived:
        return math.nan
    mean = cell.errors[measure.error] / cell.survived
    return math.sqrt(mean) if measure.over == "rms" else mean


def _evaluated(arguments: Sequence[Any], workers: int) -> Iterator[tuple[int, Cell]]:
    """Number and cell of each part as it ends, on so many processes. ValueError if one of them is killed."""
    if workers == 1:
        yield from enumerate(_part(*argument) for argument in arguments)
        return
    threads = max(1, cores.available() // workers)
    context = multiprocessing.get_context("spawn")
    with safe_path(), ProcessPoolExecutor(workers, context, torch.set_num_threads, (threads,)) as pool:
        try:
            try:
                running = {pool.submit(_part, *argument): number for number, argument in enumerate(arguments)}
            except OSError as error:  # the pipe of a pool that breaks just now is closed already
                raise BrokenProcessPool(str(error)) from None
            for future in as_completed(running):
                yield running[future], future.result()
        except BrokenProcessPool:
            # a pool that breaks while parts are handed out may leave other processes, for which its end would wait
            for process in multiprocessing.active_children():
                process.kill()
            raise ValueError(
                "a process that evaluated was killed, perhaps for want of memory; expected fewer --workers"
            ) from None


_loaded: dict[tuple[str, str | None, str | None], Loaded] = {}


def _part(target: Target, values: Mapping[str, float], first: int, count: int) -> Cell:
    """Some episodes of a cell, in this process; what was loaded once stays."""
    key = (target.target, target.task, target.robot)
    if key not in _loaded:
        _loaded[key] = load(*key)
    loaded = _loaded[key]
    fixed = {**(target.fixed or {}), **values}
    conditions = Conditions(count, target.seed, target.seconds, fixed, first=first)
    done = rollout(loaded.task, loaded.policy, conditions, title=None)
    errors = {measure.error: _sum(measure, done) for measure in loaded.task.measures}
    return Cell(int(done.survived.sum()), int(done.success.sum()), float(done.duration.sum()), errors, count)


def _sum(measure: Measure, done: Episodes) -> float:
    error = done.errors[measure.error][done.survived].astype(np.float64)
    return float((error**2 if measure.over == "rms" else error).sum())
