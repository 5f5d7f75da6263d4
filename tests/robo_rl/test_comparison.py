"""Comparisons of two policies: differences are found, equals seldom told apart, and failures count."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from robo_rl.evaluate.comparison import compare, scores
from robo_rl.evaluate.evaluation import Conditions, Episodes, StopPolicy, rollout
from robo_rl.policies.loading import load
from robo_rl.sim.tasks import Measure

MEASURE = Measure("height_error", "m", "mean")


def episodes(*errors: float) -> Episodes:
    """With these errors; NaN for one that failed."""
    error = np.array(errors)
    survived = ~np.isnan(error)
    return Episodes(survived, survived, np.ones(len(error)), (MEASURE,), {"height_error": error})


def test_a_failed_episode_counts_as_the_largest_error_of_both() -> None:
    nan = float("nan")
    first, second = scores(episodes(0.1, nan, 0.3), episodes(nan, 0.7, 0.2), MEASURE)
    assert first.tolist() == [-0.1, -0.7, -0.3]
    assert second.tolist() == [-0.7, -0.7, -0.2]


def test_policies_that_always_fail_are_equal() -> None:
    nan = float("nan")
    first, second = scores(episodes(nan, nan), episodes(nan, nan), MEASURE)
    assert first.tolist() == second.tolist()


def test_a_sequential_comparison_tells_different_scores_apart_by_few_samples() -> None:
    def noisy(offset: float, salt: int) -> object:
        return lambda seed: offset + float(np.random.default_rng([salt, seed]).normal())

    better = compare({"a": noisy(5.0, 0), "b": noisy(0.0, 1)})
    worse = compare({"a": noisy(0.0, 0), "b": noisy(5.0, 1)})
    assert (better["decision"], worse["decision"]) == ("larger", "smaller")
    assert better["samples"] <= 10
    assert better["means"]["a"] == pytest.approx(np.mean(better["values"]["a"]))
    json.dumps(better)


@pytest.mark.release
def test_equal_scores_are_told_apart_as_seldom_as_promised_and_different_ones_soon() -> None:
    """Of 300 null pairs 5 %, 15, may be told apart: with 25, the level would be 5 % in one case of a hundred."""

    def pair(trial: int, offset: float) -> dict:
        def score(salt: int, offset: float) -> object:
            return lambda seed: offset + float(np.random.default_rng([salt, trial, seed]).normal())

        return compare({"a": score(0, offset), "b": score(1, 0.0)})

    null = [pair(trial, 0.0) for trial in range(300)]
    assert sum(outcome["decision"] != "equal" for outcome in null) < 25
    assert all(outcome["samples"] == 30 for outcome in null if outcome["decision"] == "equal")
    different = [pair(trial, 1.5) for trial in range(50)]
    assert sum(outcome["decision"] == "larger" for outcome in different) >= 49
    assert np.mean([outcome["samples"] for outcome in different]) <= 15


def test_a_trained_policy_has_more_success_than_stopped_rotors(trained_run: Path) -> None:
    policy = load(str(trained_run))

    def success(runner: object) -> object:
        return lambda seed: float(
            rollout(policy.task, runner, Conditions(episodes=10, seed=seed, seconds=2.0)).success.mean()
        )

    outcome = compare({"policy": success(policy.policy), "stopped": success(StopPolicy(policy.task))})
    assert outcome["decision"] == "larger"
