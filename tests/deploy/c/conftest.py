"""Small ONNX graphs as bundles, compiled here and compared with onnxruntime."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from robo_rl.contract import Actuator, Command, Contract, Network, Provenance, Robot, Safety, Signal, StateBlock
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.pack import pack
from robo_rl.deploy.robot.bundle import Bundle

FLOAT = TensorProto.FLOAT
ROBOT = Robot("test", "none", (Actuator("motor", "effort", "N*m", -1.0, 1.0, 0.0),))
Shapes = Mapping[str, tuple[int, ...]]


def make_contract(inputs: Shapes, outputs: Shapes, state: Sequence[StateBlock] = ()) -> Contract:
    """One signal per input and one command per output, of as many elements as they have."""

    def elements(shape: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(f"e{i}" for i in range(math.prod(shape)))

    def limits(shape: tuple[int, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (-3e38,) * math.prod(shape), (3e38,) * math.prod(shape)

    signals = tuple(Signal(n, elements(s), "1", "none", *limits(s)) for n, s in inputs.items())
    commands = tuple(Command(n, elements(s), "1", "none", *limits(s), limits(s)[0]) for n, s in outputs.items())
    made, network = Provenance("none", 0, 0, "0" * 64), Network((), "none", False)
    return Contract("test", 0.01, signals, commands, tuple(state), Safety(0.1), ROBOT, network, made)


def make_model(
    nodes: Sequence[NodeProto],
    inputs: Shapes,
    outputs: Shapes,
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 18,
) -> ModelProto:
    """The nodes, which see inputs in their shapes and give outputs in theirs, with the flat interface of a bundle."""
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    before, after = [], []
    for name, shape in inputs.items():
        tensors.append(numpy_helper.from_array(np.array(shape, np.int64), f"{name}_shape"))
        before.append(helper.make_node("Reshape", [f"{name}_flat", f"{name}_shape"], [name]))
    tensors.append(numpy_helper.from_array(np.array([1, -1], np.int64), "flat"))
    tensors.append(numpy_helper.from_array(np.array([1], np.int64), "once"))
    first = next(iter(inputs))
    after.append(helper.make_node("Shape", [f"{first}_flat"], ["batch_size"], end=1))
    after.append(helper.make_node("Concat", ["batch_size", "once"], ["batch_shape"], axis=0))
    for name in outputs:
        after.append(helper.make_node("Reshape", [name, "flat"], [f"{name}_row"]))
        after.append(helper.make_node("Expand", [f"{name}_row", "batch_shape"], [f"{name}_flat"]))
    after.append(helper.make_node("Identity", ["state"], ["next_state"]))
    sizes = {f"{n}_flat": math.prod(s) for n, s in inputs.items()} | {"state": 0}
    results = {f"{n}_flat": math.prod(s) for n, s in outputs.items()} | {"next_state": 0}
    graph = helper.make_graph(
        [*before, *nodes, *after],
        "test",
        [helper.make_tensor_value_info(n, FLOAT, ["batch", k]) for n, k in sizes.items()],
        [helper.make_tensor_value_info(n, FLOAT, ["batch", k]) for n, k in results.items()],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def flat(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Names of the flat interface."""
    return {f"{name}_flat": shape for name, shape in shapes.items()}


def make_bundle(model: ModelProto, inputs: Shapes, outputs: Shapes, signals: Mapping[str, np.ndarray]) -> Bundle:
    """A bundle in a folder that stays until the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="bundle"))
    given = {f"{name}_flat": value.reshape(len(value), -1) for name, value in signals.items()}
    return pack(model, make_contract(flat(inputs), flat(outputs)), given, folder / "test.onnx")


def differences(
    model: ModelProto, inputs: Shapes, outputs: Shapes, values: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Between compiled C and onnxruntime, per output, relative to its size where that exceeds 1."""
    bundle = make_bundle(model, inputs, outputs, values)
    compiled = compile_host(generate(bundle, bundle.path.parent / "c"), ["-O1"])
    found = dict.fromkeys(outputs, 0.0)
    for k in range(len(bundle.golden)):
        signals = {name: value[k : k + 1] for name, value in bundle.golden.signals.items()}
        ours, _ = compiled.run(signals, np.zeros((1, 0), np.float32))
        for name in outputs:
            expected = bundle.golden.commands[f"{name}_flat"][k]
            difference = np.abs(ours[f"{name}_flat"][0] - expected).max() / max(1.0, float(np.abs(expected).max()))
            found[name] = max(found[name], float(difference) if np.isfinite(difference) else math.inf)
    return found


@pytest.fixture
def differ() -> Callable[..., dict[str, float]]:
    """``differ(nodes, inputs, outputs, values, constants, opset)``: C against onnxruntime, by output."""

    def difference(
        nodes: Sequence[NodeProto],
        inputs: Shapes,
        outputs: Shapes,
        values: Mapping[str, np.ndarray],
        constants: Mapping[str, np.ndarray] | None = None,
        opset: int = 18,
    ) -> dict[str, float]:
        return differences(make_model(nodes, inputs, outputs, constants, opset), inputs, outputs, values)

    return difference
