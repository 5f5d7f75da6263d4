"""Evaluation: success rate and errors of a policy over many held-out episodes, with confidence intervals.

Any policy can be evaluated in the same episodes: a policy graph, an exported file, a classical controller. Episodes
are drawn from the task's full ranges with seeds that training never uses.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.console import Progress
from robo_rl.contract import Command
from robo_rl.contract.channels import feedback
from robo_rl.evaluate.proportion import wilson
from robo_rl.files.suggestions import expected_one_of
from robo_rl.learn.experience.tape import Tape
from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.policy import PolicyGraph
from robo_rl.sim.accelerate.fuse.random import LIMIT
from robo_rl.sim.drawing import Motion, can_draw, record
from robo_rl.sim.env import VecEnv
from robo_rl.sim.ranges import Range
from robo_rl.sim.tasks import Measure, Task

BATCH = 2048  # episodes simulated at once
LONGEST = 3600.0  # s
SLOTS = 500  # parts of the time window at the end of an episode
SIGNAL_STEPS = 2000  # control steps that ``rollout_signals`` looks at

Session = Callable[[Mapping[str, Tensor], Tensor], tuple[dict[str, Tensor], Tensor]]
"""(signals, state) -> (commands, state), like ``PolicyGraph``."""


@dataclass(frozen=True)
class Episodes:
    """The results of some episodes. Errors are those of the true state, NaN for episodes that failed, unless they count
    in it (``Measure.failed``).

    A team's episode is one; its errors are the means (of squares, the roots of the means) over its robots.
    """

    survived: np.ndarray
    """(n,) bool: did not fail."""
    success: np.ndarray
    """(n,) bool: succeeded; of a task without success: did not fail."""
    duration: np.ndarray
    """(n,) s until failure or success, or the whole episode."""
    measures: tuple[Measure, ...]
    """What was measured."""
    errors: dict[str, np.ndarray]
    """(n,) by measure, over its window of time; of episodes that were shorter, over all of them."""
    recording: dict[str, np.ndarray] = field(default_factory=dict)
    """(steps, recorded, k) true quantities, set-points, and commands of the first episodes."""
    motion: Motion | None = None
    """What was to be seen of them; None where nothing was recorded, or the plant can't be drawn."""
    drawn: dict[str, np.ndarray] = field(default_factory=dict)
    """(n,) or (n, k): what was drawn from every range, by name; of a team the mean over its robots."""
    team: int = 1
    """Robots in each episode: so many columns of the recording belong to one."""

    def __len__(self) -> int:
        return len(self.survived)

    @classmethod
    def joined(cls, parts: Sequence[Episodes]) -> Episodes:
        """All episodes of the parts; the first part's recording."""
        survived, success, duration = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("survived", "success", "duration")
        )
        errors, drawn = (
            {name: np.concatenate([getattr(part, field)[name] for part in parts]) for name in getattr(parts[0], field)}
            for field in ("errors", "drawn")
        )
        return cls(
            survived,
            success,
            duration,
            parts[0].measures,
            errors,
            parts[0].recording,
            parts[0].motion,
            drawn,
            parts[0].team,
        )

    def part(self, start: int, stop: int) -> Episodes:
        """Episodes ``start`` to ``stop`` without their recording."""
        errors, drawn = (
            {name: value[start:stop] for name, value in values.items()} for values in (self.errors, self.drawn)
        )
        survived, success, duration = (x[start:stop] for x in (self.survived, self.success, self.duration))
        return Episodes(survived, success, duration, self.measures, errors, drawn=drawn, team=self.team)

    def summary(self) -> dict[str, float | int]:
        """The figures that ``robo-rl evaluate --json`` prints. Success has its 95 % Wilson interval."""
        low, high = wilson(int(self.success.sum()), len(self))
        figures: dict[str, float | int] = {
            "episodes": len(self),
            "success": float(self.success.mean()),
            "success_low": low,
            "success_high": high,
        }
        for measure in self.measures:
            figures |= self._figures(measure)
        return {**figures, "duration_mean_s": float(self.duration.mean())}

    def _figures(self, measure: Measure) -> dict[str, float]:
        error = self.errors[measure.error]
        error = error[self.survived] if measure.failed is None else error
        if measure.over == "rms":
            return {measure.key: float(np.sqrt(np.mean(error**2))) if len(error) else float("nan")}
        mean, tail = (float(error.mean()), float(np.quantile(error, 0.95))) if len(error) else (float("nan"),) * 2
        return {measure.key: mean, measure.tail_key: tail}


def shown(measures: Sequence[Measure], summary: Mapping[str, float | int]) -> str:
    """The errors of a summary for people: "position error 1.2 cm, tracking error 3.4 cm"."""
    return ", ".join(f"{m.error.replace('_', ' ')} {quantity(summary[m.key], m.unit)}" for m in measures)


