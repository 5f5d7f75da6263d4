"""Figures of groups of runs that differ in nothing but the seed, and how the groups compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robo_rl.evaluate.comparison import compare
from robo_rl.evaluate.statistics import improvement, interquartile_mean, interval
from robo_rl.learn.runs.table import Row

BLOCK, MOST_BLOCKS = 5, 6
"""Seeds after each of which AdaStop may stop, and how often it looks."""


def scores_of(group: Sequence[Row], measure: str) -> np.ndarray:
    """(seeds,) a figure of done.json of all runs, in the order of their seeds. ValueError if one has none."""
    values = []
    for row in sorted(group, key=lambda row: row.run.seed):
        result = row.result or {}
        value = result.get(measure)
        if not isinstance(value, int | float) or isinstance(value, bool):
            known = sorted(k for k, v in result.items() if isinstance(v, float))
            raise ValueError(f"{row.run.done_file}: {measure} is {value!r}; expected a number, one of {known}")
        values.append(float(value))
    return np.array(values)


def figures(scores: Mapping[str, np.ndarray], lower_is_better: bool) -> list[dict[str, Any]]:
    """What ``robo-rl compare --json`` says of each group, by its scores (seeds,)."""
    sign = -1.0 if lower_is_better else 1.0
    first = next(iter(scores.values()))
    described: list[dict[str, Any]] = []
    for label, values in scores.items():
        low, high = interval(interquartile_mean, values)
        one: dict[str, Any] = {
            "label": label, "seeds": len(values), "iqm": interquartile_mean(values), "iqm_low": low, "iqm_high": high,
            "mean": float(values.mean()), "min": float(values.min()), "max": float(values.max()),
            "scores": values.tolist(),
        }  # fmt: skip
        if described:
            one["better"] = improvement(sign * values, sign * first)
            one["better_low"], one["better_high"] = interval(improvement, sign * values, sign * first)
            one["decision"] = _decision(sign * values, sign * first)
        described.append(one)
    return described


def _decision(scores: np.ndarray, first: np.ndarray) -> str:
    blocks = min(len(scores), len(first)) // BLOCK
    if not blocks:
        return f"needs {BLOCK} seeds of each"
    outcome = compare(
        {"this": lambda k: float(scores[k]), "first": lambda k: float(first[k])}, BLOCK, min(blocks, MOST_BLOCKS)
    )
    return {"larger": "better", "smaller": "worse"}.get(outcome["decision"], "no difference found")
