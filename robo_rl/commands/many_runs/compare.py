"""robo-rl compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from robo_rl.console import give, say


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
    from robo_rl.evaluate.groups import figures, scores_of
    from robo_rl.learn.runs.table import found, groups, require_same_numerics

    rows = found(runs)
    unfinished = [row.run.folder for row in rows if row.result is None]
    if unfinished:
        more = f" and {len(unfinished) - 1} more" if unfinished[1:] else ""
        raise ValueError(
            f"{unfinished[0]}{more}: not finished; expected trained runs. To continue:  robo-rl resume {unfinished[0]}"
        )
    if not mixed:
        require_same_numerics(rows)
    scores = {label: scores_of(group, measure) for label, group in groups(rows).items()}
    described = figures(scores, lower_is_better)
    wide = max(map(len, scores))
    say(f"{measure}, interquartile mean over seeds with its 95 % interval", json)
    for number, one in enumerate(described, 1):
        line = f"{number:>3}  {one['label']:<{wide}}  {one['iqm']:8.4g}  [{one['iqm_low']:.4g}, {one['iqm_high']:.4g}]"
        line += f"  {one['seeds']} seeds"
        if "better" in one:
            line += f"; better than the first: {one['better']:.0%} [{one['better_low']:.0%}, {one['better_high']:.0%}]"
            line += f", AdaStop: {one['decision']}"
        say(line, json)
    if plot is not None:
        from robo_rl.report.groups import intervals, style

        with style():
            intervals(scores, described, measure).savefig(plot)
        say(f"Written: {plot}", json)
    if parquet is not None:
        _write(parquet, rows, measure)
        say(f"Written: {parquet}", json)
    give({"measure": measure, "groups": described}, json)
    return 0


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
