"""The model of many processes agrees with a simulation of every process and message, and with what it is fitted to."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.cli import main
from robo_rl.commands.many_runs.plan import counts
from robo_rl.learn.config import PpoConfig
from robo_rl.learn.distributed.scaling import Costs, Network, Phase, predict, simulated, slowest

CONFIG = PpoConfig(environments=1024, epochs=4, mini_batches=3)
COSTS = Costs(Phase(0.02, 1e-3, 0.05), Phase(0.01, 5e-4, 0.03), 231_000)
NETWORK = Network()


@pytest.mark.parametrize("processes", [1, 2, 4, 8, 32, 128, 512])
def test_the_model_is_within_five_percent_of_a_discrete_event_simulation(processes: int) -> None:
    for network in (NETWORK, Network(latency=1e-3), Network(bandwidth=1e8)):
        expected = simulated(COSTS, CONFIG, processes, network)
        assert predict(COSTS, CONFIG, processes, network).seconds == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000])
def test_the_slowest_of_n_is_the_expected_maximum_of_normal_numbers(n: int) -> None:
    drawn = np.random.default_rng(0).normal(size=(20_000, n)).max(1) if n < 1000 else None
    expected = float(drawn.mean()) if drawn is not None else 3.241  # Harter 1961, Biometrika 48, table 1
    assert slowest(n) == pytest.approx(expected, abs=0.03)


def test_without_noise_messages_and_fixed_work_n_processes_take_an_nth() -> None:
    costs = Costs(Phase(0.0, 1e-3, 0.0), Phase(0.0, 1e-3, 0.0), 0)
    network = Network(latency=0.0)
    alone = predict(costs, CONFIG, 1, network)
    for n in (2, 64, 1024):
        found = predict(costs, CONFIG, n, network)
        assert found.seconds == pytest.approx(alone.seconds / n)
        assert found.limit == "work"


positive = st.floats(1e-9, 1e3)


@given(positive, positive, st.floats(0, 1), st.integers(1, 10**9), st.integers(0, 9), positive, st.floats(1.0, 1e12))
def test_no_number_of_processes_is_more_than_efficient(
    fixed: float, each: float, noise: float, gradient: int, power: int, latency: float, bandwidth: float
) -> None:
    costs, network = Costs(Phase(fixed, each, noise), Phase(fixed, each, noise), gradient), Network(latency, bandwidth)
    alone, found = (predict(costs, CONFIG, n, network) for n in (1, 1 << power))
    assert alone.seconds <= (1 << power) * found.seconds * (1 + 1e-9)
    assert math.isfinite(found.seconds)


def test_more_of_what_limits_makes_an_update_longer() -> None:
    before = predict(COSTS, CONFIG, 64, NETWORK).seconds
    noisy = dataclasses.replace(COSTS, collect=dataclasses.replace(COSTS.collect, noise=1.0))
    assert predict(noisy, CONFIG, 64, NETWORK).limit == "stragglers"
    assert predict(COSTS, CONFIG, 64, Network(latency=0.1)).limit == "messages"
    for slower in (predict(noisy, CONFIG, 64, NETWORK), predict(COSTS, CONFIG, 64, Network(latency=0.1))):
        assert slower.seconds > before


def test_robots_are_shared_out_evenly() -> None:
    assert counts(100, 96) == [1, 2, 4, 8, 16, 32]
    assert counts(3, 1024) == [1, 2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quadrotor-hover", "--cores", "0"], "--cores is 0; expected 1 to"),
        (["quadrotor-hover", "--gpus", "-1"], "--gpus is -1; expected 0 to"),
        (["quadrotor-hover", "--latency", "nan"], "--latency is nan; expected a positive number"),
        (["quadrotor-hoover"], "quadrotor-hoover"),
    ],
)
def test_a_plan_of_nothing_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *words])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_plan_measures_this_computer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "quadrotor-hover", "--cores", "64", "--environments", "64", "--json"])
    assert not ended.value.code
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [one["processes"] for one in found["plans"]] == [1, 2, 4, 8, 16, 32, 64]
    assert found["plans"][0]["efficiency"] == 1.0
    assert all(0 < one["efficiency"] <= 1 for one in found["plans"])
    assert found["advice"]["seeds"] * found["advice"]["processes"] <= 64
