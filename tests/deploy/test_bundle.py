"""The bundle: whole or refused, and a plain ONNX file for everyone else."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, external_data_helper, numpy_helper

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import (
    CONTRACT_KEY,
    DIGEST_KEY,
    GOLDEN_KEY,
    MAX_BYTES,
    NO_DIGEST,
    Bundle,
    BundleError,
    Golden,
    greatest,
    scaled_commands,
    seal,
)
from robo_rl.learn.runs.folder import Run

Resealed = Callable[[Callable[[ModelProto], None]], Path]


def refusal(path: Path) -> str:
    with pytest.raises(BundleError) as error:
        Bundle.read(path)
    return str(error.value)


# --- the whole file -----------------------------------------------------------------------------------------


def test_a_bundle_holds_the_contract_of_the_run_it_is_from(bundle_file: Path, trained_run: Path) -> None:
    bundle = Bundle.read(bundle_file)
    policy, provenance = Run.open(trained_run).policy()
    expected = policy.contract(provenance)
    bare = [dataclasses.replace(signal, seen_low=None, seen_high=None) for signal in bundle.contract.signals]
    assert dataclasses.replace(bundle.contract, signals=tuple(bare)) == expected
    for signal in bundle.contract.signals:
        assert signal.seen_low is not None
        assert signal.seen_high is not None
        assert np.all(np.array(signal.seen_low) <= signal.seen_high)
        assert np.all(np.array(signal.lower) <= signal.seen_low)
        assert np.all(np.array(signal.seen_high) <= signal.upper)


def test_plain_onnxruntime_runs_the_file(bundle_file: Path, trained_run: Path) -> None:
    import torch

    policy, _ = Run.open(trained_run).policy()
    session = onnxruntime.InferenceSession(str(bundle_file), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    for batch in (1, 2, 7):
        inputs = {
            node.name: rng.normal(size=(batch, node.shape[1])).astype(np.float32) for node in session.get_inputs()
        }
        inputs["orientation"] /= np.linalg.norm(inputs["orientation"], axis=1, keepdims=True)
        names = [node.name for node in session.get_outputs()]
        outputs = dict(zip(names, session.run(None, inputs), strict=True))
        signals = {name: torch.from_numpy(value) for name, value in inputs.items() if name != "state"}
        commands, state = policy(signals, torch.from_numpy(inputs["state"]))
        np.testing.assert_allclose(outputs["rotor_speed"], commands["rotor_speed"], atol=0.02, rtol=0)  # 1e-5 of range
        np.testing.assert_allclose(outputs["next_state"], state, atol=1e-5)


def test_the_digest_is_the_sha256_of_the_file_with_the_digest_blanked(bundle_file: Path) -> None:
    data = bundle_file.read_bytes()
    digest = Bundle.read(bundle_file).digest
    assert data.count(digest.encode()) == 1
    assert hashlib.sha256(data.replace(digest.encode(), NO_DIGEST.encode())).hexdigest() == digest


def test_golden_vectors_come_back_to_the_bit(bundle_file: Path) -> None:
    bundle = Bundle.read(bundle_file)
    golden = bundle.golden
    again = Golden.from_json(golden.to_json(), bundle.contract)
    assert len(again) == len(golden) == 64
    np.testing.assert_array_equal(again.states, golden.states)
    for name, value in golden.signals.items():
        assert again.signals[name].tobytes() == value.tobytes()
    for name, value in golden.commands.items():
        assert again.commands[name].tobytes() == value.tobytes()


def test_the_golden_flight_begins_at_the_initial_state_and_moves_every_command(bundle_file: Path) -> None:
    bundle = Bundle.read(bundle_file)
    np.testing.assert_array_equal(bundle.golden.states[0], bundle.contract.initial_state)
    scaled = scaled_commands(bundle.contract, bundle.golden.commands)["rotor_speed"]
    assert scaled.min() >= 0
    assert scaled.max() <= 1
    assert (np.ptp(scaled, axis=0) > 0.05).all()
    assert bundle.golden_error() < 1e-5


# --- damage -------------------------------------------------------------------------------------------------


def test_a_change_of_any_byte_is_refused(bundle_file: Path, tmp_path: Path) -> None:
    whole = bundle_file.read_bytes()
    path = tmp_path / "changed.onnx"
    model = onnx.load_from_string(whole)
    weights = max((tensor.raw_data for tensor in model.graph.initializer), key=len)
    marks = [whole.index(part) for part in (weights, *(key.encode() for key in (CONTRACT_KEY, GOLDEN_KEY, DIGEST_KEY)))]
    digest = whole.index(Bundle.read(bundle_file).digest.encode())
    positions = {*range(0, len(whole), len(whole) // 300), *marks, len(whole) - 1, *range(digest, digest + 64)}
    assert len(positions) > 350
    for place, position in enumerate(sorted(positions)):
        data = bytearray(whole)
        data[position] ^= 1 << place % 8
        path.write_bytes(data)
        sentence = refusal(path)
        assert sentence.startswith(f"{path}: ")
        assert re.search("the file was changed or damaged after export|no digest in it", sentence)


def test_a_truncated_file_is_refused(bundle_file: Path, tmp_path: Path) -> None:
    whole = bundle_file.read_bytes()
    path = tmp_path / "short.onnx"
    for length in {0, 1, *range(7, len(whole), len(whole) // 60), len(whole) - 1}:
        path.write_bytes(whole[:length])
        assert re.search("was changed or damaged|no digest in it", refusal(path))


def test_bytes_added_at_either_end_are_refused(bundle_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.onnx"
    for data in (bundle_file.read_bytes() + b"\0", b"\0" + bundle_file.read_bytes(), 2 * bundle_file.read_bytes()):
        path.write_bytes(data)
        assert re.search("was changed or damaged|no digest in it", refusal(path))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "there is no such file; expected a bundle" in refusal(tmp_path / "none.onnx")
    assert "it is a folder; expected a bundle" in refusal(tmp_path)


def test_an_oversized_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with open(path, "wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert f"{MAX_BYTES + 1} bytes; expected at most {MAX_BYTES}" in refusal(path)


def test_a_foreign_onnx_file_is_refused(tmp_path: Path) -> None:
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 1])
    other = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Tanh", ["x"], ["y"])], "foreign", [value], [other])
    path = tmp_path / "foreign.onnx"
    onnx.save(onnx.helper.make_model(graph), str(path))
    assert "no digest in it; expected a whole bundle" in refusal(path)


def test_what_has_a_digest_but_no_graph_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "junk.onnx"
    path.write_bytes(seal(b"junk" + DIGEST_KEY.encode() + b"\x12\x40" + NO_DIGEST.encode()))
    assert "is not for bundles; expected [" in refusal(path)


@pytest.mark.parametrize("count", [0, 2])
def test_only_a_model_with_one_digest_can_be_sealed(count: int) -> None:
    with pytest.raises(BundleError, match="the model has no single digest entry to seal"):
        seal(count * (DIGEST_KEY.encode() + b"\x12\x40" + NO_DIGEST.encode()))


# --- files that were edited on purpose and sealed anew ------------------------------------------------------


def entry(model: ModelProto, key: str) -> onnx.StringStringEntryProto:
    (found,) = [prop for prop in model.metadata_props if prop.key == key]
    return found


def change_contract(model: ModelProto, change: Callable[[dict], None]) -> None:
    contract = entry(model, CONTRACT_KEY)
    data = json.loads(contract.value)
    change(data)
    contract.value = json.dumps(data)


def change_golden(model: ModelProto, change: Callable[[dict], None]) -> None:
    golden = entry(model, GOLDEN_KEY)
    data = json.loads(golden.value)
    change(data)
    golden.value = json.dumps(data)


def test_a_resealed_copy_without_a_change_is_accepted(resealed: Resealed, bundle_file: Path) -> None:
    assert Bundle.read(resealed(lambda model: None)).digest == Bundle.read(bundle_file).digest


@pytest.mark.parametrize("key", [CONTRACT_KEY, GOLDEN_KEY])
def test_a_missing_entry_is_refused(resealed: Resealed, key: str) -> None:
    path = resealed(lambda model: model.metadata_props.remove(entry(model, key)))
    assert f"no entry '{key}' in its metadata" in refusal(path)


def test_a_malformed_contract_is_refused_with_its_field(resealed: Resealed) -> None:
    def change(model: ModelProto) -> None:
        change_contract(model, lambda data: data["signals"][0].update(unit="furlong"))

    sentence = refusal(resealed(change))
    assert "changed.onnx: " in sentence
    assert "signal 'position': unit is 'furlong'; expected an SI unit" in sentence


GOLDEN_DAMAGE: list[Callable[[dict], object]] = [
    lambda data: data.update(steps=0),
    lambda data: data.update(steps=-1),
    lambda data: data.update(steps=63),
    lambda data: data.update(steps="64"),
    lambda data: data.update(steps=True),
    lambda data: data.update(steps=float("inf")),
    lambda data: data.pop("states"),
    lambda data: data["signals"].pop("position"),
    lambda data: data.update(commands=None),
    lambda data: data.update(states=data["states"][:-8]),
    lambda data: data.update(states="*" + data["states"][1:]),
    lambda data: data["commands"].update(rotor_speed=7),
]


@pytest.mark.parametrize("damage", GOLDEN_DAMAGE)
def test_damaged_golden_vectors_are_refused(resealed: Resealed, damage: Callable[[dict], None]) -> None:
    sentence = refusal(resealed(lambda model: change_golden(model, damage)))
    assert "changed.onnx: golden vectors are damaged (" in sentence


@pytest.mark.parametrize("text", ["", "[]", "7", "{", "[" * 100_000])
def test_golden_vectors_that_are_no_json_object_are_refused(resealed: Resealed, text: str) -> None:
    sentence = refusal(resealed(lambda model: setattr(entry(model, GOLDEN_KEY), "value", text)))
    assert "golden vectors are damaged (" in sentence


def rename(model: ModelProto, old: str, new: str) -> None:
    for value in (*model.graph.input, *model.graph.output):
        value.name = new if value.name == old else value.name
    for node in model.graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = new if name == old else name


@pytest.mark.parametrize(
    ("name", "end"),
    [("position", "inputs"), ("state", "inputs"), ("rotor_speed", "outputs"), ("next_state", "outputs")],
)
def test_a_graph_with_another_name_than_the_contract_s_is_refused(resealed: Resealed, name: str, end: str) -> None:
    sentence = refusal(resealed(lambda model: rename(model, name, "renamed")))
    assert f"the graph's {end} are [" in sentence
    assert "'renamed'" in sentence
    assert "its contract says [" in sentence


def test_a_graph_with_its_inputs_in_another_order_is_refused(resealed: Resealed) -> None:
    def swap(model: ModelProto) -> None:
        first, *others = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in model.graph.input]
        del model.graph.input[:]
        model.graph.input.extend([*others, first])

    assert "the graph's inputs are [" in refusal(resealed(swap))


def test_a_graph_of_another_size_than_the_contract_s_is_refused(resealed: Resealed, bundle_file: Path) -> None:
    """Contract and golden vectors agree on a set-point of two elements; the graph has three."""
    bundle = Bundle.read(bundle_file)

    def shrink(model: ModelProto) -> None:
        def contract(data: dict) -> None:
            (signal,) = [signal for signal in data["signals"] if signal["name"] == "position_setpoint"]
            for key in ("elements", "lower", "upper", "seen_low", "seen_high"):
                signal[key] = signal[key][:2]

        change_contract(model, contract)
        signals = {**bundle.golden.signals, "position_setpoint": bundle.golden.signals["position_setpoint"][:, :2]}
        entry(model, GOLDEN_KEY).value = dataclasses.replace(bundle.golden, signals=signals).to_json()

    sentence = refusal(resealed(shrink))
    assert "('position_setpoint', [3])" in sentence
    assert "('position_setpoint', [2])" in sentence


def test_a_graph_for_one_batch_size_alone_is_refused(resealed: Resealed) -> None:
    def fix(model: ModelProto) -> None:
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1

    assert "after a batch dimension of any size" in refusal(resealed(fix))


def test_a_graph_with_weights_outside_the_file_is_refused(
    resealed: Resealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move_out(model: ModelProto) -> None:
        external_data_helper.convert_model_to_external_data(model, location="weights.bin", size_threshold=0)
        external_data_helper.write_external_data_tensors(model, str(tmp_path))

    monkeypatch.chdir(tmp_path)
    path = resealed(move_out)
    assert (tmp_path / "weights.bin").stat().st_size > 1000
    assert "external_data (weights in another file) is not for bundles" in refusal(path)


def test_a_change_of_a_weight_shows_in_the_golden_vectors(resealed: Resealed) -> None:
    def nudge(model: ModelProto) -> None:
        tensor = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
        values = numpy_helper.to_array(tensor).copy()
        values[..., 0] += 0.1
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    assert Bundle.read(resealed(nudge)).golden_error() > 1e-3


def test_another_initial_state_than_the_golden_one_shows_in_the_golden_vectors(resealed: Resealed) -> None:
    def change(model: ModelProto) -> None:
        def contract(data: dict) -> None:
            data["state"][0]["initial"][0] = 0.5

        change_contract(model, contract)

    assert Bundle.read(resealed(change)).golden_error() >= 0.5


@pytest.mark.parametrize("which", ["weights", "states", "commands"])
def test_a_nan_never_passes_for_agreement(resealed: Resealed, bundle_file: Path, which: str) -> None:
    def poison(model: ModelProto) -> None:
        if which == "weights":
            tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "network.0.bias")
            values = np.full_like(numpy_helper.to_array(tensor), np.nan)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        else:
            golden = Bundle.read(bundle_file).golden
            states, commands = golden.states.copy(), golden.commands["rotor_speed"].copy()
            (states if which == "states" else commands)[5] = np.nan
            changed = dataclasses.replace(golden, states=states, commands={"rotor_speed": commands})
            entry(model, GOLDEN_KEY).value = changed.to_json()

    assert Bundle.read(resealed(poison)).golden_error() == float("inf")


def test_the_greatest_difference_is_over_all_parts() -> None:
    assert greatest([np.array([1.0, -3.0]), np.array([[2.0]]), np.zeros((0, 4))]) == 3.0
    assert greatest([np.zeros(0)]) == 0.0
    assert greatest([np.zeros(2), np.array([np.nan])]) == float("inf")
    assert greatest([np.array([np.nan]), np.zeros(2)]) == float("inf")


def test_scaled_commands_go_from_0_to_1(bundle_file: Path) -> None:
    contract: Contract = Bundle.read(bundle_file).contract
    (command,) = contract.commands
    for limit, expected in ((command.lower, 0.0), (command.upper, 1.0)):
        scaled = scaled_commands(contract, {"rotor_speed": np.array([limit], np.float32)})
        np.testing.assert_allclose(scaled["rotor_speed"], expected)


def test_a_copy_under_another_name_is_the_same_bundle(bundle_file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(bundle_file, tmp_path / "other name.onnx"))
    assert Bundle.read(str(copy)).digest == Bundle.read(bundle_file).digest