def outcome(task: Task, summary: Mapping[str, float | int], seed: int | None = None, held_out: bool = False) -> str:
    """What became of episodes, for people, with the 95 % interval: of a task that knows success, which part succeeds,
    and the errors; of others, the errors first, and which part did not fail, which alone shows nothing."""
    which = f"{'held-out ' if held_out else ''}episodes" + ("" if seed is None else f" of seed {seed}")
    part = f"{summary['success']:.1%} of {summary['episodes']:,} {which}"
    interval = f"({summary['success_low']:.1%} to {summary['success_high']:.1%})"
    errors = shown(task.measures, summary)
    if task.knows_success:
        return f"{part} succeed {interval}, {errors}"
    return f"{errors}; {task.survival}: {part} {interval}"


def quantity(value: float, unit: str) -> str:
    """A number with its unit, lengths below 1 m in cm, 10 and more with one decimal; NaN: all episodes failed."""
    if math.isnan(value):
        return "n/a (no episode without failure)"
    value, unit, decimals = (100 * value, "cm", 2) if unit == "m" and value < 1.0 else (value, unit, 3)
    return f"{value:.{1 if abs(value) >= 10 else decimals}f}" + f" {unit}" * (unit != "1")


class GraphPolicy:
    """A policy graph as a policy."""

    def __init__(self, policy: PolicyGraph) -> None:
        self.policy, self.network = policy.eval(), policy.shape

    def initial_state(self, n: int) -> Tensor:
        return self.policy.initial_state(n)

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        with torch.no_grad():
            return self.policy(signals, state)


class ControllerPolicy:
    """The task's robot under its classical controller, or another one."""

    def __init__(self, task: Task, controller: Any = None) -> None:
        self.controller = controller or task.controller()
        if self.controller is None:
            raise ValueError(f"task '{task.name}' has no classical controller")

    def initial_state(self, n: int) -> Tensor:
        return torch.from_numpy(self.controller.first_state(n))

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        return self.controller(signals, state)


