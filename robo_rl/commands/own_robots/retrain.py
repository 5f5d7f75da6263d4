"""robo-rl retrain: from a robot's log to a policy that fits it better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import Progress, require_place, say
from robo_rl.files.escaping import shell_word

if TYPE_CHECKING:
    from robo_rl.identification.retraining import Origin
    from robo_rl.sim.tasks import Task

MARGIN = 0.03
"""Of what are factors: a battery's charge and a change of propellers move thrust by a few percent."""


def main(
    target: Annotated[str, tyro.conf.Positional],
    from_log: tuple[Path, ...],
    out: Path | None = None,
    runs: Path = Path("runs"),
    name: str | None = None,
    seed: int = 0,
    updates: int | None = None,
    anew: bool = False,
    margin: float = MARGIN,
    task: str | None = None,
    robot: str | None = None,
    device: str = "cpu",
    episodes: int = 500,
    checkpoint_seconds: float = 5.0,
    force: bool = False,
    json: bool = False,
) -> int:
    """Identify a robot from logs of its policy, narrow the task's ranges to it, train again, and compare on that robot.

    What the logs don't determine keeps its range. A fit that can't be believed is refused, as by 'robo-rl sysid', and
    nothing is trained. Then the old policy and the new one run in the same held-out episodes of the identified robot;
    exits with 1 if the new one is not better. With --json: what 'train' gives, and file, bounds, parameters, and
    comparison: old and new (as 'evaluate' gives), measure, episodes (that neither failed), ratio, ratio_low,
    ratio_high (new error over old in those, 95 % interval), better.

    Args:
        target: The policy that the robot ran: its run's folder, whose networks the training begins with, or its
            .onnx file, or zoo:NAME, whose training begins anew.
        from_log: Recordings (*.mcap) of the policy's node, of 'robo-rl run --record' or of 'robo-rl record'.
        out: Where the ranges are written (*.toml); by default beside the first log.
        runs: Folder in which the new run's folder is created.
        name: The run folder's name, in place of the task, the seed and a number.
        seed: Random seed of the training.
        updates: Updates of the training, times the task's update scale, in place of the old one's.
        anew: Begin with new networks, not with the old policy's.
        margin: Part by which factors may leave what the logs tell, to both sides: what changes until the next session.
        task: The task, if it is in your own file: FILE.py:CLASS (for a .onnx file).
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        device: cpu or cuda, for simulation and networks.
        episodes: Number of held-out episodes of the comparison.
        checkpoint_seconds: Time (s) between checkpoints.
        force: Train although the fit was refused.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.commands.own_robots import sysid
    from robo_rl.commands.training.train import learn, require_device, require_times
    from robo_rl.deploy.robot.logs.reader import read_log
    from robo_rl.identification.findings import ITERATIONS, find
    from robo_rl.identification.retraining import bounds_with, compare, origin_of, require_log, widened
    from robo_rl.learn.runs.folder import Run
    from robo_rl.sim.ranges import write_ranges

    require_device(device)
    require_times(episodes, checkpoint_seconds)
    require_place(out, "--out", ".toml")
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; expected 1 or more: the old and the new policy are compared")
    if not 0.0 <= margin < 0.5:
        raise ValueError(f"--margin is {margin:g}; expected 0 to below 0.5")
    origin = origin_of(target, task, robot)
    origin.task.require_device(device)
    require_device(device, origin.algorithm)
    chosen = {**origin.hyperparameters, **({} if updates is None else {"updates": updates})}
    logs = [read_log(path) for path in from_log]
    for log in logs:
        require_log(log, origin)
        if log.damage:
            say(f"{log.path}: {len(log.damage)} parts can't be read; the rest is used", json)
    with Progress("fitting", ITERATIONS) as progress:
        found = find(logs, origin.task, progress.update)
    say(f"{', '.join(map(str, from_log))}: {found.recorded}, {origin.task.spec.robot.title}", json)
    sysid.describe(found, json)
    if (found.faults or not found.bounds) and not force:
        reason = "" if found.faults else "the logs determine none of the task's ranges; "
        raise ValueError(f"{reason}nothing is trained; --force trains all the same" if found.bounds else
                         f"{reason}nothing is trained")  # fmt: skip
    spec = origin.task.spec
    told = found.bounds | widened(found.estimates, spec.ranges, found.bounds)
    bounds = bounds_with(told, spec.ranges, margin)
    file = out or from_log[0].with_suffix(".toml")
    kept = [name for name in spec.ranges if name not in bounds and "/" not in name]
    note = f"{sysid.source(found, from_log)}, factors by {margin:.0%} more"
    write_ranges(file, spec.name, bounds, note, f"as in the task: {', '.join(kept)}")
    say(f"{file}: {_listed(bounds, origin.task)}\n  as in the task: {', '.join(kept)}", json)
    begun = origin.run if origin.run is not None and not anew else None
    run = Run.create(
        runs, origin.task_source, origin.robot_source, origin.algorithm, seed, chosen, {**origin.ranges, **bounds},
        begun, origin.plant, name,
    )  # fmt: skip

    def compared() -> dict[str, Any]:
        identified = run.task()
        tight = {**origin.ranges, **told}
        result = compare(identified, tight, origin.policy, run, episodes)
        _say_compared(result, identified, json)
        _say_next(run.folder, file, origin, result["better"], json)
        written = {"file": str(file), "bounds": {key: list(pair) for key, pair in bounds.items()}}
        return {**written, "parameters": sysid.parameters(found), "comparison": result}

    code = learn(run, device, 0, checkpoint_seconds, json, resumed=False, origin=begun, after=compared)
    if code:
        return code
    done = run.done() or {}
    return 0 if done.get("comparison", {}).get("better") else 1


def _listed(bounds: Mapping[str, Sequence[float]], task: Task) -> str:
    """Ranges and what they were."""
    rows = []
    for name, (low, high) in bounds.items():
        before = task.spec.ranges[name].end
        rows.append(f"\n  {name:<22} {low:.4g} to {high:.4g}   was {before[0]:.4g} to {before[1]:.4g}")
    return "".join(rows)


def _say_compared(result: dict[str, Any], task: Task, json: bool) -> None:
    from robo_rl.evaluate.evaluation import outcome

    for name in ("old", "new"):
        row = result[name]
        say(
            f"{name} policy on the identified robot: {outcome(task, row, held_out=True)}",
            json,
        )
    if result["episodes"]:
        say(
            f"in the {result['episodes']} episodes that neither failed, the new policy's {result['measure']} is "
            f"{result['ratio']:.2f} times the old one's (95 % interval {result['ratio_low']:.2f} to "
            f"{result['ratio_high']:.2f})",
            json,
        )


def _say_next(folder: Path, file: Path, origin: Origin, better: bool, json: bool) -> None:
    word = shell_word(folder)
    if not better:
        say("the new policy is not better on the identified robot; keep the old one", json)
        return
    begin = "" if origin.run is None else f" --begin-from {shell_word(origin.run.folder)}"
    say(
        f"Next:  robo-rl export {word} --out policy.onnx\n       robo-rl report {word}\n"
        f"       to train with ranges that you changed:  robo-rl train {origin.task.name} --ranges {shell_word(file)}"
        f"{begin}",
        json,
    )
