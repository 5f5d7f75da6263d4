"""What is conspicuous about a training: each check gives sentences with the figure, and what to try.

Thresholds are set so that they say nothing of the policies of the zoo, which learnt their tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.diagnosis.look import Look
from robo_rl.sim.tasks import Task

Metrics = Sequence[Mapping[str, float]]
ENOUGH = 8
"""Lines of metrics, below which nothing is said of how a training went."""
TINY = 1e-9
AT_ONCE = 0.02
"""Part of an episode: what fails within it, or within ``FEW`` control steps, fails at once."""
FEW, MOSTLY = 3, 0.9
HELD = 0.8
"""Part of the commands at their limits from which on they are said to be held there."""
LARGE, MINUTE = 50.0, 0.01
"""Of an observation's columns, which networks expect to be about 1: the 99th percentile of their size."""
DOMINANT = 8.0
"""Times as large as all other terms together."""
UNSURE, NOISY, CLIPPED = 0.01, 5.0, 0.45
"""Exploration's standard deviation at least and at most, in actions; the clip fraction at most."""
BLIND = 0.15
"""Explained variance of returns, below which a critic has learnt nothing."""
ALIKE, FEWEST = 0.9, 200
"""Rank correlation, and steps at least that it is computed of."""
UNMOVED = 1e-3
"""Relative change of a policy's weights in a whole training."""


@dataclass(frozen=True)
class Finding:
    """Something conspicuous."""

    check: str
    sentence: str
    """With the figure."""
    suggestion: str
    """What to try."""


@dataclass(frozen=True)
class Training:
    """What is known of a training."""

    task: Task
    algorithm: str
    settings: Mapping[str, Any]
    metrics: Metrics
    part: float
    """Of its updates that are done."""
    newest: Look
    idle: Look
    """Of a network that gives 0, and of random actions."""
    random: Look
    sources: Sequence[Sequence[str]]
    """By column of the observation."""
    unused: Sequence[int]
    """Elements of an action that change no command."""
    moved: float | None
    """Relative change of the policy's weights since the beginning; None where that is not known."""
    normalizes: bool

    def series(self, name: str) -> np.ndarray:
        """The values of a metric, in order; without those that are not finite."""
        values = np.array([row[name] for row in self.metrics if name in row], float)
        return values[np.isfinite(values)]


def diagnose(training: Training) -> list[Finding]:
    """All that is conspicuous, the most basic things first."""
    return [finding for check in CHECKS for finding in check(training)]


# --- the episode ---------------------------------------------------------------------------------------------------


def not_finite(t: Training) -> Iterator[Finding]:
    """States, rewards and observations."""
    diverged, count = t.series("episode/diverged").sum(), t.series("episode/count").sum()
    if diverged > 0.001 * max(count, 1.0):
        yield Finding(
            "not finite",
            f"the state of {diverged:.0f} robots ({diverged / max(count, diverged):.1%} of the episodes) was no longer "
            "finite",
            "a shorter time step, lower gains, or limits on what the task randomizes; a division by zero in reward",
        )
    for name, one in (("newest policy", t.newest), ("random actions", t.random)):
        if not one.finite:
            yield Finding(
                "not finite",
                f"under the {name}, a reward term, a command or the observation is not finite",
                "look for divisions by zero, logarithms and square roots of 0 in observe, command and reward",
            )
            return


def ends_at_once(t: Training) -> Iterator[Finding]:
    """Under every policy."""
    soon = max(FEW, round(AT_ONCE * t.task.spec.episode_steps))
    looks = (t.newest, t.idle, t.random)
    if all(len(one.lengths) >= 10 and sum(x <= soon for x in one.lengths) > MOSTLY * len(one.lengths) for one in looks):
        causes = {name: part for name, part in t.newest.causes.items() if part}
        why = ", ".join(f"{name} ({part} %)" for name, part in causes.items()) or "failed()"
        steps = int(np.median(t.newest.lengths))
        yield Finding(
            "ends at once",
            f"episodes end at once, whatever the policy does: half of them within {steps} control steps "
            f"({steps * t.task.spec.control_period:g} s of {t.task.spec.episode_length:g} s), for {why}",
            "compare failed() with where place() puts the robot: a sign, a unit (degrees, mm) or a limit is wrong",
        )


# --- what the policy sees and does -----------------------------------------------------------------------------------


