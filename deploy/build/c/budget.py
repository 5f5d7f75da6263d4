"""The cost of integer weights: error per output over recorded episodes, and success rate in closed loop."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.deploy.build.c.generate import Options, generate, golden_samples
from robo_rl.deploy.build.c.host import HostPolicy, compile_host
from robo_rl.deploy.build.verify import BundlePolicy
from robo_rl.deploy.robot.bundle import Bundle, scaled_commands
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.sim.tasks import Task

SAMPLED_FLIGHTS, KEPT = 64, 8  # episodes to record, and of how many steps one is kept
SAMPLE_SEED, JUDGE_SEED = 11, 12
LOST_SUCCESS = 0.01
GROWN_ERROR = 0.2


class BudgetError(ValueError):
    """The integers cost more than was allowed."""


@dataclass(frozen=True)
class Cost:
    """Of integer weights. Errors are in units of the commands' range, by command and element."""

    rms: Mapping[str, list[float]]
    greatest: Mapping[str, list[float]]
    self_test_error: float
    flights: Mapping[str, float] | None = None
    """What 'evaluate' gives, for the integers …"""
    exact_flights: Mapping[str, float] | None = None
    """… and for float32."""

    @property
    def worst(self) -> float:
        """The greatest root mean square error of any element."""
        return max(max(errors) for errors in self.rms.values())


class _Recorder(BundlePolicy):
    """Runs the file and records the policy's inputs."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle)
        self.kept: list[dict[str, np.ndarray]] = []
        self.steps = 0

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        if self.steps % KEPT == 0:
            self.kept.append({name: value.numpy().copy() for name, value in {**signals, "state": state}.items()})
        self.steps += 1
        return super().__call__(signals, state)


def recorded_samples(bundle: Bundle, task: Task | None, seed: int = SAMPLE_SEED) -> dict[str, np.ndarray]:
    """Signals and state (n, k) by name: of episodes if there is a task, else of the golden vectors."""
    if task is None:
        return golden_samples(bundle.golden)
    recorder = _Recorder(bundle)
    rollout(task, recorder, Conditions(episodes=SAMPLED_FLIGHTS, seed=seed), "recording")
    return {name: np.concatenate([moment[name] for moment in recorder.kept]) for name in recorder.kept[0]}


def budgeted(bundle: Bundle, task: Task | None, options: Options, budget: float, episodes: int) -> tuple[Options, Cost]:
    """Options whose integers keep within the budget, with the tolerance that their self-test needs.

    ``budget``: the greatest root mean square error of a command's element, in units of its range. In ``episodes``
    episodes, the success rate may fall by 1 percentage point and the position error grow by 20 %. More raises
    BudgetError.
    """
    options = dataclasses.replace(options, samples=recorded_samples(bundle, task), tolerance=1.0)
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_host(generate(bundle, Path(folder), options))
        cost = _command_cost(bundle, compiled, recorded_samples(bundle, task, JUDGE_SEED))
        if task is not None and episodes:
            conditions = Conditions(episodes=episodes, seed=JUDGE_SEED)
            flights = rollout(task, compiled, conditions, f"evaluating {options.precision}").summary()
            exact = rollout(task, BundlePolicy(bundle), conditions, "evaluating float32").summary()
            cost = dataclasses.replace(cost, flights=flights, exact_flights=exact)
    _check(cost, options.precision, budget)
    return dataclasses.replace(options, tolerance=float(np.float32(1.1 * cost.self_test_error + 1e-5))), cost


def _command_cost(bundle: Bundle, compiled: HostPolicy, samples: Mapping[str, np.ndarray]) -> Cost:
    state = samples["state"]
    signals = {name: value for name, value in samples.items() if name != "state"}
    ours, _ = compiled.run(signals, state)
    exact, _ = bundle.run(signals, state)
    found, expected = scaled_commands(bundle.contract, ours), scaled_commands(bundle.contract, exact)
    rms, greatest = {}, {}
    for name in found:
        difference = np.abs(found[name] - expected[name])
        rms[name] = np.sqrt(np.square(difference).mean(0)).tolist()
        greatest[name] = difference.max(0).tolist()
    return Cost(rms, greatest, compiled.self_test())


def _check(cost: Cost, precision: str, budget: float) -> None:
    if not cost.worst <= budget:
        name = max(cost.rms, key=lambda name: max(cost.rms[name]))
        raise BudgetError(
            f"{precision}: command '{name}' is off by {cost.worst:.2g} of its range (root mean square); the budget is "
            f"{budget:g}. Use a higher precision"
        )
    if cost.flights is None or cost.exact_flights is None:
        return
    now, before = cost.flights, cost.exact_flights
    if now["success"] < before["success"] - LOST_SUCCESS:
        raise BudgetError(
            f"{precision}: {now['success']:.1%} of episodes succeed, {before['success']:.1%} with float32; at most "
            f"{100 * LOST_SUCCESS:g} percentage point may be lost. Use a higher precision"
        )
    for key in (key for key in now if "_error_mean_" in key):
        grown = now[key] / before[key] - 1
        if not grown <= GROWN_ERROR:
            error = key.partition("_mean_")[0].replace("_", " ")
            raise BudgetError(
                f"{precision}: the {error} grows by {grown:.0%} over float32; at most {GROWN_ERROR:.0%} is allowed. "
                "Use a higher precision"
            )
