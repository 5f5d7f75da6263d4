"""Figures of few runs: what they are for known distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from robo_rl.evaluate.statistics import distance, improvement, interquartile_mean, interval, profile


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, -50.0])) == pytest.approx(1.5)


def test_the_probability_of_improvement_is_that_of_two_normal_distributions() -> None:
    generator = np.random.default_rng(0)
    found = improvement(generator.normal(1.0, 1.0, 4000), generator.normal(0.0, 1.0, 4000))
    assert found == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.02)
    assert improvement(np.ones(3), np.ones(5)) == 0.5


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """The bootstrap of 20 samples is a little too narrow: 90 to 95 % is usual. The truth is 0, by symmetry."""
    generator = np.random.default_rng(1)
    covered = 0
    for trial in range(60):
        low, high = interval(interquartile_mean, generator.normal(size=20), seed=trial)
        covered += low <= 0.0 <= high
    assert covered >= 50


def test_a_profile_is_the_share_above() -> None:
    assert profile(np.array([0.0, 0.5, 1.0]), np.array([-1.0, 0.2, 1.0])).tolist() == [1.0, pytest.approx(2 / 3), 0.0]


def test_distance_of_distributions_is_that_of_scipy() -> None:
    from scipy.stats import ks_2samp

    generator = np.random.default_rng(0)
    for _ in range(50):
        some, others = (generator.integers(0, 9, generator.integers(1, 30)) / 3 for _ in range(2))
        assert distance(some, others) == pytest.approx(ks_2samp(some, others).statistic, abs=1e-12)