def ignored_actions(t: Training) -> Iterator[Finding]:
    """Elements of an action that change no command."""
    if t.unused:
        names = [f"{i} ({t.task.action_names[i]})" if t.task.action_names else str(i) for i in t.unused]
        yield Finding(
            "ignored actions",
            f"{len(names)} of {t.task.action_size} elements of the action change no command: number {', '.join(names)}",
            "command() must use every element of the action; else a smaller action_size",
        )


def at_limits(t: Training) -> Iterator[Finding]:
    """Commands that are held at their limits, by random actions as well, or all of them by the policy."""
    held = []
    for command in t.task.spec.commands:
        low, high = np.array(command.lower), np.array(command.upper)
        parts = []
        for one in (t.newest, t.random):
            sent = one.commands[command.name].numpy()
            near = 1e-3 * (high - low)
            parts.append(float(((sent <= low + near) | (sent >= high - near)).mean()))
        newest, random = parts
        held.append(newest)
        changes = float(t.random.commands[command.name].std()) > 1e-6 * float((high - low).max())
        if newest > HELD and random > HELD and changes:
            yield Finding(
                "at limits",
                f"the command {command.name} is at a limit in {newest:.0%} of the steps of the newest policy, and in "
                f"{random:.0%} of those of random actions between -2 and 2",
                "scale the action in command(): an action of 1 should be a moderate command",
            )
            return
    if min(held) > MOSTLY:
        yield Finding(
            "at limits",
            f"the newest policy has all commands at a limit in {min(held):.0%} of its steps",
            "a term that weighs commands or their change, a smaller learning rate, or less of a reward for speed",
        )


def observation(t: Training) -> Iterator[Finding]:
    """Columns that are constant, or far from 1 without a normaliser."""
    if t.newest.observation is None or not t.newest.finite:
        return
    seen = t.newest.observation.numpy().astype(float)
    spread, size = seen.std(0), np.quantile(np.abs(seen), 0.99, axis=0)
    constant = [i for i in range(seen.shape[1]) if spread[i] <= 1e-7 * max(1.0, size[i])]
    for column in constant[:3]:
        from_what = ", ".join(t.sources[column]) if t.sources[column] else "no signal and no memory"
        yield Finding(
            "constant observation",
            f"number {column} of the observation is always {seen[0, column]:g} (it depends on {from_what})",
            "leave it out, or let observe() read the signal that was meant",
        )
    if t.normalizes:
        return
    for column in [i for i in np.argsort(-size) if size[i] > LARGE][:3]:
        yield Finding(
            "scale of observation",
            f"number {column} of the observation ({', '.join(t.sources[column])}) reaches {size[column]:.3g}, and "
            "nothing normalises it",
            "divide it by its usual size in observe(), or train with a normaliser (ppo has one)",
        )
    small = [i for i in np.argsort(size) if size[i] < MINUTE and i not in constant]
    for column in small[:3]:
        yield Finding(
            "scale of observation",
            f"number {column} of the observation ({', '.join(t.sources[column])}) is never above "
            f"{size[column]:.2g}, and nothing normalises it",
            "divide it by its usual size in observe(), so that it is about 1",
        )


# --- the reward ----------------------------------------------------------------------------------------------------


def constant_terms(t: Training) -> Iterator[Finding]:
    """Terms that never change: not of the newest policy, not of random actions, not in all of the training.

    One constant reward is usual, for each step of an episode that may fail.
    """
    spared = False
    for name in t.task.spec.reward:
        values = [one.terms[name] for one in (t.newest, t.idle, t.random) if len(one.terms[name])]
        if not values:
            continue
        lows, highs = [float(x.min()) for x in values], [float(x.max()) for x in values]
        past = t.series(f"reward/{name}")
        if not len(past):
            continue  # a longer episode than was looked at may have it
        low, high = min(*lows, *past[:1]), max(*highs, *past[:1])
        if high - low > 1e-6 * max(abs(high), abs(low), TINY) or np.ptp(past if len(past) else [0.0]) > TINY:
            continue
        if high > 0.0 and not spared:
            spared = True
            continue
        sparse = " (a reward that nobody has reached yet looks like this, too)" if high == 0.0 else ""
        yield Finding(
            "constant term",
            f"the reward term {name} is always {high:.3g}, in {sum(map(len, values)):,} steps of the newest policy and "
            f"of random actions{sparse}",
            "check what it reads; a constant teaches nothing. For a sparse reward: a term that leads there, "
            "easier initial states (a range with a rule), or demonstrations",
        )


