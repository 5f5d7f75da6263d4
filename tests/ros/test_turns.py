"""Several policies for one robot take turns: safely, without a jump, and as the log tells."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.deploy.robot.logs.replay import replay
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.switcher import BETWEEN, HAND_OVER, WARM_UP, PolicySwitcher, require_compatible
from robo_rl.ros.operate import OperatorError

RATE = 100  # Hz


@pytest.fixture(scope="module")
def successor_file(trained_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a policy that flies as well as the other, and otherwise: its weights are not quite the same."""
    import torch

    from robo_rl.deploy.build.export import export
    from robo_rl.learn.runs.folder import Run

    policy, provenance = Run.open(trained_run).policy()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in policy.parameters():
            weights *= 1 + 0.02 * torch.randn(weights.shape, generator=generator)
    out = tmp_path_factory.mktemp("successor") / "successor.onnx"
    export(policy, provenance, out)
    return out


def pair(first: Path, second: Path) -> PolicySwitcher:
    return PolicySwitcher({"first": Policy.load(first, RATE), "second": Policy.load(second, RATE)})


def at_rest(bundle: Path, noise: np.random.Generator) -> dict[str, np.ndarray]:
    values = {}
    for s in Bundle.read(bundle).contract.signals:
        value = np.array([0, 0, 0, 1] if s.kind == "quaternion" else [0] * s.size, np.float32)
        values[s.name] = value + 0.001 * noise.normal(size=s.size).astype(np.float32)
    return values


def test_the_command_goes_over_in_a_straight_line_after_a_warm_up(bundle_file: Path, successor_file: Path):
    """Against the two policies run alone on the same signals."""
    both, noise = pair(bundle_file, successor_file), np.random.default_rng(0)
    first, second = Policy.load(bundle_file, RATE), Policy.load(successor_file, RATE)
    parts = []
    for k in range(round((WARM_UP + HAND_OVER) * RATE) + 20):
        values = at_rest(bundle_file, noise)
        if k == 10:
            assert both.select("second", values) == "'second' takes over"
        own = first.step(values)["rotor_speed"]
        other = second.step(values)["rotor_speed"] if k >= 10 else own
        found = both.step(values)["rotor_speed"]
        part = min(1.0, max(0.0, (k - 9 - WARM_UP * RATE) / (HAND_OVER * RATE)))
        np.testing.assert_allclose(found, own + part * (other - own), rtol=1e-5)
        parts.append((part, both.number))
    assert {number for part, number in parts if 0 < part < 1} == {BETWEEN}
    assert parts[0] == (0.0, 0)
    assert parts[-1] == (1.0, 1)
    assert both.name == "second"


def test_a_successor_whose_signals_are_not_there_is_refused(bundle_file: Path, successor_file: Path):
    both = pair(bundle_file, successor_file)
    values = at_rest(bundle_file, np.random.default_rng(0))
    del values["position_setpoint"]
    with pytest.raises(ValueError, match="'second' can't take over: signal 'position_setpoint' is missing"):
        both.select("second", values)
    with pytest.raises(ValueError, match=r"'third' is not one of the policies \['first', 'second'\]"):
        both.select("third", values)
    assert both.name == "first"


def test_a_successor_that_loses_its_signals_on_the_way_does_not_take_over(bundle_file: Path, successor_file: Path):
    """The one that flies reads fewer signals, and flies on."""
    both, noise = pair(bundle_file, successor_file), np.random.default_rng(0)
    both.select("second", at_rest(bundle_file, noise))
    successor = both.policies["second"]
    successor.check = lambda values: Policy.check(successor, {**values, "position": np.full(3, np.nan, np.float32)})
    assert np.isfinite(both.step(at_rest(bundle_file, noise))["rotor_speed"]).all()
    assert both.name == "first"
    assert "did not take over" in both.trouble


CHANGES = {
    "is for the robot": {"robot": {"name": "hummingbird"}},
    "steps every": {"control_period": 0.02},
    "has the safety envelope": {"safety": {"signal_timeout": 1.0}},
    "commands": {"commands": {"upper": (9e9,) * 4}},
    "reads the signal 'odor'": {"signals": {"name": "odor"}},
    "reads the signal 'position'": {"signals": {"unit": "rad"}},
}


@pytest.mark.parametrize("said", CHANGES)
def test_policies_for_other_robots_or_rates_or_limits_can_not_take_turns(bundle_file: Path, said: str):
    contract = Bundle.read(bundle_file).contract
    ((field, value),) = CHANGES[said].items()
    if field in ("robot", "safety"):
        value = dataclasses.replace(getattr(contract, field), **value)
    elif field in ("commands", "signals"):
        first, *rest = getattr(contract, field)
        value = (dataclasses.replace(first, **value), *rest)
    with pytest.raises(BundleError, match=said):
        require_compatible(contract, "other", dataclasses.replace(contract, **{field: value}))


def test_a_policy_may_read_fewer_signals_than_the_first(bundle_file: Path):
    contract = Bundle.read(bundle_file).contract
    fewer = dataclasses.replace(contract, signals=contract.signals[:4])
    require_compatible(contract, "fewer", fewer)
    with pytest.raises(BundleError, match="no such signal"):
        require_compatible(fewer, "more", contract)


@pytest.mark.slow
def test_in_flight_another_policy_takes_over_and_the_log_is_flown_again(
    flight, bundle_file: Path, successor_file: Path, tmp_path: Path
):
    flight.start("twin", "--use-sim-time")
    other = f"second={successor_file}"
    flight.start("policy", str(bundle_file), "--use-sim-time", "--record", str(tmp_path / "log"), "--other", other)
    flight.fly(until=3.0)
    with pytest.raises(OperatorError, match="'third' is not one of the policies"):
        flight.operator.select("third")
    flight.operator.select("second")
    flight.until(lambda: flight.gates[-1].get("policy") == "second", "the successor")
    begun = flight.truth[-1][0]
    flight.until(lambda: flight.truth[-1][0] > begun + 3.0, "3 s")
    assert flight.state == "ACTIVE"
    heights = np.array([place[2] for time, place in flight.truth if time > begun + 1.0])
    assert abs(heights - heights.mean()).max() < 0.3  # it hovers, or still climbs a little
    flight.operator.do("deactivate")
    flight.operator.do("cleanup")

    (file,) = (tmp_path / "log").glob("*.mcap")
    sent = np.array([step.sent for step in read_log(file).steps if step.gate["state"] == 2])
    numbers = [step.gate["policy"] for step in read_log(file).steps if step.gate["state"] == 2]
    switch = np.flatnonzero(np.diff(numbers))
    usual = np.abs(np.diff(sent[100 : switch[0]], axis=0)).max()
    assert np.abs(np.diff(sent[switch[0] - 5 : switch[-1] + 5], axis=0)).max() < 2 * usual
    for bundle in (bundle_file, successor_file):
        found = replay(file, bundle)
        assert found.same_bundle
        assert found.policy is None, found.policy
        assert found.gate is None, found.gate
        assert 100 < found.compared < found.steps - 40
