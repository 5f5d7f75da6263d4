"""Bundles as somebody makes them who means harm: a good one, changed and sealed anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

from robo_rl.deploy.robot.bundle import DIGEST_KEY, NO_DIGEST, seal
from robo_rl.zoo import FOLDER

GOOD = FOLDER / "quadrotor-hover.onnx"
COMMAND = "rotor_speed"


def resealed(path: Path, change: Callable[[ModelProto], object]) -> Path:
    """Write a copy that ``change`` was applied to, with a right digest."""
    model = onnx.load_model_from_string(GOOD.read_bytes())
    change(model)
    for entry in model.metadata_props:
        if entry.key == DIGEST_KEY:
            entry.value = NO_DIGEST
    path.write_bytes(seal(model.SerializeToString(deterministic=True)))
    return path


def entry(model: ModelProto, key: str) -> Any:
    (found,) = [prop for prop in model.metadata_props if prop.key == key]
    return found


def constant(model: ModelProto, name: str, values: Any, kind: type = np.int64) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.array(values, kind), name))


def add(model: ModelProto, *node: Any, **fields: Any) -> NodeProto:
    model.graph.node.append(helper.make_node(*node, **fields))
    return model.graph.node[-1]


def spoil(model: ModelProto, nodes: Sequence[tuple[Any, ...]]) -> None:
    """Let the command depend on what ``nodes`` make of it: the last makes a scalar, "end", which is added to it."""
    for node in model.graph.node:
        for i, name in enumerate(node.output):
            if name == COMMAND:
                node.output[i] = "honest"
    for node in nodes:
        fields = node[3] if len(node) > 3 else {}
        add(model, *node[:3], **fields)
    add(model, "Add", ["honest", "end"], [COMMAND])


def allocates(model: ModelProto, count: int) -> None:
    """2 KB more, and ``count`` floats of memory."""
    constant(model, "shape", [count])
    value = helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [0.0])
    spoil(model, [("ConstantOfShape", ["shape"], ["many"], {"value": value}),
                  ("ReduceSum", ["many"], ["end"], {"keepdims": 0})])  # fmt: skip


def allocates_at_work(model: ModelProto, count: int) -> None:
    """What can't be computed before there are signals."""
    constant(model, "shape", [count])
    constant(model, "zero", 0.0, np.float32)
    spoil(model, [("ReduceSum", ["honest"], ["sum"], {"keepdims": 0}), ("Mul", ["sum", "zero"], ["nothing"]),
                  ("Expand", ["nothing", "shape"], ["many"]), ("Exp", ["many"], ["more"]),
                  ("ReduceMin", ["more"], ["end"], {"keepdims": 0})])  # fmt: skip


def computes(model: ModelProto, size: int, times: int) -> None:
    """Products of large matrices, ``times`` in a step."""
    constant(model, "shape", [size, size])
    constant(model, "zero", 0.0, np.float32)
    nodes: list[tuple[Any, ...]] = [
        ("ReduceSum", ["honest"], ["sum"], {"keepdims": 0}), ("Mul", ["sum", "zero"], ["nothing"]),
        ("Expand", ["nothing", "shape"], ["m0"]),
    ]  # fmt: skip
    nodes += [("MatMul", [f"m{i}", f"m{i}"], [f"m{i + 1}"]) for i in range(times)]
    spoil(model, [*nodes, ("ReduceMax", [f"m{times}"], ["end"], {"keepdims": 0})])
