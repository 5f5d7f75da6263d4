"""The report on policies of any task: ``gather`` runs the episodes that the page is about, ``write`` makes the page."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.evaluate.comparison import compare, scores
from robo_rl.evaluate.evaluation import BATCH, Conditions, Episodes, perturbations, quantity, rollout, sweep
from robo_rl.evaluate.statistics import distance
from robo_rl.evaluate.transfer import Transfer
from robo_rl.files import read_bytes
from robo_rl.files.text import MAX_BYTES, fits
from robo_rl.learn.runs.folder import Run
from robo_rl.policies.loading import CLASSICAL, Loaded, load
from robo_rl.report import kind_report, plots
from robo_rl.report.findings import RECORDED, Findings, Plot, Section, Subject
from robo_rl.report.page import pictures, write_page
from robo_rl.report.worst import films, rerun
from robo_rl.sim.robots.figures import is_number
from robo_rl.sim.tasks import Measure, Task
from robo_rl.zoo import located

FAILURES_SHOWN, RANGES_SHOWN = 12, 6
"""Rows of the table of failures, and its columns of ranges, those in which failures differ most."""
WEAK = 0.75
"""Success of a classical controller below which it is no baseline: it was not tuned for what the ranges hold."""
BLOCKS, INTERIMS = 5, 2
"""Of the sequential test; together ten blocks of episodes."""


def gather(
    targets: Sequence[str], episodes: int = 1000, seed: int = 0, robot: str | None = None, task_name: str | None = None,
    transfer: Path | None = None,
) -> Findings:  # fmt: skip
    """Run everything that the page shows. ``targets`` are runs or bundles of one task and robot.

    ``transfer`` is a file with what 'robo-rl transfer --json' printed about the first one.
    """
    loaded = load_all(targets, episodes, robot, task_name)
    task = loaded[0].task
    there = read_transfer(transfer, task) if transfer else None
    conditions = Conditions(episodes=episodes, seed=seed, recorded=RECORDED)
    few = Conditions(episodes=max(20, episodes // 10), seed=seed)
    subjects = [subject_of(target, each, conditions) for target, each in zip(targets, loaded, strict=True)]
    classical = None
    if task.controller() is not None:
        controller = load(CLASSICAL, task)
        classical = Subject(CLASSICAL, controller, rollout(task, controller.policy, conditions, "classical controller"))
    grid = perturbations(task)
    options = {"--task": task_name, "--robot": robot}
    found = Findings(
        task=task,
        conditions=conditions,
        subjects=subjects,
        classical=classical,
        comparisons=[_compare(subject, classical, task.measures[-1]) for subject in subjects] if classical else [],
        few=few.episodes,
        transfer=there,
        worst=rerun(task, loaded[0].policy, conditions, subjects[0].episodes),
        options="".join(f" {name} {shlex.quote(value)}" for name, value in options.items() if value),
    )
    sweeps = {name: sweep(task, policy, grid, few, name) for name, policy in found.policies.items()} if grid else {}
    return dataclasses.replace(found, sweeps=sweeps)


def load_all(targets: Sequence[str], episodes: int, robot: str | None, task: str | None = None) -> list[Loaded]:
    """The policies ``targets`` (runs or bundles), all of one task and robot."""
    if not 20 <= episodes <= BATCH:
        raise ValueError(f"episodes is {episodes}; expected 20 to {BATCH}")
    policies = [load(target, task, robot) for target in targets]
    expected = policies[0].task.spec.name, policies[0].task.spec.robot.name
    for target, loaded in zip(targets, policies, strict=True):
        names = loaded.task.spec.name, loaded.task.spec.robot.name
        if names != expected:
            raise ValueError(f"{target} is of task and robot {names}; expected {expected}, those of {targets[0]}")
    return policies


def subject_of(target: str, loaded: Loaded, conditions: Conditions) -> Subject:
    """Run it, and read where it comes from."""
    episodes = rollout(loaded.task, loaded.policy, conditions, loaded.name)
    path = located(target)
    if path.suffix == ".onnx":
        bundle = Bundle.read(path)
        return Subject(target, loaded, episodes, bundle.contract, bundle.digest)
    run = Run.open(path)
    policy, provenance = run.policy()
    return Subject(target, loaded, episodes, policy.contract(provenance), metrics=run.metrics())


def _compare(subject: Subject, classical: Subject, measure: Measure) -> dict[str, Any]:
    """AdaStop on blocks of the same episodes, on their errors: "larger" means that the subject's are smaller."""
    size = len(subject.episodes) // (BLOCKS * INTERIMS)
    found = scores(subject.episodes, classical.episodes, measure)
    blocks = [score[: size * BLOCKS * INTERIMS].reshape(-1, size).mean(1) for score in found]
    names = ("policy", CLASSICAL)
    return {**compare(dict(zip(names, (b.__getitem__ for b in blocks), strict=True)), BLOCKS, INTERIMS), "block": size}