class StopPolicy:
    """What actuators are told when a robot is stopped: each command's safe value, or what was measured first."""

    def __init__(self, task: Task) -> None:
        self.spec = task.spec
        self.sizes = [command.size for command in task.spec.commands]

    def initial_state(self, n: int) -> Tensor:
        """(n, 1 + elements): whether anything was measured yet, and what is held."""
        return torch.zeros(n, 1 + sum(self.sizes))

    def __call__(self, signals: Mapping[str, Tensor], state: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        begun, held = state[:, :1] > 0, state[:, 1:]
        now = torch.cat([self._value(command, signals, len(state)) for command in self.spec.commands], 1)
        held = torch.where(begun, held, now)
        names = [command.name for command in self.spec.commands]
        sent = dict(zip(names, held.split(self.sizes, 1), strict=True))
        return sent, torch.cat([torch.ones(len(state), 1), held], 1)

    def _value(self, command: Command, signals: Mapping[str, Tensor], n: int) -> Tensor:
        """(n, k)."""
        if command.safe != "hold":
            return torch.tensor([command.safe]).expand(n, -1)
        measured = feedback(self.spec.signals, command)
        return torch.stack([signals[name][:, column] for name, column in measured], 1)


@dataclass(frozen=True)
class Conditions:
    """Under which conditions to run a policy.

    ``fixed`` sets ranges of the task, by name, to one value, or to one per episode (n,), where NaN fixes none.
    """

    episodes: int = 1000
    seed: int = 0
    seconds: float | None = None
    """Length of an episode; None for the task's."""
    fixed: Mapping[str, float | Tensor] = field(default_factory=dict)
    recorded: int = 0
    """Of how many episodes to keep the whole trajectory."""
    make_plant: Callable[[int], Any] | None = None
    """Of n robots, in another engine than the task's own (``robo_rl.sim.engines``)."""
    first: int = 0
    """Number of the first episode: an episode's draws follow from ``seed`` and its number alone."""


def rollout(task: Task, policy: Any, conditions: Conditions, title: str | None = "evaluating") -> Episodes:
    """Run ``conditions.episodes`` episodes. The same conditions give every policy the same episodes.

    Progress is shown under a ``title``, if there is one.
    """
    _check(task, conditions)
    parts = []
    total, seconds = conditions.episodes, conditions.seconds or task.spec.episode_length
    with Progress(title, total) as progress:
        for start in range(0, total, BATCH):
            count = min(BATCH, total - start)
            fixed = {
                name: value[start : start + count] if isinstance(value, Tensor) and value.ndim else value
                for name, value in conditions.fixed.items()
            }
            env = VecEnv(
                task,
                count,
                seed=HELD_OUT + 1000 * conditions.seed,
                fixed=fixed,
                evaluation=True,
                episode_length=2 * seconds,  # ends before
                make_plant=conditions.make_plant,
                first=conditions.first + start,
            )
            recorded = min(conditions.recorded, count) if start == 0 else 0
            report = functools.partial(_report, progress, start, count)
            parts.append(_rollout_batch(env, policy, seconds, recorded, report))
    return Episodes.joined(parts)


def _report(progress: Progress, start: int, count: int, part: float) -> None:
    """Show that ``part``, 0 to 1, of a batch of ``count`` episodes is done."""
    progress.update(start + int(part * count))


def _check(task: Task, conditions: Conditions) -> None:
    shortest = 2 * task.spec.control_period
    longest = min(LONGEST, shortest * (LIMIT // 8))
    if conditions.episodes < 1:
        raise ValueError(f"episodes is {conditions.episodes}; expected at least one")
    if conditions.seed < 0:
        raise ValueError(f"seed is {conditions.seed}; expected 0 or more")
    if conditions.seconds is not None and not shortest <= conditions.seconds <= longest:
        raise ValueError(f"seconds is {conditions.seconds:g}; expected {shortest:g} to {longest:g}")
    for name, value in conditions.fixed.items():
        if name not in task.spec.ranges:
            raise ValueError(
                f"fixed: '{name}' is not one of the task's ranges{expected_one_of(name, task.spec.ranges)}"
            )
        if not isinstance(value, Tensor) and not math.isfinite(value):
            raise ValueError(f"fixed: {name} is {value}; expected a finite number")
        if not isinstance(value, Tensor):
            task.spec.ranges[name].require(name, value, value)
        if isinstance(value, Tensor) and value.ndim and (value.ndim > 1 or len(value) < conditions.episodes):
            raise ValueError(
                f"fixed: {name} is {tuple(value.shape)} numbers; expected one, or one for each of "
                f"{conditions.episodes} episodes"
            )


def rollout_signals(task: Task, policy: Any, conditions: Conditions) -> dict[str, np.ndarray]:
    """The measured signals of some episodes, (steps, episodes, k) by name; an episode that fails is reset.

    Of the first ``SIGNAL_STEPS`` of long ones: it is all in memory.
    """
    env = VecEnv(task, conditions.episodes, HELD_OUT + 1000 * conditions.seed, fixed=conditions.fixed, evaluation=True)
    state, signals = policy.initial_state(env.n), env.signals()
    seen = []
    for _ in range(min(task.spec.episode_steps, SIGNAL_STEPS)):
        seen.append({name: value.numpy().copy() for name, value in signals.items()})
        commands, state = policy(signals, state)
        step = env.step(commands)
        signals = step.signals
        state[step.ids] = policy.initial_state(len(step.ids))
    return {name: np.stack([moment[name] for moment in seen]) for name in seen[0]}


class _Figure:
    """A measure, taken step by step: over the last seconds of each episode, or from some time on."""

    def __init__(self, measure: Measure, period: float, n: int) -> None:
        self.measure = measure
        steps = round(measure.window / period)
        self.begin, window = (0, max(1, steps)) if measure.over == "end" else (steps, 1)
        self.each = -(-window // SLOTS)
        slots = -(-window // self.each) if measure.over == "end" else 1
        self.sums, self.counts = torch.zeros(slots, n), torch.zeros(slots, n)
        self.early, self.before = torch.zeros(n), torch.zeros(n)

    def add(self, step: int, error: Tensor, under_way: Tensor) -> None:
        """The error (n,) after so many steps, of the episodes that are still under way."""
        error = error.square() if self.measure.over == "rms" else error
        error = torch.where(under_way, error, 0.0)
        if step < self.begin:
            self.early += error
            self.before += under_way
            return
        slot = step // self.each % len(self.sums) if self.measure.over == "end" else 0
        if self.measure.over == "end" and step % self.each == 0:
            self.sums[slot] *= ~under_way
            self.counts[slot] *= ~under_way
        self.sums[slot] += error
        self.counts[slot] += under_way

    def value(self) -> Tensor:
        """(n,): of episodes that ended before the time, all of them counts."""
        total, count = self.sums.sum(0), self.counts.sum(0)
        short = count == 0
        mean = torch.where(short, self.early, total) / torch.where(short, self.before, count)
        return mean.sqrt() if self.measure.over == "rms" else mean


def _rollout_batch(
    env: VecEnv, policy: Any, seconds: float, recorded: int, report: Callable[[float], None]
) -> Episodes:
    task, period, n = env.task, env.task.spec.control_period, env.n
    steps = round(seconds / period)
    state, signals = policy.initial_state(n), env.signals()
    under_way, failed, succeeded = torch.ones(n, dtype=torch.bool), *torch.zeros(2, n, dtype=torch.bool)
    duration = torch.full((n,), steps * period)
    figures = {measure.error: _Figure(measure, period, n) for measure in task.measures}
    few = torch.arange(recorded * env.team)
    drawn = {name: value.unflatten(0, (-1, env.team)).mean(1).numpy() for name, value in env.drawn.items()}
    tape, poses = Tape(steps), Tape(steps)
    model = env.plant.drawing() if recorded and can_draw(env.plant) else None
    for k in range(steps):
        if recorded:
            tape.note(k, {name: value.numpy() for name, value in env.truth(few).items()})
        if model is not None:
            poses.note(k, {"poses": env.plant.poses(few)})
        commands, state = policy(signals, state)
        if recorded:
            tape.note(k, {f"{name}_command": value[few].numpy() for name, value in commands.items()})
        errors = task.errors(env.truth())
        for name, figure in figures.items():
            figure.add(k, errors[name], under_way)
        step = env.step(commands)
        signals = step.signals
        failed |= under_way & step.failed
        succeeded |= under_way & step.succeeded
        duration[under_way & (step.failed | step.succeeded)] = (k + 1) * period
        under_way &= ~(step.failed | step.succeeded)
        if not under_way.any():
            break
        report((k + 1) / steps)
    means = {}
    for name, figure in figures.items():
        lost = float("nan") if figure.measure.failed is None else figure.measure.failed * figure.value()
        value = torch.where(failed, lost, figure.value()).unflatten(0, (-1, env.team))
        rms = figure.measure.over == "rms"
        means[name] = (value.square().mean(1).sqrt() if rms else value.mean(1)).numpy()
    recording = tape.until(k + 1)
    motion = None if model is None else record(env.task, model, poses.until(k + 1)["poses"], recording)
    survived = ~failed
    success = succeeded if type(task).succeeded is not Task.succeeded else survived
    survived, success, duration = (value[:: env.team] for value in (survived, success, duration))
    done = survived.numpy(), success.numpy(), duration.numpy()
    return Episodes(*done, task.measures, means, recording, motion, drawn, env.team)


def nominal(bounds: Range) -> float:
    """What a range is about: 0 of a load, a wind, a latency; 1 of a factor; else the middle."""
    low, high = bounds.end
    if low in (0.0, -high):
        return 0.0
    return 1.0 if low <= 1.0 <= high else 0.5 * (low + high)


def perturbations(task: Task) -> dict[str, list[float]]:
    """For a sweep: ranges of the task, each from half as far again below to above what training saw, and nominal.

    Of a range that is one number, multiples of it.
    """
    values: dict[str, list[float]] = {}
    for name in task.perturbed:
        bounds = task.spec.ranges[name]
        (low, high), middle = bounds.end, nominal(bounds)
        if low == high:
            values[name] = [part * high for part in (0.0, 1.0, 2.0, 4.0, 8.0)]
        elif middle == 0.0:
            values[name] = [0.0, high, 1.5 * high, 2 * high, 3 * high]
        else:
            points = {middle - 1.5 * (middle - low), low, middle, high, middle + 1.5 * (high - middle)}
            least, most = bounds.possible
            values[name] = sorted(round(x, 4) for x in points if least <= x <= most and (x > 0.0 or low <= 0.0))
    return values


def sweep(
    task: Task, policy: Any, perturbations: Mapping[str, Sequence[float]], conditions: Conditions, name: str = ""
) -> dict[str, list[dict[str, float]]]:
    """Success and error with one range at a time fixed to each of some values, all others as they are.

    ``conditions.episodes`` episodes per value, all in the same batches; ``name``: of the policy, where there are more.
    """
    each = conditions.episodes
    points = [(name, value) for name, values in perturbations.items() for value in values]
    given = {**dict.fromkeys(perturbations, math.nan), **conditions.fixed}
    numbers = {name: torch.as_tensor(value, dtype=torch.float32) for name, value in given.items()}
    drawn = {name: value[:each] if value.ndim else value.expand(each) for name, value in numbers.items()}
    fixed = {
        name: torch.cat([torch.full((each,), v) if name == n else own for n, v in points])
        for name, own in drawn.items()
    }
    many = dataclasses.replace(conditions, episodes=each * len(points), fixed=fixed)
    episodes = rollout(task, policy, many, f"{name}, perturbed" if name else "perturbed")
    table: dict[str, list[dict[str, float]]] = {name: [] for name in perturbations}
    for i, (label, value) in enumerate(points):
        table[label].append({"value": value, **episodes.part(i * each, (i + 1) * each).summary()})
    return table