def dominant_terms(t: Training) -> Iterator[Finding]:
    """A penalty, or a reward, beside which nothing else counts: in training, or under random actions as well."""
    names = list(t.task.spec.reward)
    if len(names) < 2:
        return
    rows = [row for row in t.metrics if f"reward/{names[0]}" in row]
    for row in (rows[0], rows[-1]) if rows else ():
        size = {name: abs(row[f"reward/{name}"]) for name in names}
        largest = max(size, key=lambda name: size[name])
        others = sum(size.values()) - size[largest]
        seen = [float(one.terms[largest].std()) for one in (t.newest, t.random) if len(one.terms[largest]) > 1]
        spread = max(seen, default=0.0)
        if size[largest] > DOMINANT * others and (row[f"reward/{largest}"] < 0.0 or spread > 0.05 * size[largest]):
            told = f"{size[largest] / others:.0f} times" if others > TINY else "far more than"
            if row[f"reward/{largest}"] > 0.0 and t.part > 0.5 and row is rows[-1]:
                continue  # what is to be done was learnt, and the penalties are small
            yield Finding(
                "dominant term",
                f"the reward term {largest} is {told} as large as all other terms together: "
                f"{row[f'reward/{largest}']:.3g} per step beside {others:.3g}",
                f"a weight of {largest} that makes it as large as what is to be done, or a smaller unit",
            )
            return


def rewards_the_opposite(t: Training) -> Iterator[Finding]:
    """A term pays for an error that the task is measured by, or the reward rises while the error grows."""
    for measure in t.task.measures:
        error = t.random.errors[measure.error].double()
        if measure.failed is not None or measure.unit == "s" or len(error) < FEWEST:
            continue
        for name, term in t.random.terms.items():
            alike = float(torch.corrcoef(torch.stack([_ranks(error), _ranks(term[: len(error)].double())]))[0, 1])
            if alike > ALIKE:
                yield Finding(
                    "rewards the opposite",
                    f"the reward term {name} grows with the {measure.error.replace('_', ' ')} (rank correlation "
                    f"{alike:.2f} over {len(error):,} steps of random actions), which should be small",
                    f"a negative weight of {name}, which is {t.task.spec.reward[name]:g} now",
                )
                return
    reward = t.series("reward")
    if len(reward) < ENOUGH or any(np.ptp(t.series(name)) > 0.2 for name in _levels(t)):
        return
    gained = _last(reward) - _first(reward)
    for measure in t.task.measures:
        course = t.series(f"error/{measure.error}")
        if measure.failed is not None or len(course) < 4:
            continue
        before, after = _first(course), _last(course)
        if gained > 0.1 * max(np.ptp(reward), TINY) and after > 1.3 * before and before > TINY:
            yield Finding(
                "rewards the opposite",
                f"the reward per step rises from {_first(reward):.3g} to {_last(reward):.3g} while the "
                f"{measure.error.replace('_', ' ')} grows from {before:.3g} to {after:.3g} {measure.unit}",
                "look for a sign: a term of an error needs a negative weight",
            )
            return


def better_to_fail(t: Training) -> Iterator[Finding]:
    """Every step costs, and episodes become shorter."""
    reward, failure = t.series("reward"), t.series("episode/failure")
    length = t.series("episode/length_s")
    if len(reward) < ENOUGH or len(length) < 3 or not len(failure):
        return
    cost = [row for row in t.metrics if any(name.startswith("reward/") for name in row)]
    mean = sum(value for name, value in cost[-1].items() if name.startswith("reward/")) if cost else 0.0
    if mean < 0.0 and _last(failure) > MOSTLY and length[-1] < 0.9 * t.task.spec.episode_length:
        yield Finding(
            "better to fail",
            f"a step is worth {mean:.3g} on average, so an episode that fails early costs less: "
            f"{_last(failure):.0%} of the episodes fail, after {length[-1]:.3g} s of {t.task.spec.episode_length:g} s",
            "a constant reward for each step without failure (alive), or a price of failure",
        )


# --- the learning --------------------------------------------------------------------------------------------------


