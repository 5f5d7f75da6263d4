"""The runtime on a robot: what it refuses, and that a refusal changes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import ModelProto, numpy_helper

from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.runtime import Policy, SignalError
from robo_rl.learn.runs.folder import Run

Resealed = Callable[[Callable[[ModelProto], None]], Path]

HOVER: dict[str, Any] = {
    "position": [0.1, -0.2, 0.05],
    "orientation": [0.0, 0.0, 0.0, 1.0],
    "linear_velocity": [0.0, 0.0, 0.0],
    "angular_velocity": [0.0, 0.0, 0.0],
    "position_setpoint": [0.0, 0.0, 0.0],
    "linear_velocity_setpoint": [0.0, 0.0, 0.0],
}


@pytest.fixture(scope="module")
def loaded(bundle_file: Path) -> Policy:
    return Policy.load(bundle_file, rate_hz=100)


@pytest.fixture
def policy(loaded: Policy) -> Policy:
    loaded.reset()
    return loaded


def test_commands_are_those_of_the_trained_policy(policy: Policy, trained_run: Path) -> None:
    graph, _ = Run.open(trained_run).policy()
    state = graph.initial_state(1)
    rng = np.random.default_rng(0)
    for _ in range(50):
        signals = {**HOVER, "position": rng.normal(scale=0.3, size=3), "angular_velocity": rng.normal(size=3)}
        tensors = {name: torch.tensor(np.array([value]), dtype=torch.float32) for name, value in signals.items()}
        expected, state = graph(tensors, state)
        commands = policy.step(signals)
        assert set(commands) == {"rotor_speed"}
        assert commands["rotor_speed"].dtype == np.float32
        np.testing.assert_allclose(commands["rotor_speed"], expected["rotor_speed"][0], atol=0.02)  # 1e-5 of range
        np.testing.assert_allclose(policy.state, state, atol=1e-5)


@pytest.mark.parametrize(
    "value",
    [[0, 0, 1], (0.0, 0.0, 1.0), np.array([0, 0, 1]), np.array([0, 0, 1], ">f8"), torch.tensor([0.0, 0.0, 1.0])],
)
def test_any_array_of_numbers_will_do(policy: Policy, value: Any) -> None:
    expected = policy.check({**HOVER, "position": np.array([0, 0, 1], np.float32)})["position"]
    found = policy.check({**HOVER, "position": value})["position"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


# --- loading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [50, 99, 100.2, 200, 0, -100, float("nan"), float("inf")])
def test_a_rate_other_than_the_trained_one_is_refused(bundle_file: Path, rate: float) -> None:
    with pytest.raises(
        BundleError, match=r"policy\.onnx: rate_hz is .*; the policy was trained for 100 Hz and no other"
    ):
        Policy.load(bundle_file, rate_hz=rate)


def test_a_rate_within_a_thousandth_is_accepted(bundle_file: Path) -> None:
    assert Policy.load(bundle_file, rate_hz=100.05).contract.control_period == 0.01


def test_a_graph_that_was_changed_and_sealed_anew_fails_its_golden_vectors(resealed: Resealed) -> None:
    def nudge(model: ModelProto) -> None:
        tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "network.2.weight")
        values = numpy_helper.to_array(tensor).copy()
        values[3, 4] += 0.05
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    with pytest.raises(
        BundleError, match=r"changed\.onnx: its golden vectors have an error of .*; expected at most 1e-05"
    ):
        Policy.load(resealed(nudge), rate_hz=100)


# --- signals ------------------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
WRONG = [
    ("position", None, "signal 'position' is None; expected 3 numbers"),
    ("position", "up", "signal 'position' is 'up'; expected 3 numbers"),
    ("position", ["0", "0", "1"], "signal 'position' is .*; expected 3 numbers"),
    ("position", [True, False, True], "signal 'position' is .*; expected 3 numbers"),
    ("position", [0j, 0j, 0j], "signal 'position' is .*; expected 3 numbers"),
    ("position", [[0], [0, 1]], "signal 'position' is .*; expected 3 numbers"),
    ("position", {"x": 0}, "signal 'position' is .*; expected 3 numbers"),
    ("position", 1.0, r"signal 'position' has shape \(\); expected \(3,\) for \('x', 'y', 'z'\)"),
    ("position", [0, 0], r"signal 'position' has shape \(2,\); expected \(3,\)"),
    ("position", [0, 0, 0, 0], r"signal 'position' has shape \(4,\); expected \(3,\)"),
    ("position", [[0, 0, 0]], r"signal 'position' has shape \(1, 3\); expected \(3,\)"),
    ("position", [0, NAN, 0], "signal 'position': y is nan m; expected a number from -100 to 100"),
    ("position", [0, 0, INF], "signal 'position': z is inf m; expected a number from -100 to 100"),
    ("position", [-INF, 0, 0], "signal 'position': x is -inf m; expected a number from -100 to 100"),
    ("position", [1e300, 0, 0], "signal 'position': x is inf m; expected a number from -100 to 100"),
    ("position", [0, 0, 100.01], "signal 'position': z is 100.01 m; expected a number from -100 to 100"),
    ("angular_velocity", [0, 1000, 0], "signal 'angular_velocity': y is 1000 rad/s; expected a number from"),
    ("orientation", [0, 0, 0, 1.02], "signal 'orientation': w is 1.02 1; expected a number from -1.01 to 1.01"),
    ("orientation", [0, 0, 0, 0], "signal 'orientation' is .* with norm 0.000; expected norm 1"),
    ("orientation", [0.9, 0.9, 0, 0], "signal 'orientation' is .* with norm 1.273; expected norm 1"),
    ("orientation", [0, 0, 0, 0.9], "signal 'orientation' is .* with norm 0.900; expected norm 1"),
    ("orientation", [0, 0, 1], r"signal 'orientation' has shape \(3,\); expected \(4,\)"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_a_signal_that_must_not_be_acted_on_is_refused_and_leaves_the_state_untouched(
    policy: Policy, name: str, value: Any, sentence: str
) -> None:
    for k in range(5):
        policy.step(HOVER, time=0.01 * k)
    before = policy.state.copy()
    with pytest.raises(SignalError, match=sentence):
        policy.step({**HOVER, name: value}, time=0.05)
    np.testing.assert_array_equal(policy.state, before)
    again = policy.step(HOVER, time=0.05)["rotor_speed"]

    policy.reset()
    for k in range(6):
        expected = policy.step(HOVER, time=0.01 * k)["rotor_speed"]
    np.testing.assert_array_equal(again, expected)


def test_every_missing_signal_is_named_with_its_elements_and_unit(policy: Policy) -> None:
    for signal in policy.contract.signals:
        signals = {name: value for name, value in HOVER.items() if name != signal.name}
        with pytest.raises(
            SignalError, match=f"signal '{signal.name}' is missing; expected {signal.size} numbers"
        ) as error:
            policy.step(signals)
        assert str(error.value).endswith(f"in {signal.unit}")


def test_an_unknown_signal_is_named(policy: Policy) -> None:
    with pytest.raises(SignalError, match=r"signals \['battery'\] are not in the contract; expected \['position', "):
        policy.step({**HOVER, "battery": [1.0]})


def test_signals_at_the_very_ends_of_their_ranges_are_accepted(policy: Policy) -> None:
    for signal in policy.contract.signals:
        if signal.kind != "quaternion":
            for limit in (signal.lower, signal.upper):
                commands = policy.step({**HOVER, signal.name: limit})
                assert np.isfinite(commands["rotor_speed"]).all()
    for q in ([0, 0, 0, -1], [1, 0, 0, 0], [0, 0, 0.03, 1.0], [0.5, 0.5, 0.5, 0.5]):
        assert np.isfinite(policy.step({**HOVER, "orientation": q})["rotor_speed"]).all()


def test_commands_stay_within_the_contract_s_limits_for_any_accepted_signals(policy: Policy) -> None:
    rng = np.random.default_rng(0)
    (command,) = policy.contract.commands
    for _ in range(300):
        signals = {s.name: rng.uniform(s.lower, s.upper) for s in policy.contract.signals}
        signals["orientation"] /= np.linalg.norm(signals["orientation"])
        speed = policy.step(signals)["rotor_speed"]
        assert (speed >= np.float32(command.lower)).all()
        assert (speed <= np.float32(command.upper)).all()


def test_outputs_that_are_not_finite_are_refused(resealed: Resealed) -> None:
    def poison(model: ModelProto) -> None:
        tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "network.0.bias")
        tensor.CopyFrom(numpy_helper.from_array(np.full_like(numpy_helper.to_array(tensor), np.nan), tensor.name))

    policy = Policy(Bundle.read(resealed(poison)))
    before = policy.state.copy()
    with pytest.raises(
        SignalError, match=r"the policy's output is not finite for signals .*; expected finite commands"
    ):
        policy.step(HOVER)
    np.testing.assert_array_equal(policy.state, before)


# --- time and reset -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("passed", [0.0, 0.0049, 0.0151, 0.02, 1.0, -0.01, NAN, INF])
def test_a_step_at_the_wrong_time_is_refused(policy: Policy, passed: float) -> None:
    policy.step(HOVER, time=7.0)
    before = policy.state.copy()
    with pytest.raises(
        SignalError, match=r"s passed since the last step; expected 0\.01 s\. Reset before the next step"
    ):
        policy.step(HOVER, time=7.0 + passed)
    np.testing.assert_array_equal(policy.state, before)


def test_jitter_of_less_than_half_a_period_is_accepted_and_reset_allows_any_time(policy: Policy) -> None:
    for time in (7.0, 7.0051, 7.02, 7.034):
        policy.step(HOVER, time=time)
    policy.reset()
    assert set(policy.step(HOVER, time=0.0)) == {"rotor_speed"}


def test_without_times_no_step_is_too_late(policy: Policy) -> None:
    policy.step(HOVER, time=7.0)
    policy.step(HOVER)
    assert set(policy.step(HOVER, time=99.0)) == {"rotor_speed"}


def test_reset_forgets_the_past(policy: Policy) -> None:
    first = policy.step(HOVER)["rotor_speed"].copy()
    second = policy.step(HOVER)["rotor_speed"].copy()
    assert not np.array_equal(first, second), "the policy remembers"
    policy.reset()
    np.testing.assert_array_equal(policy.state[0], policy.contract.initial_state)
    np.testing.assert_array_equal(policy.step(HOVER)["rotor_speed"], first)


def test_two_policies_of_one_file_don_t_share_memory(loaded: Policy) -> None:
    first, second = Policy(loaded.bundle), Policy(loaded.bundle)
    start = second.step(HOVER)["rotor_speed"].copy()
    second.reset()
    for _ in range(5):
        first.step({**HOVER, "position": [0.5, 0.5, 0.5]})
    np.testing.assert_array_equal(second.step(HOVER)["rotor_speed"], start)


def test_safe_commands_are_the_contract_s_and_can_t_be_spoilt(policy: Policy) -> None:
    safe = policy.safe_commands
    np.testing.assert_array_equal(safe["rotor_speed"], policy.contract.command("rotor_speed").safe)
    safe["rotor_speed"][:] = 9999
    np.testing.assert_array_equal(policy.safe_commands["rotor_speed"], [0, 0, 0, 0])


# --- a robot's computer -------------------------------------------------------------------------------------

ROBOT = """
import json, sys

