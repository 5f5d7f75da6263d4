"""Train a policy again for the robot that logs tell of: from what, on which robot, and whether it got better."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.config import ApgConfig, PpoConfig, SacConfig
from robo_rl.learn.runs.folder import Run
from robo_rl.policies.loading import load
from robo_rl.sim.ranges import Range, replaced
from robo_rl.sim.tasks import Task
from robo_rl.zoo import located

if TYPE_CHECKING:
    from robo_rl.deploy.robot.logs.reader import Log
    from robo_rl.identification.estimate import Estimate

SETTINGS = {"apg": ApgConfig, "ppo": PpoConfig, "sac": SacConfig}
RESAMPLED = 2000
"""Bootstrap samples of an interval (Efron 1979)."""
DIGITS = 8


@dataclass(frozen=True)
class Origin:
    """The policy that the robot ran, and how it was trained."""

    name: str
    task: Task
    policy: Any
    task_source: str
    robot_source: str | None
    algorithm: str
    hyperparameters: dict[str, Any]
    ranges: dict[str, Sequence[float]]
    """Other bounds than the task's, that it was trained with."""
    plant: str | None
    configuration_digest: str
    run: Run | None
    """Its run, from whose networks a training can begin."""


def origin_of(target: str, task: str | None = None, robot: str | None = None) -> Origin:
    """The policy called ``target``: a run's folder, or a .onnx file, which tells less of its training."""
    path = located(target)
    if path.suffix != ".onnx":
        run = Run.open(path)
        if run.algorithm not in SETTINGS:
            raise ValueError(f"{path} was trained by {run.algorithm}; expected one of {list(SETTINGS)}")
        if run.hyperparameters.get("base"):
            raise ValueError(f"{path} corrects a base, which stays as it is; expected a policy that learnt alone")
        policy, provenance = run.policy()
        return Origin(
            str(path), policy.task, GraphPolicy(policy), run.task_source, run.robot_source, run.algorithm,
            run.hyperparameters, dict(run.ranges), run.plant, provenance.configuration_digest, run,
        )  # fmt: skip
    from robo_rl.deploy.robot.bundle import Bundle

    contract, loaded = Bundle.read(path).contract, load(target, task, robot)
    known = [name for name in loaded.task.algorithms if name in SETTINGS]
    made = contract.provenance.algorithm
    algorithm = made if made in known else known[0]
    settings = dataclasses.asdict(SETTINGS[algorithm](**loaded.task.settings.get(algorithm, {})))
    plant = "mujoco" if loaded.task.plants else None
    return Origin(
        str(path), loaded.task, loaded.policy, task or contract.task, robot or contract.robot_name, algorithm, settings,
        {}, plant, contract.provenance.configuration_digest, None,
    )  # fmt: skip


def require_log(log: Log, origin: Origin) -> None:
    """ValueError unless a log is of this robot, running this policy."""
    theirs, ours = log.contract, origin.task.spec
    if theirs.robot != ours.robot.facts() or theirs.task != ours.name:
        same = theirs.robot_name == ours.robot.name and theirs.task == ours.name
        raise ValueError(
            f"{log.path}: it is of {theirs.task} on the robot '{theirs.robot_name}'"
            f"{', whose figures are others,' if same else ''}; expected {ours.name} on '{ours.robot.name}', as "
            f"{origin.name}"
        )
    digest = theirs.provenance.configuration_digest
    if digest != origin.configuration_digest:
        raise ValueError(
            f"{log.path}: it is of another policy ({digest[:DIGITS]}) than {origin.name} "
            f"({origin.configuration_digest[:DIGITS]}); expected a log of this one, or 'robo-rl sysid {log.path.name}' "
            "and 'robo-rl train --ranges'"
        )
    if not log.steps:
        raise ValueError(f"{log.path}: no control step of it can be read; expected a whole log")


def bounds_with(
    bounds: Mapping[str, tuple[float, float]], ranges: Mapping[str, Range], margin: float
) -> dict[str, tuple[float, float]]:
    """Bounds of which those that are factors are ``margin`` wider, as a part of them, to both sides."""
    return {
        name: (low * (1 - margin), high * (1 + margin)) if ranges[name].unit == "×" and low >= 0 else (low, high)
        for name, (low, high) in bounds.items()
    }


def widened(
    estimates: Sequence[Estimate], ranges: Mapping[str, Range], known: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Bounds of ranges that logs put a parameter outside of, without determining it: the range and what was found."""
    wide = {}
    for estimate in estimates:
        name, (low, high) = estimate.unknown.name, estimate.range
        if estimate.reason or name in known or name not in ranges or ranges[name].count is not None:
            continue
        least, most = ranges[name].end
        if low > most or high < least:
            wide[name] = min(low, least), max(high, most)
    return wide


def compare(
    task: Task, bounds: Mapping[str, Sequence[float]], old: Any, run: Run, episodes: int
) -> dict[str, Any]:  # fmt: skip
    """Both policies in the same held-out episodes of ``task`` with the bounds of some of its ranges changed."""
    task = copy.copy(task)  # the caller's stays as it is
    task.spec = dataclasses.replace(task.spec, ranges=replaced(task.spec.ranges, bounds))
    policy, _ = run.policy()
    conditions, measure = Conditions(episodes=episodes), task.measures[-1]
    before, after = (
        rollout(task, one, conditions, f"{name} policy") for name, one in (("old", old), ("new", GraphPolicy(policy)))
    )
    both = before.survived & after.survived
    first, second = (part.errors[measure.error][both] for part in (before, after))
    figures = ratio(first, second, squared=measure.over == "rms")
    old_figures, new_figures = before.summary(), after.summary()
    return {
        "old": old_figures, "new": new_figures, "measure": measure.error.replace("_", " "), "episodes": int(both.sum()),
        **figures, "better": better(old_figures, new_figures, figures["ratio"]),
    }  # fmt: skip


def better(old: Mapping[str, float], new: Mapping[str, float], over: float) -> bool:
    """Whether the new policy is: by success where the 95 % intervals are apart, else by the errors.

    ``over`` is the new error over the old one, NaN where there are none to compare.
    """
    if new["success_low"] > old["success_high"]:
        return True
    return not new["success_high"] < old["success_low"] and over < 1.0


def ratio(old: np.ndarray, new: np.ndarray, squared: bool) -> dict[str, float]:
    """The mean error (or root mean square) of ``new`` (n,) over that of ``old`` in the same episodes; 95 % interval.

    NaN without episodes.
    """
    if not len(old):
        return dict.fromkeys(("ratio", "ratio_low", "ratio_high"), float("nan"))
    power = 2.0 if squared else 1.0
    picks = np.random.default_rng(0).integers(0, len(old), (RESAMPLED, len(old)))
    over = (new**power)[picks].mean(1) / np.maximum((old**power)[picks].mean(1), 1e-30)
    middle = (new**power).mean() / max((old**power).mean(), 1e-30)
    low, high = np.quantile(over, (0.025, 0.975))
    return {
        "ratio": float(middle ** (1 / power)),
        "ratio_low": float(low ** (1 / power)),
        "ratio_high": float(high ** (1 / power)),
    }