def levels(t: Training) -> Iterator[Finding]:
    """Ranges whose rule never lets them widen."""
    for rule in t.task.spec.rules:
        names = [name for name in _levels(t) if fnmatchcase(name.removeprefix("level/"), rule.pattern)]
        stuck = [name for name in names if len(t.series(name)) >= ENOUGH and t.series(name).max() < 0.01]
        if not stuck or t.part < 0.5:
            continue
        known = {"survived": "episode/failure", "success": "episode/success"}
        reached = t.series(known.get(rule.metric, f"reward/{rule.metric}"))
        best = (1.0 - reached.min() if rule.metric == "survived" else reached.max()) if len(reached) else math.nan
        yield Finding(
            "levels",
            f"the level of {', '.join(name.removeprefix('level/') for name in stuck)} was never above "
            f"{max(t.series(name).max() for name in stuck):.2g}: its rule wants {rule.metric} of {rule.up:g}, and the "
            f"best was {best:.3g} on average",
            "a lower bound (up) in the rule, or an easier start of the range",
        )


def critic(t: Training) -> Iterator[Finding]:
    """What ppo's critic knows."""
    explained = t.series("explained_variance")
    if len(explained) >= ENOUGH and _last(explained) < BLIND:
        yield Finding(
            "critic",
            f"the critic explains {_last(explained):.0%} of the variance of the returns, where 90 % is usual",
            "privileged() must give what the reward depends on; a larger --ppo.critic-hidden; a smaller --ppo.gamma",
        )


def exploration(t: Training) -> Iterator[Finding]:
    """How randomly ppo acts, and how far its steps go."""
    deviation, clipped = t.series("deviation"), t.series("clip_fraction")
    if len(deviation) >= 3 and deviation.max() < UNSURE:
        yield Finding(
            "exploration",
            f"exploration is small: actions have a standard deviation of {deviation.max():.2g}",
            "a larger --ppo.initial-deviation (0.4 is usual), or more --ppo.entropy",
        )
    if len(deviation) >= 3 and deviation[-1] > NOISY:
        yield Finding(
            "exploration",
            f"exploration is large: actions have a standard deviation of {deviation[-1]:.3g} ({deviation[0]:.3g} at "
            "first)",
            f"less --ppo.entropy (now {t.settings.get('entropy')}; 0.002 is usual) and a smaller "
            "--ppo.initial-deviation (0.4 is usual)",
        )
    if len(clipped) >= ENOUGH and _last(clipped) > CLIPPED:
        yield Finding(
            "steps",
            f"{_last(clipped):.0%} of the samples are beyond the clip: a step changes the policy too much",
            "fewer --ppo.epochs, a smaller --ppo.desired-kl, or larger mini-batches",
        )


def unmoved(t: Training) -> Iterator[Finding]:
    """A policy that is what it was at the beginning."""
    norm, reward = t.series("gradient_norm"), t.series("reward")
    if len(norm) >= ENOUGH and norm.max() < 1e-7:
        yield Finding(
            "gradient",
            f"the gradient is zero (its norm was never above {norm.max():.1g})",
            "reward and observation must depend on what the policy does, through differentiable functions",
        )
    elif t.moved is not None and t.moved < UNMOVED and t.part > 0.5 and len(reward) >= ENOUGH:
        rate = t.settings.get("learning_rate")
        yield Finding(
            "learning rate",
            f"the policy's weights changed by {t.moved:.1g} of their size in all of the training, at a learning rate "
            f"of {rate:g}",
            f"a larger --{t.algorithm}.learning-rate",
        )


CHECKS = (
    not_finite, ends_at_once, ignored_actions, at_limits, observation, constant_terms, dominant_terms,
    rewards_the_opposite, better_to_fail, levels, critic, exploration, unmoved,
)  # fmt: skip


def _ranks(values: Tensor) -> Tensor:
    """(s,) the places of values in their order; a constant has no order, and correlates with nothing."""
    if float(values.max() - values.min()) <= 1e-9 * max(1.0, float(values.abs().max())):
        return torch.zeros_like(values)
    return values.argsort().argsort().double()


def _levels(t: Training) -> list[str]:
    return [name for name in (t.metrics[-1] if t.metrics else ()) if name.startswith("level/")]


def _first(values: np.ndarray) -> float:
    """Mean of the first eighth."""
    return float(values[: max(1, len(values) // 8)].mean())


def _last(values: np.ndarray) -> float:
    """Mean of the last quarter."""
    return float(values[-max(1, len(values) // 4) :].mean())
