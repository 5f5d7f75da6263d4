"""robo-rl compare."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import give, say

if TYPE_CHECKING:
    import numpy as np

BLOCK, MOST_BLOCKS = 5, 6
"""Seeds after each of which AdaStop may stop, and how often it looks."""


def main(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional],
    measure: str = "success",
    lower_is_better: bool = False,
    mixed: bool = False,
    plot: Path | None = None,
    parquet: Path | None = None,
    json: bool = False,
) -> int:
    """Compare trained runs that differ in more than the seed: the same task with other settings, or of a sweep.

    Each group is of runs that differ in the seed alone. Its figure is the interquartile mean over the seeds with a 95 %
    bootstrap interval; beside it, of the second group on, the probability that a run is better than one of the first,
    and AdaStop's decision at level 5 %, which needs 5 seeds of each or more. With --json: measure, groups (label,
    seeds, iqm, iqm_low, iqm_high, mean, min, max, scores; better, better_low, better_high, decision).

    Args:
        runs: Folders of runs, of several runs, or of sweeps.
        measure: What is compared: a figure of 'evaluate --json', such as position_error_mean_m.
        lower_is_better: Of errors: the smaller is the better one.
        mixed: Also compare runs of other versions and other kinds of processors.
        plot: Write intervals and performance profiles as a picture (*.svg, *.png, *.pdf).
        parquet: Write a table of all runs (*.parquet).
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.run_table import found, groups, require_same_numerics

    rows = found(runs)
    unfinished = [row.run.folder for row in rows if row.result is None]
    if unfinished:
        raise ValueError(f"{unfinished[0]} and {len(unfinished) - 1} others are not done; expected trained runs")
    if not mixed:
        require_same_numerics(rows)
    scores = {label: _scores(group, measure) for label, group in groups(rows).items()}
    described = _described(scores, lower_is_better)
    wide = max(map(len, scores))
    say(f"{measure}, interquartile mean over seeds with its 95 % interval", json)
    for one in described:
        line = f"  {one['label']:<{wide}}  {one['iqm']:8.4g}  [{one['iqm_low']:.4g}, {one['iqm_high']:.4g}]"
        line += f"  {one['seeds']} seeds"
        if "better" in one:
            line += f"; better than the first: {one['better']:.0%} [{one['better_low']:.0%}, {one['better_high']:.0%}]"
            line += f", AdaStop: {one['decision']}"
        say(line, json)
    if plot is not None:
        _plot(plot, scores, described, measure)
        say(f"Written: {plot}", json)
    if parquet is not None:
        _write(parquet, rows, measure)
        say(f"Written: {parquet}", json)
    give({"measure": measure, "groups": described}, json)
    return 0


def _scores(group: list[Any], measure: str) -> np.ndarray:
    import numpy as np

    values = []
    for row in sorted(group, key=lambda row: row.run.seed):
        value = row.result.get(measure)
        if not isinstance(value, int | float) or isinstance(value, bool):
            known = sorted(k for k, v in row.result.items() if isinstance(v, float))
            raise ValueError(f"{row.run.done_file}: {measure} is {value!r}; expected a number, one of {known}")
        values.append(float(value))
    return np.array(values)


def _described(scores: Mapping[str, np.ndarray], lower_is_better: bool) -> list[dict[str, Any]]:
    from robo_rl.statistics import improvement, interquartile_mean, interval

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
    from robo_rl.comparison import compare

    blocks = min(len(scores), len(first)) // BLOCK
    if not blocks:
        return f"needs {BLOCK} seeds of each"
    outcome = compare(
        {"this": lambda k: float(scores[k]), "first": lambda k: float(first[k])}, BLOCK, min(blocks, MOST_BLOCKS)
    )
    return {"larger": "better", "smaller": "worse"}.get(outcome["decision"], "no difference found")


def _plot(path: Path, scores: Mapping[str, np.ndarray], described: list[dict[str, Any]], measure: str) -> None:
    import matplotlib
    import numpy as np
    from matplotlib.figure import Figure

    from robo_rl.escaping import plot_label
    from robo_rl.report.plots import COLOURS
    from robo_rl.statistics import profile

    with matplotlib.rc_context({"font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(8.2, 1.6 + 0.35 * len(scores)), layout="constrained")
        left, right = figure.subplots(1, 2)
        levels = np.linspace(*_span(np.concatenate(list(scores.values()))), 200)
        for k, one in enumerate(described):
            colour = COLOURS[k % len(COLOURS)]
            left.barh(k, one["iqm_high"] - one["iqm_low"], left=one["iqm_low"], color=colour, alpha=0.35, height=0.6)
            left.plot([one["iqm"]] * 2, [k - 0.3, k + 0.3], color=colour)
            left.plot(one["scores"], [k] * one["seeds"], ".", color=colour, markersize=3)
            right.step(levels, profile(scores[one["label"]], levels), color=colour, label=plot_label(one["label"]))
        left.set_yticks(range(len(described)), [plot_label(one["label"]) for one in described])
        left.invert_yaxis()
        left.set_xlabel(f"{plot_label(measure)}: interquartile mean, 95 %")
        right.set_xlabel(plot_label(measure))
        right.set_ylabel("share of runs above")
        figure.savefig(path)


def _span(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.01 * (abs(high) or 1.0)
    return low - room, high + room


def _write(path: Path, rows: list[Any], measure: str) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise ValueError("--parquet needs pyarrow: pip install 'robo-rl[scale]'") from None
    content = [
        {
            "run": str(row.run.folder), "seed": row.run.seed,
            **{name: value if isinstance(value, int | float | str) else str(value)
               for name, value in row.settings().items() if value is not None},
            **{name: value for name, value in row.result.items() if isinstance(value, int | float | str)},
        }
        for row in rows
    ]  # fmt: skip
    names = list(dict.fromkeys(name for one in content for name in one))
    columns = {name: _column([one.get(name) for one in content]) for name in names}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def _column(values: list[Any]) -> list[Any]:
    """Values of one type: texts, where they are of several."""
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) <= 1 else [None if value is None else str(value) for value in values]
