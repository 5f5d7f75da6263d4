"""What leaves a policy: within limits, finite, of the right shape, or refused; and what is sent instead."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

sys.path.append(str(Path(__file__).parent))
from graphs import make_bundle, make_contract, position, target

from robo_rl.contract import Contract, StateBlock
from robo_rl.deploy.build.c.generate import Generated, generate
from robo_rl.deploy.build.c.host import HostPolicy, compile_host
from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.runtime import Policy, SignalError

INSIDE = np.array([[0.5, -0.25, 0.125]], np.float32)


def tripled(folder: Path, **command: Any) -> Bundle:
    """Three times what is measured, with no limits in the graph; what was measured is remembered."""
    contract = make_contract([position()], [target(**command)], [StateBlock("before", (3,), (0.0,) * 3)])
    nodes = [
        helper.make_node("Mul", ["joint_position", "three"], ["joint_target"]),
        helper.make_node("Identity", ["joint_position"], ["next_state"]),
    ]
    return make_bundle(folder, contract, nodes, {"joint_position": INSIDE / 4}, {"three": np.array(3, np.float32)})


def inverted(folder: Path) -> Bundle:
    """One over what is measured: not finite at zero."""
    contract = make_contract([position()], [target()], [StateBlock("before", (3,), (0.0,) * 3)])
    nodes = [
        helper.make_node("Reciprocal", ["joint_position"], ["joint_target"]),
        helper.make_node("Sign", ["joint_position"], ["next_state"]),
    ]
    return make_bundle(folder, contract, nodes, {"joint_position": np.full((1, 3), 2.0)})


def test_commands_are_within_their_limits_whatever_the_graph_gives(tmp_path: Path) -> None:
    policy = Policy(tripled(tmp_path))
    found = policy.step({"joint_position": INSIDE[0]})["joint_target"]
    np.testing.assert_array_equal(found, np.array([1.0, -0.75, 0.375], np.float32))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(policy.step({"joint_position": -INSIDE[0]})["joint_target"], -found)


def test_c_clamps_as_python_does(tmp_path: Path) -> None:
    bundle = tripled(tmp_path)
    compiled, policy = compile_host(generate(bundle, tmp_path / "c")), Policy(bundle)
    values = np.random.default_rng(0).uniform(-2, 2, (100, 3)).astype(np.float32)
    found, _ = compiled.run({"joint_position": values}, np.zeros((100, 3), np.float32))
    expected = [policy.step({"joint_position": value})["joint_target"] for value in values]
    np.testing.assert_array_equal(found["joint_target"], expected)
    assert np.abs(found["joint_target"]).max() == 1.0


def test_what_is_not_finite_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    policy = Policy(inverted(tmp_path))
    policy.step({"joint_position": [2.0, -2.0, 2.0]})
    before = policy.state.copy()
    with pytest.raises(SignalError, match="not finite for signals"):
        policy.step({"joint_position": [2.0, 0.0, 2.0]})
    np.testing.assert_array_equal(policy.state, before)


def test_c_refuses_what_is_not_finite_and_changes_nothing(tmp_path: Path) -> None:
    compiled = compile_host(generate(inverted(tmp_path), tmp_path / "c"))
    before = np.array([[1.0, -1.0, 1.0]], np.float32)
    found, after = compiled.run({"joint_position": np.array([[2.0, 0.0, 2.0]], np.float32)}, before)
    assert np.isnan(found["joint_target"]).all()  # the driver's mark of a refused step
    np.testing.assert_array_equal(after, before)


def test_c_refuses_a_memory_that_is_not_finite(tmp_path: Path) -> None:
    contract = make_contract([position()], [target()], [StateBlock("sum", (3,), (0.0,) * 3)])
    nodes = [
        helper.make_node("Identity", ["joint_position"], ["joint_target"]),
        helper.make_node("Exp", ["state"], ["next_state"]),
    ]
    bundle = make_bundle(tmp_path, contract, nodes, {"joint_position": INSIDE})
    compiled, large = compile_host(generate(bundle, tmp_path / "c")), np.full((1, 3), 100.0, np.float32)
    found, after = compiled.run({"joint_position": INSIDE}, large)
    assert np.isnan(found["joint_target"]).all()
    np.testing.assert_array_equal(after, large)


# without the start files, which turn denormal numbers off for the whole process
@pytest.mark.parametrize("flags", [["-O3"], ["-O3", "-ffast-math", "-nostartfiles"]])
def test_no_option_of_the_compiler_takes_the_limits_away(flags: list[str], tmp_path: Path) -> None:
    compiled = compile_host(generate(tripled(tmp_path), tmp_path / "c"), flags)
    bad = np.array([[np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0], [0.0, -np.inf, 0.0], [2.0, -2.0, 0.1]], np.float32)
    found, _ = compiled.run({"joint_position": bad}, np.zeros((4, 3), np.float32))
    bits = found["joint_target"].view(np.uint32)
    assert (bits[:3] == 0xFFFFFFFF).all()
    np.testing.assert_array_equal(found["joint_target"][3, :2], [1.0, -1.0])


def reshaped(contract: Contract, folder: Path) -> Bundle:
    """A graph that says it gives (batch, 3), and gives as many as the first signal says."""
    nodes = [
        helper.make_node("Slice", ["joint_position", "zero", "one", "axis"], ["first"]),
        helper.make_node("Greater", ["first", "border"], ["more"]),
        helper.make_node("Or", ["more", "three"], ["wanted"]),
        helper.make_node("Reshape", ["wanted", "flat"], ["places"]),
        helper.make_node("Concat", ["joint_position", "joint_position"], ["six"], axis=1),
        helper.make_node("Pow", ["six", "nothing"], ["ones"]),
        helper.make_node("Compress", ["ones", "places"], ["joint_target"], axis=1),
    ]
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "axis": np.array([1]), "flat": np.array([-1]),
        "border": np.array(1.5, np.float32), "three": np.array([[True] * 3 + [False] * 3]),
        "nothing": np.array(0, np.float32),
    }  # fmt: skip
    return make_bundle(folder, contract, nodes, {"joint_position": np.ones((1, 3), np.float32)}, constants)


def test_an_output_of_another_shape_is_refused_in_words(tmp_path: Path) -> None:
    bundle = reshaped(make_contract([position()], [target()]), tmp_path)
    policy = Policy.load(bundle.path, 100)
    assert policy.step({"joint_position": [1.0, 0.0, 0.0]})["joint_target"].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(SignalError, match="can't be run on signals"):
        policy.step({"joint_position": [2.0, 0.0, 0.0]})
    with pytest.raises(BundleError, match=r"output 'joint_target' has shape \(1, 6\); expected \(1, 3\)"):
        bundle.run({"joint_position": np.array([[2.0, 0.0, 0.0]], np.float32)}, np.zeros((1, 0), np.float32))


def test_a_bundle_whose_golden_vectors_can_not_be_replayed_is_refused_at_load(tmp_path: Path) -> None:
    import onnx

    from robo_rl.deploy.robot.bundle import DIGEST_KEY, GOLDEN_KEY, NO_DIGEST, Golden, seal

    bundle = reshaped(make_contract([position()], [target()]), tmp_path)
    model, golden = onnx.load(str(bundle.path)), bundle.golden
    changed = Golden({"joint_position": 2 * golden.signals["joint_position"]}, golden.states, golden.commands)
    for entry in model.metadata_props:
        entry.value = {GOLDEN_KEY: changed.to_json(), DIGEST_KEY: NO_DIGEST}.get(entry.key, entry.value)
    path = tmp_path / "changed.onnx"
    path.write_bytes(seal(model.SerializeToString(deterministic=True)))
    with pytest.raises(BundleError, match=r"'joint_target' has shape \(1, 6\)"):
        Policy.load(path, 100)


def test_a_self_test_that_computes_what_is_not_finite_fails(tmp_path: Path) -> None:
    made = generate(inverted(tmp_path), tmp_path / "c")
    source = made.folder / "policy_self_test.c"
    recorded, rest = source.read_text().split("static const policy_commands", 1)
    source.write_text(recorded.replace("2.0f", "0.0f") + "static const policy_commands" + rest)
    assert compile_host(made).self_test() == np.inf


# --- the safe commands ------------------------------------------------------------------------------------------


def test_where_safe_is_hold_the_last_measured_values_are_safe_within_limits(tmp_path: Path) -> None:
    policy = Policy(tripled(tmp_path, safe="hold", stop="hold"))
    with pytest.raises(
        SignalError, match="command 'joint_target' is safe at its measured value, and there was no measurement"
    ):
        _ = policy.safe_commands
    policy.step({"joint_position": [0.3, -1.5, 2.0]})
    with pytest.raises(SignalError):
        policy.step({"joint_position": [0.9, 9.0, 0.0]})  # refused: it does not count as measured
    np.testing.assert_array_equal(policy.safe_commands["joint_target"], np.array([0.3, -1.0, 1.0], np.float32))
    policy.reset()
    with pytest.raises(SignalError, match="since the last reset"):
        _ = policy.safe_commands


def test_held_commands_find_their_actuators_by_name(tmp_path: Path) -> None:
    from dataclasses import replace

    turned = replace(position("turned"), elements=("c", "x", "a", "b"), lower=(-2.0,) * 4, upper=(2.0,) * 4)
    contract = make_contract([position("other", source="operator"), turned], [target(safe="hold", stop="damp")])
    nodes = [helper.make_node("Identity", ["other"], ["joint_target"])]
    given = {"other": INSIDE, "turned": np.array([[0.3, 0.9, 0.1, 0.2]], np.float32)}
    bundle = make_bundle(tmp_path, contract, nodes, given)
    policy = Policy(bundle)
    policy.step({name: value[0] for name, value in given.items()})
    np.testing.assert_array_equal(policy.safe_commands["joint_target"], np.array([0.1, 0.2, 0.3], np.float32))
    text = generate(bundle, tmp_path / "c").sources[0].read_text()
    places = [f"measured.joint_target[{i}] = signals->turned[{at}];" for i, at in enumerate((2, 3, 0))]
    assert all(place in text for place in places)


def safe_commands(made: Generated, values: list[float], folder: Path) -> tuple[int, list[float]]:
    """Status and commands, which were 9 before, of the generated function."""
    import ctypes
    import subprocess

    library = folder / "libsafe.so"
    sources = [str(path) for path in made.sources]
    subprocess.run(["cc", "-shared", "-fPIC", *sources, "-lm", "-o", str(library)], check=True)
    commands = np.full(3, 9.0, np.float32)
    function = ctypes.CDLL(str(library)).policy_safe_commands
    return function(np.array(values, np.float32).ctypes, commands.ctypes), commands.tolist()


def test_c_holds_what_is_measured_within_limits_or_changes_nothing(tmp_path: Path) -> None:
    made = generate(tripled(tmp_path, safe="hold", stop="hold"), tmp_path / "c")
    assert safe_commands(made, [0.5, -1.5, 2.0], tmp_path) == (0, [0.5, -1.0, 1.0])
    assert safe_commands(made, [0.5, np.nan, 2.0], tmp_path) == (1, [9.0, 9.0, 9.0])


def test_c_gives_safe_numbers_whatever_is_measured(tmp_path: Path) -> None:
    made = generate(tripled(tmp_path, safe=(0.25, 0.0, -0.5)), tmp_path / "c")
    assert safe_commands(made, [np.nan] * 3, tmp_path) == (0, [0.25, 0.0, -0.5])


def test_a_bundle_compiled_with_limits_in_its_graph_gives_the_same_bits(bundle_file: Path, tmp_path: Path) -> None:
    bundle = Bundle.read(bundle_file)
    compiled: HostPolicy = compile_host(generate(bundle, tmp_path))
    policy, state = Policy(bundle), bundle.contract.initial_state[None]
    (command,) = bundle.contract.commands
    for k in range(len(bundle.golden)):
        signals = {name: value[k] for name, value in bundle.golden.signals.items()}
        commands, state = bundle.run({name: value[None] for name, value in signals.items()}, state)
        np.testing.assert_array_equal(policy.step(signals)[command.name], commands[command.name][0])
    assert compiled.self_test() <= compiled.made.tolerance


def test_rounding_that_memory_makes_grow_is_no_error_of_the_self_test(tmp_path: Path) -> None:
    """The logistic map, whose errors grow by half in a step; runtimes round a hyperbolic tangent differently."""
    contract = make_contract([position()], [target()], [StateBlock("memory", (3,), (0.1, 0.2, 0.3))])
    nodes = [
        helper.make_node("Tanh", ["state"], ["rounded"]),
        helper.make_node("Mul", ["rounded", "rounded"], ["square"]),
        helper.make_node("Mul", ["square", "gain"], ["less"]),
        helper.make_node("Sub", ["joint_position", "less"], ["next_state"]),
        helper.make_node("Identity", ["next_state"], ["joint_target"]),
    ]
    signals = {"joint_position": np.random.default_rng(0).uniform(0.95, 1.0, (64, 3)).astype(np.float32)}
    bundle = make_bundle(tmp_path, contract, nodes, signals, {"gain": np.array(2.6, np.float32)})
    compiled = compile_host(generate(bundle, tmp_path / "c"))
    assert np.abs(compiled.replay(bundle.golden) - bundle.golden.commands["joint_target"]).max() > 0.1
    assert compiled.self_test() < compiled.made.tolerance
    assert bundle.golden_error() < 1e-6