ABSENT = {"torch", "mujoco", "onnx", "scipy", "safetensors", "rsl_rl", "gymnasium", "matplotlib", "pandas"}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Absent())
"""


def on_robot(code: str, *arguments: str) -> str:
    """Run code where numpy and onnxruntime are installed and nothing else; its output."""
    words = [sys.executable, "-c", ROBOT + code, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout


def test_the_runtime_needs_neither_torch_nor_a_simulator(policy: Policy, bundle_file: Path) -> None:
    code = """
from robo_rl.deploy.robot.runtime import Policy
policy = Policy.load(sys.argv[1], rate_hz=100)
signals = json.loads(sys.argv[2])
print(json.dumps([policy.step(signals, 0.01 * k)["rotor_speed"].tolist() for k in range(20)]))
"""
    found = json.loads(on_robot(code, str(bundle_file), json.dumps(HOVER)))
    expected = [policy.step(HOVER, 0.01 * k)["rotor_speed"].tolist() for k in range(20)]
    assert found == expected


def test_inspect_needs_neither_torch_nor_a_simulator(bundle_file: Path) -> None:
    code = "from robo_rl.cli import main; main(['inspect', sys.argv[1], '--json'])"
    found = json.loads(on_robot(code, str(bundle_file)).splitlines()[-1])
    assert found["golden_error"] < 1e-5
    assert found["contract"]["task"] == "quadrotor-hover"


def test_what_blocks_torch_there_really_does() -> None:
    code = "\ntry:\n    import torch\nexcept ImportError:\n    print('absent')"
    assert on_robot(code) == "absent\n"


def test_golden_steps_can_be_replayed_through_the_runtime(policy: Policy) -> None:
    golden = policy.bundle.golden
    for k in range(len(golden)):
        signals = {name: value[k] for name, value in golden.signals.items()}
        commands = policy.step(signals, time=0.01 * k)
        np.testing.assert_allclose(commands["rotor_speed"], golden.commands["rotor_speed"][k], atol=0.02)
    np.testing.assert_allclose(policy.state[0], golden.states[-1], atol=1e-5)
