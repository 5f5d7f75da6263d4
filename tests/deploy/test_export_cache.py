"""Kept exports: what is found again is what the exporter would write, and another computation is not found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn

from robo_rl.deploy.build import export as exporting
from robo_rl.deploy.build.export_cache import computation, exported


class Small(nn.Module):
    """A layer, a number and a constant."""

    def __init__(self, seed: int = 0, factor: float = 2.0, offset: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer, self.factor, self.offset = nn.Linear(3, 2), factor, torch.tensor([offset, 0.5])

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.compute(*inputs)

    def compute(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return self.layer(x * self.factor).clamp(-1, 1) + self.offset, state + x[:, :1]


class OtherOrder(Small):
    def compute(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return self.layer(x * self.factor).clamp(-1, 1) + self.offset, x[:, :1] + state


class WhenExported(Small):
    def compute(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return super().compute(-x if torch.compiler.is_exporting() else x, state)


class BySize(Small):
    def compute(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return super().compute(x * x.shape[0], state)


class Elsewhere(Small):
    """What it does to its input is not seen in any call of torch."""

    def compute(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return super().compute(torch.from_numpy(np.sin(x.detach().numpy())), state)


SHAPES, INPUTS, OUTPUTS = ((3,), (1,)), ["x", "state"], ["command", "next_state"]


def key(module: nn.Module) -> str | None:
    return computation(module, SHAPES, module.state_dict(keep_vars=True), [*INPUTS, *OUTPUTS])


def by_torch(module: nn.Module) -> ModelProto:
    return exporting._by_torch(module, SHAPES, INPUTS, OUTPUTS)


def through_cache(module: nn.Module, export: Callable[[], ModelProto]) -> ModelProto:
    return exported(module, SHAPES, module.state_dict(keep_vars=True), [*INPUTS, *OUTPUTS], export)


def refused() -> ModelProto:
    raise AssertionError("it was exported again")


def same(one: ModelProto, other: ModelProto) -> bool:
    return one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "robo-rl" / "exports"


def test_another_policy_of_a_computation_is_what_the_exporter_writes_of_it_to_the_byte(folder: Path) -> None:
    first, other = Small(0), Small(1)
    assert same(through_cache(first, lambda: by_torch(first)), by_torch(first))
    found = through_cache(other, refused)
    assert same(found, by_torch(other))
    x, state = torch.rand(5, 3), torch.rand(5, 1)
    command, following = ReferenceEvaluator(found).run(None, {"x": x.numpy(), "state": state.numpy()})
    expected = other(x, state)
    np.testing.assert_allclose(command, expected[0].detach(), atol=1e-6)
    np.testing.assert_allclose(following, expected[1], atol=1e-6)
    equal = Small(2)
    with torch.no_grad():
        equal.layer.bias.copy_(equal.offset)  # the exporter makes one of what is equal
    with pytest.raises(AssertionError, match="exported again"):
        through_cache(equal, refused)
    (file,) = folder.iterdir()
    data = file.read_bytes()
    file.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    with pytest.raises(AssertionError, match="exported again"):
        through_cache(other, refused)


def test_whatever_changes_what_is_computed_changes_the_key() -> None:
    others: Sequence[nn.Module] = (
        Small(factor=3.0), Small(offset=2.0), OtherOrder(), WhenExported(), BySize(), Elsewhere(),
    )  # fmt: skip
    keys = [key(Small(0)), *map(key, others)]
    assert key(Small(7)) == keys[0] is not None
    assert len(set(keys)) == len(keys)
    assert computation(Small(), SHAPES, {}, [*INPUTS, *OUTPUTS]) != keys[0], "weights are constants then"
    assert computation(Small(), SHAPES, Small().state_dict(), ["y", *INPUTS[1:], *OUTPUTS]) != keys[0]


def test_a_parameter_that_changes_nothing_yet_is_in_the_graph_all_the_same(folder: Path) -> None:
    module = Small()
    with torch.no_grad():
        module.layer.bias.zero_()
    exporter = by_torch(module)
    model = through_cache(module, lambda: by_torch(module))
    arrays = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    assert any(array.shape == (2,) and not array.any() for array in arrays)
    assert len(exporter.graph.initializer) <= len(arrays)
    x, state = torch.rand(5, 3), torch.rand(5, 1)
    command, _ = ReferenceEvaluator(model).run(None, {"x": x.numpy(), "state": state.numpy()})
    np.testing.assert_allclose(command, module(x, state)[0].detach(), atol=1e-6)


def test_a_graph_that_depends_on_what_its_parameters_are_is_not_kept(folder: Path) -> None:
    class Merged(Small):
        def compute(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            return x @ (self.layer.weight * 2.0).T + self.layer.bias, state

    module = Merged()
    with torch.no_grad():
        model = through_cache(module, lambda: by_torch(module))
    onnx.checker.check_model(model)
    assert not folder.exists() or not list(folder.iterdir())


def test_a_call_that_is_not_torch_s_is_not_taken_for_another_of_its_name() -> None:
    class Own(Small):
        def compute(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            return super().compute(torch.ops.robo_rl_test.twice(x), state)

    @torch.library.custom_op("robo_rl_test::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x * 2

    assert key(Own()) is None
