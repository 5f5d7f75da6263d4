"""robo-rl evaluate."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import give, say

if TYPE_CHECKING:
    from robo_rl.evaluate.evaluation import Conditions
    from robo_rl.policies.loading import Loaded
    from robo_rl.sim.tasks import Measure, Task


def main(
    target: Annotated[str, tyro.conf.Positional],
    episodes: int = 1000,
    seed: int = 0,
    task: str | None = None,
    robot: str | None = None,
    seconds: float | None = None,
    fixed: dict[str, float] = {},  # noqa: B006 (never changed)
    ranges: Path | None = None,
    sweep: bool = False,
    every: tuple[int, ...] = (),
    ground: bool = False,
    against: str | None = None,
    grid: dict[str, str] = {},  # noqa: B006 (never changed)
    workers: int = 1,
    heat_map: Path | None = None,
    json: bool = False,
) -> int:
    """Run a policy for many held-out episodes, over the task's full randomization, and report success rate and errors.

    With --json: episodes, success, success_low, success_high (95 % Wilson interval), duration_mean_s, and for each of
    the task's measures, of the episodes that did not fail: ERROR_mean_UNIT and ERROR_p95_UNIT, or ERROR_rms_UNIT, such
    as position_error_mean_m. With --sweep also sweep, with --every decision_rates (every,
    inferences and the same), with --ground crossings, with --against comparison.
    With --grid: target, episodes, success, axes (values by range), cells (list of values, episodes, success,
    success_low, success_high and the measures' means).

    Args:
        target: A run's folder, a .onnx file, or of --task: 'classical', its classical controller,
            'zero' or 'random', to look at it.
        episodes: Number of episodes.
        seed: Random seed; the same seed gives every policy the same episodes.
        task: Run this task instead of its own: a name, or FILE.py:CLASS. A .onnx file of such a task
            needs it, or 'inside': the source that the file brings.
        robot: Run it on this robot instead of its own.
        seconds: Length of an episode instead of the task's.
        fixed: Ranges of the task set to one value, as NAME VALUE pairs: --fixed mass 1.1 delay 0.02.
        ranges: A file with other bounds for some of the task's ranges (*.toml).
        sweep: Also vary one perturbation at a time, beyond the ranges of training.
        every: Also ask the policy only at every k-th control step, and hold its last commands in between, for each of
            these k: --every 1 2 4 8 16.
        ground: Also cross every kind of terrain at every height, with a twentieth of the episodes each (for tasks on
            rough ground); with --fixed ground/kind or ground/difficulty only those.
        grid: Instead, set ranges of the task to all combinations of values, as NAME VALUES pairs: --grid mass
            0.8:1.2:9 delay 0,0.02,0.04. The episodes are shared out among the cells.
        workers: Processes for --grid; the results are the same for any number.
        heat_map: Picture of the success rate over the grid's first two ranges (*.png, *.svg).
        against: Another target; a sequential test (AdaStop) decides which one has the smaller error by the
            task's last measure, in blocks of 100 episodes, whatever --episodes is.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.evaluate.decision_rate import decision_rates, require_every
    from robo_rl.evaluate.evaluation import Conditions, perturbations, rollout
    from robo_rl.evaluate.evaluation import sweep as run_sweep
    from robo_rl.policies.loading import load
    from robo_rl.sim.ranges import read_ranges, replaced

    if grid:
        return _over_grid(
            (target, task, robot, seed, seconds, fixed), grid, episodes, workers, heat_map, json,
            {"--ranges": ranges, "--sweep": sweep, "--every": every, "--ground": ground, "--against": against},
        )  # fmt: skip
    loaded = load(target, task, robot)
    if ranges is not None:
        spec = loaded.task.spec
        bounds = read_ranges(ranges, spec.name, spec.ranges)
        loaded.task.spec = dataclasses.replace(spec, ranges=replaced(spec.ranges, bounds))
    require_every(every, loaded.task)
    if ground:
        from robo_rl.evaluate.terrain_evaluation import require_rough_ground

        require_rough_ground(loaded.task)
    other = None if against is None else load(against, loaded.task, robot)
    shortest = loaded.task.shortest
    if seconds is not None and seconds < shortest:
        raise ValueError(f"--seconds is {seconds:g}; expected {shortest:g} or more, since no episode fails before")
    conditions = Conditions(episodes, seed, seconds, fixed)
    result: dict[str, Any] = {"target": target, "task": loaded.task.spec.name, "robot": loaded.task.spec.robot.name}
    result |= rollout(loaded.task, loaded.policy, conditions).summary()
    say(f"{loaded.name} on {result['task']} ({result['robot']})", json)
    for measure in loaded.task.measures:
        say(f"  {measure.error.replace('_', ' '):<22} {_described(measure, result)}", json)
    name = "success" if loaded.task.knows_success else loaded.task.survival
    say(
        f"  {name:<22} {result['success']:7.2%}   95 % interval {result['success_low']:.2%} to "
        f"{result['success_high']:.2%}, {episodes} episodes of seed {seed}",
        json,
    )
    if sweep:
        few = Conditions(max(200, episodes // 4), seed, seconds, fixed)
        result["sweep"] = run_sweep(loaded.task, loaded.policy, perturbations(loaded.task), few)
        say(f"  one range at a time, {few.episodes} episodes per value", json)
        _say_sweep(loaded.task, name, result["sweep"], json)
    if every:
        result["decision_rates"] = decision_rates(loaded.task, loaded.policy, every, conditions)
        _say_rates(loaded.task.measures, result["decision_rates"], json)
    if ground:
        result["crossings"] = _cross(loaded, max(1, episodes // 20), seed, fixed, json)
    if other is not None:
        result["comparison"] = _compare(loaded, other, conditions, json)
    give(result, json)
    return 0


def _over_grid(
    words: tuple[Any, ...], grid: dict[str, str], episodes: int, workers: int, heat_map: Path | None, json: bool,
    others: dict[str, Any],
) -> int:  # fmt: skip
    from robo_rl.policies.grid import Target, axis, evaluate, table

    if given := [name for name, value in others.items() if value]:
        raise ValueError(f"{given[0]} and --grid exclude each other; expected one of them")
    if workers < 1 or episodes < 1:
        raise ValueError(f"--workers is {workers}, --episodes {episodes}; expected 1 or more")
    axes = {name: axis(name, text) for name, text in grid.items()}
    target = Target(*words)
    result = table(target, axes, evaluate(target, axes, episodes, workers))
    say(f"success {result['success']:.2%} of {result['episodes']} episodes", json)
    for row in result["cells"]:
        place = ", ".join(f"{name} {value:.4g}" for name, value in row["values"].items())
        say(f"  {place:<40} {row['success']:7.1%}   {row['success_low']:.1%} to {row['success_high']:.1%}", json)
    if heat_map is not None:
        from robo_rl.report.heat_map import write

        write(heat_map, axes, result["cells"])
        say(f"Written: {heat_map}", json)
    give(result, json)
    return 0


def _described(measure: Measure, result: dict[str, Any]) -> str:
    """One error of a summary, with its time window."""
    from robo_rl.evaluate.evaluation import quantity

    error = quantity(result[measure.key], measure.unit)
    if measure.over == "rms" or math.isnan(result[measure.key]):
        return f"{error}  {measure.described}"
    return f"{error}  {measure.described}; 95 % of episodes below {quantity(result[measure.tail_key], measure.unit)}"


def _say_sweep(task: Task, success: str, table: dict[str, list[dict[str, float]]], json: bool) -> None:
    from robo_rl.evaluate.evaluation import shown

    for name, rows in table.items():
        say(f"  {task.spec.ranges[name].heading(name)}", json)
        for row in rows:
            say(f"    {row['value']:8.3g}   {success} {row['success']:7.2%}   {shown(task.measures, row)}", json)


def _say_rates(measures: Sequence[Measure], rows: list[dict[str, float]], json: bool) -> None:
    from robo_rl.evaluate.evaluation import shown

    say("  asked at every k-th control step", json)
    for row in rows:
        told = f"{row['every']:8d}   {row['inferences']:6d} inferences   success {row['success']:7.2%}"
        say(f"    {told}   {shown(measures, row)}", json)


def _cross(loaded: Any, each: int, seed: int, fixed: dict[str, float], json: bool) -> list[dict[str, Any]]:
    from robo_rl.evaluate.terrain_evaluation import SPEED, evaluate_terrain

    table = evaluate_terrain(loaded.task, loaded.policy, each, seed, fixed=fixed)
    say(f"  terrain crossed at {SPEED:g} m/s", json)
    for row in table:
        interval = f"{row['crossed_low']:.1%} to {row['crossed_high']:.1%}"
        say(
            f"    {row['kind']:<12} {row['height']:>6}   {row['crossed']:7.1%}   95 % interval {interval}, "
            f"{row['walks']} episodes; {row['fell']:.1%} fell",
            json,
        )
    return table


def _compare(first: Loaded, second: Loaded, conditions: Conditions, json: bool) -> dict[str, Any]:
    """Sequential test on the last measure of the first one's task, which both do in the same blocks of episodes."""
    from robo_rl.evaluate.comparison import compare, scores
    from robo_rl.evaluate.evaluation import quantity, rollout

    measure = first.task.measures[-1]

    @functools.cache
    def block(seed: int) -> tuple[float, float]:
        there = dataclasses.replace(conditions, episodes=100, seed=10_000 + conditions.seed + seed)
        one, other = (rollout(first.task, p.policy, there, f"{p.name}, block {seed + 1}") for p in (first, second))
        mine, theirs = scores(one, other, measure)
        return float(mine.mean()), float(theirs.mean())

    names = (first.name, second.name if second.name != first.name else f"{second.name} (second)")
    outcome = compare({names[0]: lambda seed: block(seed)[0], names[1]: lambda seed: block(seed)[1]})
    phrases = {"larger": "has a smaller {} than", "smaller": "has a larger {} than"}
    error = measure.error.replace("_", " ")
    verdict = phrases.get(outcome["decision"], "does not differ significantly in the {} from").format(error)
    ours, theirs = (quantity(-outcome["means"][name], measure.unit) for name in names)
    say(
        f"  {names[0]} {verdict} {names[1]}: {ours} against {theirs} "
        f"({outcome['samples']} blocks of 100 episodes each, level 5 %)",
        json,
    )
    return outcome
