"""Plots and the page of many runs: what is done, how the groups compare, how they learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import jinja2
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from robo_rl.console import finite
from robo_rl.evaluate.groups import figures, scores_of
from robo_rl.evaluate.statistics import profile
from robo_rl.files import write
from robo_rl.files.escaping import plot_label
from robo_rl.learn.runs.folder import RunError
from robo_rl.learn.runs.table import STATES, Row, groups, require_same_numerics
from robo_rl.report.plots import COLOURS, spoken, svg

POINTS = 100
"""Of a learning curve."""
INTERVALS = "Interquartile mean of each group, with its 95 % interval, and the share of runs above each level"
LONGEST = 40
"""Characters of a label beside a plot."""
MOST_ROWS = 1000
"""Runs that the page lists one by one."""


def style() -> AbstractContextManager[None]:
    """Of plots of their own."""
    return matplotlib.rc_context({"font.size": 9, "svg.fonttype": "none"})


def intervals(scores: Mapping[str, np.ndarray], described: Sequence[Mapping[str, Any]], measure: str) -> Figure:
    """Interquartile means with their intervals, and performance profiles. Groups with long labels have numbers."""
    figure = Figure(figsize=(8.2, 1.6 + 0.35 * len(scores)), layout="constrained")
    left, right = figure.subplots(1, 2)
    long = max(len(one["label"]) for one in described) > LONGEST
    names = [str(k) if long else plot_label(one["label"]) for k, one in enumerate(described, 1)]
    levels = np.linspace(*_span(np.concatenate(list(scores.values()))), 200)
    for k, one in enumerate(described):
        colour = COLOURS[k % len(COLOURS)]
        left.barh(k, one["iqm_high"] - one["iqm_low"], left=one["iqm_low"], color=colour, alpha=0.35, height=0.6)
        left.plot([one["iqm"]] * 2, [k - 0.3, k + 0.3], color=colour)
        left.plot(one["scores"], [k] * one["seeds"], ".", color=colour, markersize=3)
        right.step(levels, profile(scores[one["label"]], levels), color=colour, label=names[k])
    left.set_yticks(range(len(described)), names)
    left.invert_yaxis()
    left.locator_params(axis="x", nbins=5)
    left.set_xlabel(f"{plot_label(measure)}: interquartile mean, 95 %")
    right.set_xlabel(plot_label(measure))
    right.set_ylabel("share of runs above")
    return figure


def _span(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.01 * (abs(high) or 1.0)
    return low - room, high + room


def readable_rewards(rows: Sequence[Row], refused: list[str]) -> list[list[tuple[float, float]]]:
    """Control steps and rewards of the runs whose metrics can be read; ``refused`` gets a sentence on each other."""
    found = []
    for row in rows:
        try:
            lines = row.run.metrics()
        except ValueError as error:
            refused.append(str(error))
            continue
        found.append([(line["environment_steps"], line["reward"]) for line in lines if "reward" in line])
    return found


def learning_curves(grouped: Mapping[str, Sequence[list[tuple[float, float]]]]) -> Figure | None:
    """Reward over control steps: the mean of a group's runs and their range, as far as all of them have come."""
    figure = Figure(figsize=(8.2, 3.2), layout="constrained")
    plot, drawn = figure.subplots(), False
    for k, (label, rows) in enumerate(grouped.items()):
        curves = [curve for curve in rows if len(curve) > 1]
        if not curves:
            continue
        steps = np.linspace(max(c[0][0] for c in curves), min(c[-1][0] for c in curves), POINTS)
        rewards = np.array([np.interp(steps, [x for x, _ in curve], [y for _, y in curve]) for curve in curves])
        colour = COLOURS[k % len(COLOURS)]
        plot.plot(steps, rewards.mean(0), color=colour, label=plot_label(label))
        plot.fill_between(steps, rewards.min(0), rewards.max(0), color=colour, alpha=0.2, linewidth=0)
        drawn = True
    plot.set_xlabel("control steps")
    plot.set_ylabel("reward per step")
    if drawn and 1 < len(grouped) <= len(COLOURS):
        figure.legend(fontsize=8, loc="outside lower center", ncols=2)
    return figure if drawn else None


def write_page(out: Path, title: str, rows: Sequence[Row], measure: str, lower_is_better: bool) -> list[str]:
    """A page of runs that needs nothing from anywhere. Groups are compared as far as their runs are done.

    Gives a sentence on each run whose metrics can't be read: its learning curve is left out.
    """
    refused: list[str] = []
    grouped = groups(rows)
    done = {label: [row for row in some if row.result is not None] for label, some in grouped.items()}
    scores = {label: scores_of(some, measure) for label, some in done.items() if some}
    described = figures(scores, lower_is_better) if scores else []
    try:
        require_same_numerics([row for row in rows if row.result is not None])
        warning = ""
    except RunError as error:
        warning = str(error)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"spoken": spoken}
    with style():
        plots = [(intervals(scores, described, measure), INTERVALS)] if scores else []
        curves = learning_curves({label: readable_rewards(some, refused) for label, some in grouped.items()})
        if curves is not None:
            plots.append((curves, "Mean and range of the runs of each group, in training"))
        drawn = [(svg(figure), caption) for figure, caption in plots]
    listed = [
        {"name": row.run.folder.name, "seed": row.run.seed, "state": row.state, "label": label,
         "value": (row.result or {}).get(measure), "digest": str((row.result or {}).get("policy_digest", ""))[:12]}
        for label, some in grouped.items() for row in some
    ]  # fmt: skip
    page = environment.get_template("groups.html").render(
        title=title, measure=measure, described=described, plots=drawn, rows=listed[:MOST_ROWS], count=len(listed),
        warning=warning, refused=refused,
        every_state=STATES, states=Counter(row.state for row in rows),
        figures_json=jinja2.utils.htmlsafe_json_dumps(finite({"measure": measure, "groups": described})),
    )  # fmt: skip
    write(out, page)
    return refused
