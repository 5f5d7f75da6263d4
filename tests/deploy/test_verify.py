"""Verification passes what was trained and fails, with exit code 1, whatever is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from robo_rl.cli import main
from robo_rl.deploy.build.verify import BundlePolicy, task_of, torch_policy, verify
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, Bundle, BundleError
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.runs.folder import Run

Resealed = Callable[[Callable[[ModelProto], None]], Path]


def changing_parameter(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[ModelProto], None]:
    def edit(model: ModelProto) -> None:
        (tensor,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
        values = change(numpy_helper.to_array(tensor).copy()).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    return edit


def changing_contract(change: Callable[[dict], object]) -> Callable[[ModelProto], None]:
    def edit(model: ModelProto) -> None:
        (entry,) = [entry for entry in model.metadata_props if entry.key == CONTRACT_KEY]
        data = json.loads(entry.value)
        change(data)
        entry.value = json.dumps(data)

    return edit


def exit_code(*words: str) -> int:
    with pytest.raises(SystemExit) as exit:
        main(list(words))
    return int(exit.value.code or 0)


def test_a_trained_policy_passes(bundle_file: Path) -> None:
    found = verify(bundle_file, episodes=200)
    assert found.passed
    assert found.failures == []
    assert found.steps == 200 * 500
    assert 0 < found.max_abs_error <= 1e-5
    assert found.golden_error <= 1e-5
    assert found.flights["success"] >= 0.95


def test_its_flights_are_those_of_the_trained_policy(bundle_file: Path, trained_run: Path) -> None:
    found = verify(bundle_file, episodes=50, seed=9)
    policy, _ = Run.open(trained_run).policy()
    expected = rollout(policy.task, GraphPolicy(policy), Conditions(episodes=50, seed=9)).summary()
    assert found.flights["success"] == expected["success"]
    assert found.flights["position_error_mean_m"] == pytest.approx(expected["position_error_mean_m"], rel=0.01)


def test_the_torch_policy_in_the_file_is_the_trained_one(bundle_file: Path, trained_run: Path) -> None:
    bundle = Bundle.read(bundle_file)
    mine, (theirs, _) = torch_policy(bundle, task_of(bundle.contract)), Run.open(trained_run).policy()
    for name, value in theirs.state_dict().items():
        np.testing.assert_array_equal(mine.state_dict()[name], value)


def test_a_bundle_flies_many_robots_at_once(bundle_file: Path) -> None:
    bundle = Bundle.read(bundle_file)
    flights = rollout(task_of(bundle.contract), BundlePolicy(bundle), Conditions(episodes=60))
    assert flights.survived.mean() > 0.9


def test_an_impossible_success_is_not_reached(bundle_file: Path) -> None:
    found = verify(bundle_file, episodes=10, min_success=1.01)
    assert not found.passed
    assert found.failures[0].endswith("of episodes succeeded; expected at least 101.0%")
    assert exit_code("verify", str(bundle_file), "--episodes", "10", "--min-success", "1.01") == 1


def test_a_changed_parameter_fails_by_its_stale_golden_vectors(resealed: Resealed) -> None:
    """The change is too small to be seen in flight."""

    def nudge(values: np.ndarray) -> np.ndarray:
        values[0] += 0.01
        return values

    path = resealed(changing_parameter("network.4.bias", nudge))
    found = verify(path, episodes=40, min_success=0.8)
    (failure,) = found.failures
    assert failure.startswith("golden vectors: off by ")
    assert exit_code("verify", str(path), "--episodes", "5", "--min-success", "0") == 1


def test_a_policy_that_falls_fails_in_flight(resealed: Resealed) -> None:
    path = resealed(changing_parameter("network.4.bias", lambda values: values - 20))
    found = verify(path, episodes=20)
    assert found.flights["success"] == 0.0
    assert "0.0% of episodes succeeded; expected at least 95.0%" in found.failures


def test_a_nan_in_the_graph_fails_every_check(resealed: Resealed) -> None:
    path = resealed(changing_parameter("network.2.bias", lambda values: values * np.nan))
    found = verify(path, episodes=5)
    checks = ("graph: ", "golden vectors: ", "torch and onnxruntime differ by inf", "0.0% of episodes", "search: ")
    for check in checks:
        assert any(failure.startswith(check) for failure in found.failures)
    assert found.max_abs_error == found.golden_error == float("inf")


def test_a_graph_that_computes_something_else_with_the_same_parameters_fails_parity(resealed: Resealed) -> None:
    """A constant of the observation is changed, which no parameter of the network shows."""

    def rescale(model: ModelProto) -> None:
        scalars = [t for t in model.graph.initializer if not t.dims and abs(numpy_helper.to_array(t) - 0.1) < 1e-6]
        assert scalars
        for tensor in scalars:
            tensor.CopyFrom(numpy_helper.from_array(np.float32(0.11), tensor.name))

    found = verify(resealed(rescale), episodes=5, min_success=0)
    assert any(failure.startswith("torch and onnxruntime differ by ") for failure in found.failures)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data.update(control_period=0.02), "control_period of the contract is 0.02; the task"),
        (lambda data: data["robot"]["facts"].update(mass=0.03), "robot of the contract is .*; the task 'quadrotor-h"),
        (lambda data: data["commands"][0]["upper"].__setitem__(0, 9999), "commands of the contract is .*; the task"),
        (lambda data: data["signals"][0].update(frame="body"), "signals of the contract are .*; the task"),
        (lambda data: data.update(task="quadrotor-sleep"), "task 'quadrotor-sleep' is not known"),
        (lambda data: data["robot"].update(name="kite"), "robot 'kite' is not known"),
        (lambda data: data["network"].update(hidden=[32, 64]), "its parameters are not those of hidden layers"),
        (lambda data: data["network"].update(hidden=[64]), "its parameters are not those of hidden layers"),
        (lambda data: data["network"].update(normalize=True), "its parameters are not those of .* normalize True"),
        (lambda data: data["network"].update(activation="sine"), "its parameters are not those of .* sine"),
    ],
)
def test_a_contract_that_does_not_fit_its_task_or_network_is_refused(
    resealed: Resealed, change: Callable[[dict], object], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = resealed(changing_contract(change))
    with pytest.raises(ValueError, match=sentence):
        verify(path, episodes=5)
    assert exit_code("verify", str(path), "--episodes", "5") == 1
    assert capsys.readouterr().err.startswith("robo-rl verify: ")


def test_a_damaged_file_is_refused_before_anything_flies(bundle_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.onnx"
    path.write_bytes(bundle_file.read_bytes()[:-1])
    with pytest.raises(BundleError, match=r"was changed or damaged|no digest in it"):
        verify(path)
