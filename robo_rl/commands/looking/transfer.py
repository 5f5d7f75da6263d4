"""robo-rl transfer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import give, require_place, say

if TYPE_CHECKING:
    from robo_rl.evaluate.transfer import Transfer
    from robo_rl.sim.engines import Engine
    from robo_rl.sim.tasks import Task


def main(
    target: Annotated[str, tyro.conf.Positional],
    episodes: int = 200,
    seed: int = 0,
    seconds: float | None = None,
    task: str | None = None,
    robot: str | None = None,
    engines: tuple[str, ...] = ("all",),
    perturbations: tuple[str, ...] = ("all",),
    min_kept: float = 0.0,
    plot: Path | None = None,
    json: bool = False,
) -> int:
    """Run a policy in other simulators and beyond the ranges of training; exit with 1 below --min-kept.

    The training simulator is the task's own engine over the ranges of training. Every other one runs the same episodes
    (Bullet, which is slow, a quarter of them), every perturbation a quarter. With --json: passed, least_kept, home (the
    training simulator), engines and perturbations, each with what 'evaluate' gives and kept (success over success in
    the training simulator), drop, drop_low and drop_high (its success less this one, with its 95 % interval).

    Args:
        target: A .onnx file, a run's folder, or of --task: 'classical', its classical controller,
            'zero' or 'random', to look at it.
        episodes: Number of episodes in the training simulator.
        seed: Random seed of the episodes.
        seconds: Length of an episode instead of the task's.
        task: Run this task instead of its own: a name, or FILE.py:CLASS. A .onnx file of such a task
            needs it, or 'inside': the source that the file brings.
        robot: Run it on this robot instead of its own.
        engines: Names of other simulators; 'all' that are installed, or 'none'.
        perturbations: Names of the task's ranges to extend beyond training; 'all' that it names, or 'none'.
        min_kept: Minimum ratio of every other simulator's success rate to the training simulator's, like 0.95.
        plot: Plot the result into this picture (.png or .svg).
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.evaluate.evaluation import Conditions, shown
    from robo_rl.evaluate.transfer import transfer
    from robo_rl.policies.loading import load

    if not 0 <= min_kept <= 1:
        raise ValueError(f"--min-kept is {min_kept:g}; expected a number from 0 to 1")
    require_place(plot, "--plot", ".png", ".svg")
    loaded = load(target, task, robot)
    chosen, grid = _engines(loaded.task, engines), _grid(loaded.task, perturbations)
    say(f"{loaded.name} on {loaded.task.spec.name} ({loaded.task.spec.robot.name})", json)
    found = transfer(loaded.task, loaded.policy, chosen, grid, Conditions(episodes, seed, seconds))
    say(f"  {'training simulator':<22} {_success(found.home)}   {shown(found.measures, found.home)}", json)
    for row in found.engines:
        say(f"  {row['engine']:<22} {_success(row)}   {_kept(row)}   {shown(found.measures, row)}", json)
    for name, rows in found.perturbations.items():
        say(f"  {loaded.task.spec.ranges[name].heading(name)}", json)
        for row in rows:
            say(f"  {row['value']:>22.3g} {_success(row)}   {_kept(row)}   {shown(found.measures, row)}", json)
    passed = not chosen or found.least_kept >= min_kept
    for line in verdicts(found, min_kept):
        say(line, json)
    if plot is not None:
        from robo_rl.report.plots import transfer as draw

        draw(found, loaded.task.spec.ranges).savefig(plot, dpi=120)
        say(f"{plot}", json)
    result: dict[str, Any] = {
        "target": target,
        "task": loaded.task.spec.name,
        "robot": loaded.task.spec.robot.name,
        "passed": passed,
        "least_kept": found.least_kept,
        "home": found.home,
        "engines": found.engines,
        "perturbations": found.perturbations,
    }
    give(result, json)
    return 0 if passed else 1


def verdicts(found: Transfer, min_kept: float) -> list[str]:
    """The worst of the other simulators, and the worst of the perturbations, in a line each."""
    lines = []
    if found.engines:
        worst = min(found.engines, key=lambda row: row["kept"])
        bar = f"; asked for {min_kept:.0%} of it" if min_kept else ""
        begin = "FAILED: " if found.least_kept < min_kept else ""
        lines.append(
            f"{begin}other simulators: lowest success {worst['success']:.1%}, in {worst['engine']}, against "
            f"{found.home['success']:.1%} in the training simulator{bar}"
        )
    rows = [(name, row) for name, rows in found.perturbations.items() for row in rows]
    if rows:
        name, row = min(rows, key=lambda pair: pair[1]["success"])
        lines.append(f"beyond training: lowest success {row['success']:.1%}, at {name} {row['value']:.3g}")
    return lines


def _engines(task: Task, names: Sequence[str]) -> list[Engine]:
    there = {engine.name: engine for engine in task.engines()}
    return [there[name] for name in _chosen("engine", names, list(there))]


def _grid(task: Task, names: Sequence[str]) -> dict[str, list[float]]:
    from robo_rl.evaluate.transfer import beyond

    grid = beyond(task)
    return {name: grid[name] for name in _chosen("perturbation", names, list(grid))}


def _chosen(what: str, names: Sequence[str], known: list[str]) -> list[str]:
    if list(names) in (["all"], ["none"]):
        return known if names[0] == "all" else []
    for name in names:
        if name not in known:
            raise ValueError(f"--{what}s: '{name}' is not one of {known}; expected some of them, or all, or none")
    return list(names)


def _success(row: Any) -> str:
    return f"{row['success']:7.2%} ({row['success_low']:.1%} to {row['success_high']:.1%})"


def _kept(row: Any) -> str:
    span = f"{-100 * row['drop_high']:+.1f} to {-100 * row['drop_low']:+.1f}"
    change = round(-100 * row["drop"], 1) + 0.0  # not -0.0
    return f"change {change:+6.1f} points ({span})"