class TransferFileError(ValueError):
    """A file of 'robo-rl transfer --json' can't be read. The message names it."""


def read_transfer(path: Path, task: Task) -> Transfer:
    """What 'robo-rl transfer --json' printed: the last line of a file."""
    expected = f"expected what 'robo-rl transfer --json' prints about a policy of {task.spec.name}"
    if not path.is_file():
        raise ValueError(f"{path}: the file does not exist; {expected}")
    try:
        found = json.loads(read_bytes(path, MAX_BYTES).decode().splitlines()[-1])
        parts = found["home"], found["engines"], found["perturbations"]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}; {expected}") from None
    if (found.get("task"), found.get("robot")) != (task.spec.name, task.spec.robot.name):
        raise ValueError(f"{path}: it is of {found.get('task')} and {found.get('robot')}; {expected}")
    home, engines, perturbations = parts
    with fits(path, expected.removeprefix("expected "), TransferFileError):
        _require(isinstance(engines, list), "engines", engines)
        rows = [_row(row, "episodes", "kept") for row in engines]
        _require(all(isinstance(row[name], str) for row in rows for name in ("engine", "summary")), "engines", rows)
        _require(perturbations.keys() <= task.spec.ranges.keys(), "perturbations", list(perturbations))
        columns = {name: [_row(row, "value") for row in column] for name, column in perturbations.items()}
        return Transfer(task.measures, _row(home), rows, columns)


def _require(good: bool, name: str, value: object) -> None:
    """ValueError about a field of a file that is not as it was written."""
    if not good:
        raise ValueError(f"{name} is {str(value)[:100]!r}")


def _row(row: dict[str, Any], *numbers: str) -> dict[str, Any]:
    """A row of figures: rates of success, and other ``numbers``, which are null where they were not finite."""
    rates = ("success", "success_low", "success_high")
    _require(all(is_number(row[name]) and 0.0 <= row[name] <= 1.0 for name in rates), "success", row)
    _require(all(row[name] is None or is_number(row[name]) for name in numbers), ", ".join(numbers), row)
    return {name: math.nan if value is None else value for name, value in row.items()}


def sections_of(findings: Findings) -> list[Section]:
    """What the kind of robot adds to the page."""
    kind = kind_report(findings.task.spec.robot.kind)
    return kind.sections(findings) if kind else []


def figures_of(findings: Findings, sections: Sequence[Section]) -> dict[str, Any]:
    """The figures that ``robo-rl report --json`` prints and the page shows."""
    found = findings.figures()
    for section in sections:
        found |= section.figures
    return found


