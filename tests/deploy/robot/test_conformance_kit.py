"""The kit finds drivers that don't hold what it asks, and passes one that does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.commands.running.driver import at_rest, factory
from robo_rl.deploy.robot.conformance import CHECKS, Bench, check
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.zoo import located

sys.path.append(str(Path(__file__).parents[1]))
from test_loop import PATIENCE, VirtualTime

TEMPLATE = Path(__file__).parents[3] / "examples/own_driver/my_driver.py"
spec = importlib.util.spec_from_file_location("my_driver", TEMPLATE)
assert spec is not None
assert spec.loader is not None
template: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(template)


class NeverOn(template.Driver):
    def enable(self) -> None:
        raise DriverError("out of order")


class TooOld(template.Driver):
    """It enables by what was read before, and that has to be new."""

    def read(self, now: int) -> Any:
        self.came = self.clock.monotonic_ns()
        return super().read(now)

    def enable(self) -> None:
        if self.clock.monotonic_ns() - self.came > 1e8:
            raise DriverError("the robot's state is too old")
        super().enable()


class OnlyOnce(template.Driver):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise OSError("bad file descriptor")
        self.closed = True


class Frozen(template.Driver):
    """Whatever happens it says that its values are new: a pause of the robot is not seen."""

    def write(self, commands: Any, mode: Any) -> None:
        raise RuntimeError("no route to the robot")


MUTANTS = {
    NeverOn: "it is enabled once, and follows",
    TooOld: "an enable that takes seconds",
    OnlyOnce: "close twice, and before connect",
    Frozen: "it is enabled once, and follows",
}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy.load(located("zoo:go2-flat"), 50)


def bench(policy: Policy, kind: Any, moves: Any = None) -> Bench:
    driver, clock = kind(policy.contract), VirtualTime()
    driver.clock = clock
    return Bench(driver, policy, at_rest(policy.contract), clock, PATIENCE, moves)


def test_the_template_passes_every_check(policy: Policy) -> None:
    outcomes = list(check(lambda: bench(policy, template.Driver)))
    assert [outcome.name for outcome in outcomes] == list(CHECKS)
    assert not [outcome for outcome in outcomes if outcome.sentence]


@pytest.mark.parametrize("kind", MUTANTS)
def test_a_driver_that_does_not_hold_it_fails_with_a_sentence(policy: Policy, kind: Any) -> None:
    (outcome,) = check(lambda: bench(policy, kind), [MUTANTS[kind]])
    assert outcome.sentence


def test_a_robot_that_goes_on_without_its_program_fails(policy: Policy) -> None:
    name = "a program that dies without close"
    (outcome,) = check(lambda: bench(policy, template.Driver, lambda: True), [name])
    assert "still in motion" in outcome.sentence


def test_a_class_in_a_file_is_found_and_one_that_is_not_there_is_refused(policy: Policy, tmp_path: Path) -> None:
    made = factory(f"{TEMPLATE}:Driver")(policy.contract, None)
    assert set(made.measured) <= {s.name for s in policy.contract.signals}
    with pytest.raises(DriverError, match="it has no 'Robot'; expected a class"):
        factory(f"{TEMPLATE}:Robot")
    with pytest.raises(DriverError, match="there is no such file"):
        factory(f"{tmp_path / 'none.py'}:Driver")


def test_the_operators_signals_are_zero_within_their_limits(policy: Policy) -> None:
    found = at_rest(policy.contract)
    assert found.keys() == {s.name for s in policy.contract.signals if s.source == "operator"}
    for name, value in found.items():
        low, high = policy.contract.signal(name).bounds
        assert np.all((value.ravel() >= low) & (value.ravel() <= high))
