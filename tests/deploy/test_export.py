"""Export: the same policy gives the same file, the file is what was trained, and it tells nothing about the machine."""

from __future__ import annotations

import getpass
import importlib.util
import platform
import socket
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from robo_rl.deploy.build.export import ExportError, _name_parameters, export, exported_graph, read_parameters
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, DIGEST_KEY, GOLDEN_KEY, Bundle
from robo_rl.learn.runs.folder import Run
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.loading import load_task


@pytest.mark.slow
def test_the_same_policy_gives_the_same_file_twice(
    trained_run: Path, bundle_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robo_rl.deploy.build.export.EPISODES", 256)  # as in the first
    policy, provenance = Run.open(trained_run).policy()
    again = export(policy, provenance, tmp_path / "new" / "again.onnx")
    assert again.digest == Bundle.read(bundle_file).digest
    assert again.path.read_bytes() == bundle_file.read_bytes()
    assert [path.name for path in again.path.parent.iterdir()] == ["again.onnx"], "no half-written file is left"


def test_patterns_by_operator_give_the_graph_that_all_patterns_give(
    trained_run: Path, bundle_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, _ = Run.open(trained_run).policy()
    contract = Bundle.read(bundle_file).contract
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "quick"))
    quick = exported_graph(policy, contract)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "slow"))
    monkeypatch.setattr("robo_rl.deploy.build.export.patterns_by_operator", nullcontext)
    assert exported_graph(policy, contract).SerializeToString(deterministic=True) == quick.SerializeToString(
        deterministic=True
    )


def test_the_file_holds_the_trained_parameters_to_the_bit(trained_run: Path, bundle_file: Path) -> None:
    policy, _ = Run.open(trained_run).policy()
    found = read_parameters(bundle_file)
    assert set(found) == set(policy.state_dict())
    for name, value in policy.state_dict().items():
        np.testing.assert_array_equal(found[name], value)


def test_the_file_tells_nothing_about_the_machine(trained_run: Path, bundle_file: Path) -> None:
    data = bundle_file.read_bytes()
    torch_spec = importlib.util.find_spec("torch")
    assert torch_spec is not None
    assert torch_spec.origin is not None
    places = [Path.cwd(), Path.home(), Path(tempfile.gettempdir()), trained_run, Path(__file__).parents[2]]
    places += [Path(torch_spec.origin).parents[1]]
    for place in places:
        assert len(str(place)) > 1
        assert str(place).encode() not in data
    for word in (b".py", b"site-packages", b"Traceback", b"stack_trace", b"pkg.torch"):
        assert word not in data
    model = onnx.load_from_string(data)
    assert {entry.key for entry in model.metadata_props} == {CONTRACT_KEY, GOLDEN_KEY, DIGEST_KEY}
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
    del model.metadata_props[:]  # base 64 holds any short word by chance
    rest = model.SerializeToString()
    for word in (getpass.getuser(), socket.gethostname(), platform.node(), platform.release()):
        assert word.encode() not in rest + Bundle.read(bundle_file).contract.to_json().encode()


def test_the_file_passes_onnx_s_own_checker_and_names_its_parameters(bundle_file: Path) -> None:
    model = onnx.load(str(bundle_file))
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.name == "policy"
    names = {tensor.name for tensor in model.graph.initializer}
    assert names >= {f"network.{layer}.{part}" for layer in (0, 2, 4) for part in ("weight", "bias")}
    assert [opset.domain for opset in model.opset_import] == [""], "standard operators alone"


def test_torch_and_onnxruntime_agree_over_10_000_closed_loop_steps(trained_run: Path, bundle_file: Path) -> None:
    """The policy of the checkpoint beside the exported file, on the signals and states that the file's flights meet."""
    policy, _ = Run.open(trained_run).policy()
    bundle = Bundle.read(bundle_file)
    (command,) = bundle.contract.commands
    span = np.array(command.upper) - np.array(command.lower)
    env = VecEnv(policy.task, 20, seed=77, evaluation=True)
    state, signals = policy.initial_state(20).numpy(), env.signals()
    worst_command = worst_state = 0.0
    with torch.no_grad():
        for _ in range(500):
            given = {name: value.numpy().copy() for name, value in signals.items()}
            expected, expected_state = policy(signals, torch.from_numpy(state))
            commands, following = bundle.run(given, state)
            difference = np.abs(commands["rotor_speed"] - expected["rotor_speed"].numpy()) / span
            worst_command = max(worst_command, float(difference.max()))
            worst_state = max(worst_state, float(np.abs(following - expected_state.numpy()).max()))
            step = env.step({"rotor_speed": torch.from_numpy(commands["rotor_speed"])})
            signals, state = step.signals, following
            state[step.ids] = bundle.contract.initial_state
    assert 0 < worst_command <= 1e-5
    assert worst_state <= 1e-5


def test_a_parameter_that_is_not_in_the_file_as_trained_is_an_error(bundle_file: Path) -> None:
    policy = PolicyGraph(load_task("quadrotor-hover"))
    with pytest.raises(
        ExportError, match=r"torch merged or folded the parameter 'network\.0\.weight'; the exported file"
    ):
        _name_parameters(onnx.load(str(bundle_file)), policy)
