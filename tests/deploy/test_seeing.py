"""A policy that sees a scan, an image and a table: torch, onnxruntime, the runtime on a robot, and C."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.append(str(Path(__file__).parent))
from seeing import PROVENANCE, drawn_signals, seeing_policy, seeing_task

from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.c.host import compile_host, host_flags
from robo_rl.deploy.build.export import write_bundle
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, build
from robo_rl.deploy.build.firmware.emulate import digest_of, measure
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, torch_policy
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.deploy.robot.runtime import Policy, SignalError
from tests.suite import representatives

STEPS = 64


@pytest.fixture(scope="module", params=[0, 10], ids=["feedforward", "recurrent"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    policy = seeing_policy(request.param)
    path = tmp_path_factory.mktemp("seeing") / "policy.onnx"
    return write_bundle(policy, PROVENANCE, drawn_signals(policy, STEPS, 4), path)


def test_a_bundle_has_the_shapes_and_encoders_of_its_task(bundle: Bundle) -> None:
    contract, task = bundle.contract, seeing_task()
    assert contract.network.encoders == task.encoders
    inputs = {node.name: node.shape[1:] for node in bundle.session.get_inputs()}
    assert (inputs["scan"], inputs["depth"], inputs["neighbours"]) == ([64], [32, 32], [8, 2])
    assert bundle.golden.signals["depth"].shape == (STEPS, 32, 32)
    assert bundle.golden_error() <= 1e-6
    assert isinstance(contract.signal("scan").seen_low, float)
    assert len(contract.signal("neighbours").seen_high) == 2  # type: ignore[arg-type]


def test_torch_and_onnxruntime_agree_with_the_parameters_of_the_file(bundle: Bundle) -> None:
    policy = torch_policy(bundle, seeing_task())
    signals = {name: value[:, 1] for name, value in drawn_signals(policy, 200, 2, seed=1).items()}
    random = np.random.default_rng(0)
    state = np.tile(bundle.contract.initial_state, (200, 1)) + random.normal(size=(200, bundle.contract.state_size))
    state = state.astype(np.float32)
    found, following = bundle.run(signals, state)
    with torch.no_grad():
        expected, then = policy({name: torch.from_numpy(v) for name, v in signals.items()}, torch.from_numpy(state))
    assert greatest(command_differences(bundle.contract, found, expected)) <= PARITY_TOLERANCE
    assert greatest([following - then.numpy()]) <= PARITY_TOLERANCE
    assert np.ptp(found["rotor_speed"], axis=0).min() > 100  # signals do make a difference


@pytest.mark.parametrize("name", ["scan", "depth", "neighbours"])
def test_commands_depend_on_every_group(bundle: Bundle, name: str) -> None:
    golden, state = bundle.golden, bundle.contract.initial_state[None]
    signals = {key: value[:1] for key, value in golden.signals.items()}
    other = {**signals, name: golden.signals[name][1:2]}
    first, second = bundle.run(signals, state)[0], bundle.run(other, state)[0]
    assert np.abs(first["rotor_speed"] - second["rotor_speed"]).max() > 0.1


def test_attention_does_not_see_the_order_of_rows(bundle: Bundle) -> None:
    golden, state = bundle.golden, bundle.contract.initial_state[None]
    signals = {key: value[:1] for key, value in golden.signals.items()}
    turned = {**signals, "neighbours": signals["neighbours"][:, ::-1].copy()}
    first, second = bundle.run(signals, state)[0], bundle.run(turned, state)[0]
    assert greatest(command_differences(bundle.contract, first, second)) < 1e-6


def test_a_robot_s_step_takes_arrays_of_exactly_the_contract_s_shape(bundle: Bundle) -> None:
    policy = Policy.load(bundle.path, 1 / bundle.contract.control_period)
    golden = bundle.golden
    given = [s.name for s in bundle.contract.signals if s.source != "runtime"]
    first = {name: golden.signals[name][0] for name in given}
    commands = policy.step(first)
    fresh = {name: value[:1] for name, value in golden.signals.items()} | {
        "neighbours_age": np.zeros((1, 1), np.float32)
    }
    expected, _ = bundle.run(fresh, bundle.contract.initial_state[None])
    np.testing.assert_array_equal(commands["rotor_speed"], expected["rotor_speed"][0])
    for value in (first["depth"].ravel(), first["depth"][None], first["depth"][:, :31]):
        with pytest.raises(SignalError, match=r"signal 'depth' has shape \(.*\); expected \(32, 32\)"):
            policy.step({**first, "depth": value})
    wrong = first["neighbours"].copy()
    wrong[3, 1] = 8.5
    with pytest.raises(SignalError, match=r"signal 'neighbours': 3_y is 8\.5 m; expected a number from -8 to 8"):
        policy.step({**first, "neighbours": wrong})
    wrong = first["scan"].copy()
    wrong[17] = np.nan
    with pytest.raises(SignalError, match="signal 'scan': 17 is nan m; expected a number from 0 to 10"):
        policy.step({**first, "scan": wrong})


def test_c_equals_onnxruntime(bundle: Bundle, tmp_path: Path) -> None:
    made = generate(bundle, tmp_path)
    compiled = compile_host(made)
    assert compiled.self_test() <= 1e-6
    policy = seeing_policy(10 if bundle.contract.network.recurrent else 0)
    signals = {name: value[:, 0] for name, value in drawn_signals(policy, 300, 1, seed=2).items()}
    state = np.tile(bundle.contract.initial_state, (300, 1))
    for _ in range(3):
        found, after = compiled.run(signals, state)
        expected, state = bundle.run(signals, state)
        assert greatest([*command_differences(bundle.contract, found, expected), after - state]) <= PARITY_TOLERANCE
    header = (tmp_path / "policy.h").read_text()
    assert "float depth[1024]; /* m, camera: 32 x 32, row by row */" in header
    assert "float neighbours[16]; /* m, body: 8 x 2, row by row: x, y */" in header
    assert "float scan[64]; /* m, lidar: 64 */" in header


@pytest.mark.parametrize(("precision", "allowed"), [("int16", 1e-2), ("int8", 1e-1)])
def test_integers_leave_convolutions_as_they_are(
    bundle: Bundle, precision: str, allowed: float, tmp_path: Path
) -> None:
    options = Options(precision=precision, tolerance=1.0)  # type: ignore[arg-type]
    made = generate(bundle, tmp_path, options)
    assert compile_host(made).self_test() <= allowed
    text = made.sources[0].read_text()
    assert text.count("convolve(&") == 4
    assert "linear_int" in text


def test_code_does_not_grow_with_the_number_of_places(bundle: Bundle, tmp_path: Path) -> None:
    text = generate(bundle, tmp_path).sources[0].read_text()
    body = text[text.index("policy_status policy_step(") :]
    assert len(body.splitlines()) < 600  # of which the usual signals are most


needs_target = pytest.mark.skipif(
    shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None, reason="needs the Arm compiler and QEMU"
)


@pytest.mark.firmware
@needs_target
@pytest.mark.parametrize("target", representatives(["cortex-m4", "cortex-m3"], ["cortex-m3"]))
def test_an_emulated_processor_gives_the_bits_of_the_host(bundle: Bundle, target: str, tmp_path: Path) -> None:
    made = generate(bundle, tmp_path, Options(golden_steps=4))
    found = measure(build(made, TARGETS[target]).measure, TARGETS[target])
    assert found.passed
    if target == "cortex-m4" and host_flags():
        golden = bundle.golden
        few = type(golden)(
            {name: value[:4] for name, value in golden.signals.items()}, golden.states[:5],
            {name: value[:4] for name, value in golden.commands.items()},
        )  # fmt: skip
        assert found.commands_digest == digest_of(compile_host(made).replay(few).tobytes())
