"""robo-rl evaluate."""

from __future__ import annotations

from typing import Annotated, Any

import tyro

from robo_rl.console import give, say


def main(
    target: Annotated[str, tyro.conf.Positional],
    episodes: int = 1000,
    seed: int = 0,
    task: str | None = None,
    robot: str | None = None,
    seconds: float | None = None,
    fixed: dict[str, float] = {},  # noqa: B006 (never changed)
    sweep: bool = False,
    against: str | None = None,
    json: bool = False,
) -> int:
    """Fly something many times, over the task's full randomization, and report what it does.

    With --json: episodes, success, success_low, success_high (95 % Wilson interval), position_error_mean_m and
    position_error_p95_m (distance from the set-point over the last 2 s, surviving flights),
    tracking_error_rms_m (from 1 s on), duration_mean_s; with --sweep also sweep, with --against also comparison.

    Args:
        target: A run's folder, a .onnx file, or 'geometric', the classical controller.
        episodes: Number of flights.
        seed: Of the flights; the same seed gives every pilot the same flights.
        task: Fly this task instead of its own.
        robot: Fly this robot instead of its own.
        seconds: Length of a flight instead of the task's.
        fixed: Ranges of the task set to one value, as NAME VALUE pairs: --fixed mass 1.1 delay 0.02.
        sweep: Also vary one perturbation at a time, beyond what training saw.
        against: Another target; a sequential test (AdaStop) tells which one stays nearer to the set-point.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.evaluation import Conditions, fly, perturbations
    from robo_rl.evaluation import sweep as fly_sweep
    from robo_rl.pilots import find

    flier = find(target, task, robot)
    conditions = Conditions(episodes, seed, seconds, fixed)
    result: dict[str, Any] = {"target": target, "task": flier.task.spec.name, "robot": flier.task.spec.robot.name}
    result |= fly(flier.task, flier.pilot, conditions).summary()
    say(f"{flier.name} on {result['task']} ({result['robot']})", json)
    say(
        f"  success          {result['success']:7.2%}   95 % interval {result['success_low']:.2%} to "
        f"{result['success_high']:.2%}, {episodes} flights\n"
        f"  position error   {100 * result['position_error_mean_m']:6.2f} cm  mean over the last 2 s; "
        f"95 % of flights below {100 * result['position_error_p95_m']:.2f} cm\n"
        f"  tracking error   {100 * result['tracking_error_rms_m']:6.2f} cm  root mean square from 1 s on",
        json,
    )
    if sweep:
        few = Conditions(max(200, episodes // 4), seed, seconds, fixed)
        result["sweep"] = fly_sweep(flier.task, flier.pilot, perturbations(flier.task), few)
        _say_sweep(result["sweep"], json)
    if against is not None:
        other = find(against, flier.task.spec.name, robot or flier.task.spec.robot.name)
        result["comparison"] = _compare(flier, other, conditions, json)
    give(result, json)
    return 0


def _say_sweep(table: dict[str, list[dict[str, float]]], json: bool) -> None:
    for name, rows in table.items():
        say(f"  {name}", json)
        for row in rows:
            error = 100 * row["position_error_mean_m"]
            say(f"    {row['value']:8.3g}   success {row['success']:7.2%}   position error {error:6.2f} cm", json)


def _compare(first: Any, second: Any, conditions: Any, json: bool) -> dict[str, Any]:
    """Sequential test on the mean distance from the set-point, failed flights counting as a metre."""
    import dataclasses

    import numpy as np

    from robo_rl.evaluation import compare, fly

    def score(flier: Any) -> Any:
        def one_block(seed: int) -> float:
            block = dataclasses.replace(conditions, episodes=100, seed=10_000 + conditions.seed + seed)
            error = fly(flier.task, flier.pilot, block, f"{flier.name}, block {seed + 1}").tracking_error
            return -float(np.where(np.isnan(error), 1.0, error).mean())

        return one_block

    names = (first.name, second.name if second.name != first.name else f"{second.name} (second)")
    outcome = compare({names[0]: score(first), names[1]: score(second)})
    word = {"larger": "is nearer than", "smaller": "is farther than", "equal": "can't be told from"}
    verdict = word.get(outcome["decision"], outcome["decision"])
    say(
        f"  {names[0]} {verdict} {names[1]}: {-100 * outcome['means'][names[0]]:.2f} cm against "
        f"{-100 * outcome['means'][names[1]]:.2f} cm ({outcome['samples']} blocks of 100 flights each, level 5 %)",
        json,
    )
    return outcome