def error_series(task: Task, episodes: Episodes) -> dict[str, list[np.ndarray]]:
    """By measure, of each recorded episode: the error (steps,) until it ended. Of a team the mean over its robots."""
    names = [name for name in episodes.recording if not name.endswith("_command")] or []
    truth = {name: torch.from_numpy(episodes.recording[name]).flatten(0, 1) for name in episodes.recording}
    steps, columns = episodes.recording[names[0]].shape[:2]
    lengths = [round(duration / task.spec.control_period) for duration in episodes.duration]
    found = task.errors(truth)
    series = {}
    for measure in task.measures:
        error = found[measure.error].reshape(steps, columns // episodes.team, episodes.team).mean(2).numpy()
        series[measure.error] = [error[: lengths[i], i] for i in range(error.shape[1])]
    return series


def failures(findings: Findings) -> list[dict[str, float]]:
    """The first subject's failed episodes with what was drawn for them, a column per range.

    Of vectors the length where they have any direction, else the mean. First come the ranges in which failed episodes
    differ most from the others, by the statistic of Kolmogorov and Smirnov.
    """
    episodes, ranges = findings.subjects[0].episodes, findings.task.spec.ranges
    lost = np.flatnonzero(~episodes.survived)
    if not len(lost):
        return []
    columns: dict[str, np.ndarray] = {}
    for name, drawn in episodes.drawn.items():
        if name not in ranges or np.ptp(drawn) == 0:
            continue
        low, high = ranges[name].end
        factor, label = plots.range_label(name, ranges[name])
        vector = drawn.ndim > 1
        value = drawn if not vector else np.linalg.norm(drawn, axis=1) if low == -high else drawn.mean(1)
        columns[label] = factor * value
    order = list(columns)
    if episodes.survived.any():
        parts = {name: (value[~episodes.survived], value[episodes.survived]) for name, value in columns.items()}
        order.sort(key=lambda name: -distance(*parts[name]))
    return [
        {"episode": int(i) + 1, "lasted, s": float(episodes.duration[i])}
        | {name: float(columns[name][i]) for name in order[:RANGES_SHOWN]}
        for i in lost[:FAILURES_SHOWN]
    ]


def write(findings: Findings, sections: Sequence[Section], out: Path, plain: bool = False) -> int:
    """Write the page, ``plain`` without its script; returns its size in bytes."""
    first, task = findings.subjects[0], findings.task
    kind = kind_report(task.spec.robot.kind)
    hints = kind.HINTS if kind else {}
    lost = int((~first.episodes.survived).sum())
    trained = {name: subject.metrics for name, subject in findings.named.items() if subject.metrics}
    return write_page(
        out,
        first,
        figures_of(findings, sections),
        plain,
        findings=findings,
        sections=sections,
        episodes=_episodes(findings),
        robustness=_robustness(findings, hints),
        transfer=plots.transfer(findings.transfer, task.spec.ranges) if findings.transfer else None,
        training=[Plot(*drawn) for drawn in plots.training(trained)] if trained else [],
        failures=failures(findings),
        lost=lost,
        summaries=summaries(findings),
        weak=findings.classical is not None and findings.classical.figures["success"] < WEAK,
        goes_on=not task.knows_success,
        commands=_commands(findings, sections),
        pictures=pictures(first.episodes.motion),
        worst=films(findings.worst),
    )


def summaries(findings: Findings) -> dict[str, str]:
    """A line that says what a section shows, by the section."""
    first, task = findings.subjects[0], findings.task
    found = {
        "results": _result(findings),
        "episodes": _spread(first.episodes, findings.measure),
        "failures": _lost(first.episodes),
        "ranges": f"{len(task.spec.ranges)} ranges, {len(task.perturbed)} of them looked at one by one above.",
    }
    if first.contract is not None and first.provenance is not None:
        contract, origin = first.contract, first.provenance
        inputs, outputs = (sum(c.size for c in channels) for channels in (contract.signals, contract.commands))
        found["contract"] = (
            f"Reads {inputs:,} numbers in {len(contract.signals)} signals and commands {outputs:,} "
            f"number{'s' * (outputs > 1)} at {1 / contract.control_period:g} Hz."
        )
        found["policy"] = f"Trained by {origin.algorithm} in {origin.environment_steps:,} control steps."
    rows = [(name, row) for name, table in findings.sweeps.get("policy", {}).items() for row in table]
    if rows:
        name, row = min(rows, key=lambda pair: pair[1]["success"])
        low, high = task.spec.ranges[name].end
        others = sum(other["success"] == row["success"] for _, other in rows) - 1
        and_others = f", and as low at {others} more" if others and row["success"] < 1.0 else ""
        found["robustness"] = (
            f"Lowest rate ({findings.rate}): {100 * row['success']:.1f} %, with {plots.spoken(name)} at "
            f"{row['value']:.3g} (training: {low:.3g} to {high:.3g}){and_others}."
        )
    rewards = [row["reward"] for row in first.metrics if "reward" in row]
    if len(rewards) > 1:
        found["training"] = (
            f"The reward per step went from {rewards[0]:.3g} to {rewards[-1]:.3g}, {max(rewards):.3g} at best."
        )
    return found


def _result(findings: Findings) -> str:
    """Who has the smallest error, and who fails least often."""
    measure = findings.measure
    rows = {
        "the classical controller" if name == CLASSICAL else name: one.figures
        for name, one in findings.named.items()
        if name != CLASSICAL or one.figures["success"] >= WEAK
    }
    most = max(row["success"] for row in rows.values())
    best = [name for name, row in rows.items() if row["success"] == most]
    rate = "most successes" if findings.task.knows_success else "fewest failures"
    text = f"{rate}: {' and '.join(best)} ({findings.rate} {100 * most:.1f} %)."
    finite = {name: row[measure.key] for name, row in rows.items() if not math.isnan(row[measure.key])}
    if not finite:
        return text[0].upper() + text[1:]
    least = min(finite, key=lambda name: finite[name])
    return f"Smallest {plots.spoken(measure.error)}: {least} ({quantity(finite[least], measure.unit)}); {text}"


def _spread(episodes: Episodes, measure: Measure) -> str:
    """The median of an error and what 95 % of episodes stay below."""
    error = episodes.errors[measure.error]
    error = error[~np.isnan(error)]
    if not len(error):
        return "No episode lasted without failure."
    half, most = (quantity(float(np.quantile(error, part)), measure.unit) for part in (0.5, 0.95))
    return f"{plots.spoken(measure.error).capitalize()}: {half} in the median, below {most} in 95 % of the episodes."


def _lost(episodes: Episodes) -> str:
    """How many failed, and how soon."""
    lost = episodes.duration[~episodes.survived]
    if not len(lost):
        return f"None of {len(episodes):,} episodes failed."
    when = f"after {lost[0]:.3g} s" if len(lost) == 1 else f"half of them within {np.median(lost):.3g} s"
    return f"{len(lost):,} of {len(episodes):,} episodes failed, {when}."


def _episodes(findings: Findings) -> list[Plot]:
    """The plots of all episodes: survival and, for each measure, its course and its distribution."""
    task, both = findings.task, findings.episodes
    longest = max(float(of.duration.max()) for of in both.values())
    length = findings.conditions.seconds or min(task.spec.episode_length, math.ceil(longest))
    found = [
        Plot(
            plots.survival(both, length),
            "All episodes. The line falls early if initial states are the cause of failures, later for disturbances.",
        )
    ]
    if any((of.success != of.survived).any() for of in both.values()):
        caption = "All episodes. Fraction of episodes that have succeeded, over time."
        found.append(Plot(plots.success(both, length), caption))
    recorded = {name: of for name, of in both.items() if of.recording}
    series = {name: error_series(task, of) for name, of in recorded.items()}
    ended = {name: ~of.survived for name, of in recorded.items()}
    known: list[list[np.ndarray]] = []
    for measure in task.measures:
        lines = {name: of[measure.error] for name, of in series.items()}
        flat = [line for of in lines.values() for line in of]
        shown = any(all(map(np.array_equal, flat, other)) for other in known)  # measures may share an error
        if flat and not shown and not all(_is_clock(line, task.spec.control_period) for line in flat):
            known.append(flat)
            count = len(next(iter(lines.values())))
            caption = (
                f"The first {count} episodes{' of each' if len(lines) > 1 else ''}; a cross marks a failure. Look at "
                "how fast the errors fall, and whether they stay small."
            )
            failed = {name: ended[name][: len(of)].tolist() for name, of in lines.items()}
            found.append(Plot(plots.errors(lines, failed, measure, task.spec.control_period), caption))
        caption = (
            f"All episodes, {plots.spoken(measure.error)}, {measure.described}. Look at how far left a line rises "
            "(precision), at its tail, and at how high it ends (survival)."
        )
        found.append(
            Plot(plots.distribution({name: of.errors[measure.error] for name, of in both.items()}, measure), caption)
        )
    return found


def _is_clock(line: np.ndarray, period: float) -> bool:
    """Whether an error is the time since the episode began, such as that until a goal is reached."""
    return len(line) > 1 and np.allclose(np.diff(line), period, rtol=1e-3)


def _robustness(findings: Findings, hints: Mapping[str, str]) -> list[Plot]:
    usual = "Look at where the upper line falls, and how far the error rises before."
    return [
        Plot(
            plots.perturbation(
                name,
                {policy: table[name] for policy, table in findings.sweeps.items()},
                findings.measure,
                findings.task.spec.ranges[name],
                findings.rate,
            ),
            hints.get(name, usual),
        )
        for name in findings.sweeps.get("policy", {})
    ]


def _commands(findings: Findings, sections: Sequence[Section]) -> list[str]:
    """What to type to repeat the numbers."""
    task, options = findings.task, findings.options
    targets = [shlex.quote(subject.target) for subject in findings.subjects]
    target = f"{targets[0]}{options}"
    count = f"--episodes {findings.conditions.episodes} --seed {findings.conditions.seed}"
    commands = [
        f"robo-rl report {' '.join(targets)}{options} {count}",
        *(f"robo-rl evaluate {one}{options} {count}" for one in targets),
    ]
    if findings.classical is not None:
        source = task.source
        where = f"{os.path.relpath(source.file)}:{source.class_name}" if source else task.spec.name
        named = options if "--task" in options else f" --task {shlex.quote(where)}{options}"
        commands += [
            f"robo-rl evaluate {CLASSICAL}{named} {count}",
            f"robo-rl evaluate {target} --against {CLASSICAL}",
        ]
    commands += [command for section in sections for command in section.commands]
    if findings.sweeps:
        commands.append(f"robo-rl evaluate {target} --sweep")
    return [*commands, f"robo-rl transfer {target}", f"robo-rl play {target}"]
