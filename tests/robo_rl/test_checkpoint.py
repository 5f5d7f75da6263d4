"""Checkpoints: exact, atomic, without pickle."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from robo_rl.learn.runs import checkpoint
from robo_rl.learn.runs.checkpoint import CheckpointError

TENSORS = {
    "weights": torch.tensor([[1e-45, -0.0, float("inf")], [1 / 3, float("nan"), 3.4e38]]),
    "transposed": torch.arange(6.0).reshape(2, 3).mT,
    "alias": torch.arange(6.0)[2:],
    "count": torch.tensor(1 << 40),
    "generator": torch.Generator().manual_seed(1).get_state(),
    "empty": torch.zeros(0, 4),
}
NUMBERS = {"done": 7, "rate": 0.1 + 0.2, "finished": False, "names": ["a", "b"]}


def test_tensors_and_numbers_come_back_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, TENSORS, NUMBERS)
    tensors, numbers = checkpoint.load(path)
    assert numbers == NUMBERS
    assert set(tensors) == set(TENSORS)
    for name, value in TENSORS.items():
        assert tensors[name].dtype == value.dtype
        assert tensors[name].shape == value.shape
        assert tensors[name].numpy().tobytes() == value.contiguous().numpy().tobytes()


def test_the_file_is_plain_safetensors_without_pickle(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, TENSORS, NUMBERS)
    others = safetensors.numpy.load_file(path)  # an independent reader, which knows no torch
    np.testing.assert_array_equal(others["weights"], TENSORS["weights"].numpy())
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    stored = sum(
        end - start for name, (start, end) in ((n, e["data_offsets"]) for n, e in header.items() if n[0] != "_")
    )
    assert 8 + size + stored == len(data), "nothing but a JSON header and raw numbers"
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(data)


def test_a_half_written_file_of_a_killed_process_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, TENSORS, NUMBERS)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(path.read_bytes()[:100])
    assert checkpoint.load(path)[1] == NUMBERS
    checkpoint.save(path, TENSORS, {"done": 8})
    assert checkpoint.load(path)[1] == {"done": 8}
    assert not partial.exists()


def test_a_process_killed_at_any_moment_of_writing_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    code = """
import sys, torch
from pathlib import Path
from robo_rl.learn.runs import checkpoint
path = Path(sys.argv[1])
for k in range(1_000_000):
    checkpoint.save(path, {"x": torch.full((200_000,), float(k))}, {"k": k})
    if k == 3:
        print("writing", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.kill()
    process.wait(timeout=60)
    tensors, numbers = checkpoint.load(path)
    assert numbers["k"] >= 3
    assert (tensors["x"] == float(numbers["k"])).all()


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, TENSORS, NUMBERS)
    whole = path.read_bytes()
    for length in (0, 4, 8, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors: not a checkpoint of robo-rl \("):
            checkpoint.load(path)
    path.write_bytes(b"\xff" * 8 + whole[8:])
    with pytest.raises(CheckpointError, match="not a checkpoint of robo-rl"):
        checkpoint.load(path)


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.save(path, TENSORS, NUMBERS)
    whole = path.read_bytes()
    refused = 0
    places = range(0, len(whole), 3)
    for at in places:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            tensors, numbers = checkpoint.load(path)
        except CheckpointError:
            refused += 1
            continue
        assert numbers == NUMBERS  # a space of the header's padding
        assert all(tensors[name].numpy().tobytes() == x.contiguous().numpy().tobytes() for name, x in TENSORS.items())
    assert refused > 0.98 * len(places)


def test_a_checkpoint_of_an_earlier_release_is_read_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    safetensors.torch.save_file({"x": torch.zeros(2)}, path, metadata={"numbers": "{}"})
    with pytest.warns(UserWarning, match=r"old\.safetensors is of an earlier release, without a digest"):
        assert checkpoint.load(path)[0]["x"].tolist() == [0, 0]


def test_a_missing_or_foreign_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    with pytest.raises(CheckpointError, match=r"other\.safetensors: the file does not exist; expected a checkpoint"):
        checkpoint.load(path)
    safetensors.torch.save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(CheckpointError, match=r"other\.safetensors: not a checkpoint of robo-rl"):
        checkpoint.load(path)
    safetensors.torch.save_file({"x": torch.zeros(2)}, path, metadata={"numbers": "{"})
    with pytest.raises(CheckpointError, match=r"other\.safetensors: not a checkpoint of robo-rl"):
        checkpoint.load(path)


def test_an_optimiser_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    def step(weights: list[torch.Tensor], optimizer: torch.optim.Optimizer, k: int) -> None:
        for place, weight in enumerate(weights):
            weight.grad = torch.sin(weight + k + place)
        optimizer.step()

    def new() -> tuple[list[torch.Tensor], torch.optim.Optimizer]:
        weights = [torch.ones(3, requires_grad=True), torch.ones(2, 2, requires_grad=True)]
        return weights, torch.optim.Adam(weights, lr=0.1)

    weights, optimizer = new()
    for k in range(3):
        step(weights, optimizer, k)
    kept = checkpoint.optimizer_tensors(optimizer) | {f"w{i}": w.detach() for i, w in enumerate(weights)}
    checkpoint.save(tmp_path / "c", kept, {})
    for k in range(3, 6):
        step(weights, optimizer, k)

    tensors, _ = checkpoint.load(tmp_path / "c")
    others, other_optimizer = new()
    with torch.no_grad():
        for i, weight in enumerate(others):
            weight.copy_(tensors[f"w{i}"])
    checkpoint.optimizer_from(tensors, other_optimizer)
    for k in range(3, 6):
        step(others, other_optimizer, k)
    for weight, other in zip(weights, others, strict=True):
        np.testing.assert_array_equal(weight.detach(), other.detach())
