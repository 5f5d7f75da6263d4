"""robo-rl evaluate."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import give, say

if TYPE_CHECKING:
    from sim.tasks import Measure


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
    ground: bool = False,
    against: str | None = None,
    json: bool = False,
) -> int:
    """Fly something many times, over the task's full randomization, and report what it does.

    With --json: episodes, success, success_low, success_high (95 % Wilson interval), duration_mean_s, and of those
    that survive: flying, position_error_mean_m and position_error_p95_m (distance from the set-point over the last
    2 s) and tracking_error_rms_m (from 1 s on); walking, linear_velocity_error_mean_m_s and
    yaw_rate_error_mean_rad_s (from 1 s on), and the same with p95. With --sweep also sweep, with --ground
    crossings, with --against comparison.

    Args:
        target: A run's folder, a .onnx file, or 'geometric', the classical controller.
        episodes: Number of flights.
        seed: Of the flights; the same seed gives every policy the same flights.
        task: Fly this task instead of its own: its name, or FILE.py:CLASS of your own, which a .onnx file of it needs.
        robot: Fly this robot instead of its own.
        seconds: Length of a flight instead of the task's.
        fixed: Ranges of the task set to one value, as NAME VALUE pairs: --fixed mass 1.1 delay 0.02.
        ranges: A file with other bounds for some of the task's ranges (*.toml).
        sweep: Also vary one perturbation at a time, beyond what training saw.
        ground: Also cross every kind of rough ground at every height, a twentieth of the episodes each (of tasks on
            rough ground); with --fixed ground/kind or ground/difficulty those alone.
        against: Another target; a sequential test (AdaStop) tells which one stays nearer to the set-point.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.evaluation import Conditions, ControllerPolicy, perturbations, rollout
    from robo_rl.evaluation import sweep as run_sweep
    from robo_rl.loading import Loaded, load
    from sim.ranges import read_ranges, replaced

    loaded = load(target, task, robot)
    if ranges is not None:
        spec = loaded.task.spec
        bounds = read_ranges(ranges, spec.name, spec.ranges)
        loaded.task.spec = dataclasses.replace(spec, ranges=replaced(spec.ranges, bounds))
    shortest = loaded.task.shortest
    if seconds is not None and seconds < shortest:
        raise ValueError(
            f"--seconds is {seconds:g}; expected {shortest:g} or more, before which nobody can have failed"
        )
    conditions = Conditions(episodes, seed, seconds, fixed)
    result: dict[str, Any] = {"target": target, "task": loaded.task.spec.name, "robot": loaded.task.spec.robot.name}
    result |= rollout(loaded.task, loaded.policy, conditions).summary()
    say(f"{loaded.name} on {result['task']} ({result['robot']})", json)
    say(
        f"  {'success':<22} {result['success']:7.2%}   95 % interval {result['success_low']:.2%} to "
        f"{result['success_high']:.2%}, {episodes} flights",
        json,
    )
    for measure in loaded.task.measures:
        say(f"  {measure.error.replace('_', ' '):<22} {_described(measure, result)}", json)
    if sweep:
        few = Conditions(max(200, episodes // 4), seed, seconds, fixed)
        result["sweep"] = run_sweep(loaded.task, loaded.policy, perturbations(loaded.task), few)
        _say_sweep(loaded.task.measures, result["sweep"], json)
    if ground:
        result["crossings"] = _cross(loaded, max(1, episodes // 20), seed, fixed, json)
    if against is not None:
        if against == "geometric":
            other = Loaded(against, loaded.task, ControllerPolicy(loaded.task))
        else:
            other = load(against, loaded.task, robot)
        result["comparison"] = _compare(loaded, other, conditions, json)
    give(result, json)
    return 0


def _described(measure: Measure, result: dict[str, Any]) -> str:
    """One error of a summary, and over which time it was taken."""
    from robo_rl.evaluation import quantity

    error = quantity(result[measure.key], measure.unit)
    if measure.over == "rms":
        return f"{error}  root mean square from 1 s on"
    when = "mean over the last 2 s" if measure.over == "end" else "mean from 1 s on"
    return f"{error}  {when}; 95 % of flights below {quantity(result[measure.tail_key], measure.unit)}"


def _say_sweep(measures: Sequence[Measure], table: dict[str, list[dict[str, float]]], json: bool) -> None:
    from robo_rl.evaluation import shown

    for name, rows in table.items():
        say(f"  {name}", json)
        for row in rows:
            say(f"    {row['value']:8.3g}   success {row['success']:7.2%}   {shown(measures, row)}", json)


def _cross(loaded: Any, each: int, seed: int, fixed: dict[str, float], json: bool) -> list[dict[str, Any]]:
    from robo_rl.terrain_evaluation import SPEED, evaluate_terrain
    from sim.tasks.legged.rough import RoughWalk

    if not isinstance(loaded.task, RoughWalk):
        raise ValueError(
            f"--ground is for tasks on rough ground; '{loaded.task.spec.name}' is none, try --task go2-rough"
        )
    table = evaluate_terrain(loaded.task, loaded.policy, each, seed, fixed=fixed)
    say(f"  crosses, at {SPEED:g} m/s", json)
    for row in table:
        interval = f"{row['crossed_low']:.1%} to {row['crossed_high']:.1%}"
        say(
            f"    {row['kind']:<12} {row['height']:>6}   {row['crossed']:7.1%}   95 % interval {interval}, "
            f"{row['walks']} walks; {row['fell']:.1%} fell",
            json,
        )
    return table


def _compare(first: Any, second: Any, conditions: Any, json: bool) -> dict[str, Any]:
    """Sequential test on the last measure of the first one's task, which both fly; a failure counts as 1 m or 1 m/s."""
    import numpy as np

    from robo_rl.evaluation import compare, quantity, rollout

    measure = first.task.measures[-1]

    def score(loaded: Any) -> Any:
        def one_block(seed: int) -> float:
            block = dataclasses.replace(conditions, episodes=100, seed=10_000 + conditions.seed + seed)
            error = rollout(first.task, loaded.policy, block, f"{loaded.name}, block {seed + 1}").errors[measure.error]
            return -float(np.where(np.isnan(error), 1.0, error).mean())

        return one_block

    names = (first.name, second.name if second.name != first.name else f"{second.name} (second)")
    outcome = compare({names[0]: score(first), names[1]: score(second)})
    word = {"larger": "is nearer than", "smaller": "is farther than", "equal": "can't be told from"}
    verdict = word.get(outcome["decision"], outcome["decision"])
    ours, theirs = (quantity(-outcome["means"][name], measure.unit) for name in names)
    say(
        f"  {names[0]} {verdict} {names[1]}: {ours} against {theirs} "
        f"({outcome['samples']} blocks of 100 flights each, level 5 %)",
        json,
    )
    return outcome
