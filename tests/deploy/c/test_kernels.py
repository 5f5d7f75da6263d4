"""Operators that networks with eyes are made of, on signals of any shape: C against onnxruntime and torch."""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, helper

sys.path.append(str(Path(__file__).parents[1]))
from graphs import make_bundle, make_contract

from robo_rl.contract import Command, Signal
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.graph import UnsupportedError
from robo_rl.deploy.build.c.host import compile_host

WIDE = 1e6


def compared(
    nodes: list[NodeProto], shape: tuple[int, ...], size: int, constants: dict[str, np.ndarray], seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs x (4, *shape), what onnxruntime makes of them, and what C does, (4, size), by nodes from x to y."""
    signal = Signal("x", (), "1", "none", -WIDE, WIDE, shape=shape)
    command = Command(
        "y", tuple(f"e{i}" for i in range(size)), "1", "none", (-WIDE,) * size, (WIDE,) * size, (0.0,) * size
    )
    values = np.random.default_rng(seed).normal(size=(4, *shape)).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        bundle = make_bundle(Path(name), make_contract([signal], [command]), nodes, {"x": values}, constants)
        compiled = compile_host(
            generate(bundle, Path(name) / "c"), ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover"]
        )
        found, _ = compiled.run({"x": values}, np.zeros((4, 0), np.float32))
    return values, bundle.golden.commands["y"], found["y"]


def flat(name: str) -> NodeProto:
    """From ``name`` to y, as one row."""
    return helper.make_node("Flatten", [name], ["y"])


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    """Sizes of a convolution whose output has at least one place."""
    n = draw(st.integers(1, 2))
    groups = draw(st.sampled_from([1, 1, 2]))
    kernel = [draw(st.integers(1, 4)) for _ in range(n)]
    spread = [draw(st.integers(1, 2)) for _ in range(n)]
    pads = [draw(st.integers(0, 2)) for _ in range(2 * n)]
    reach = [s * (k - 1) + 1 for k, s in zip(kernel, spread, strict=True)]
    size = [max(1, r - before - after) + draw(st.integers(0, 7))
            for r, before, after in zip(reach, pads[:n], pads[n:], strict=True)]  # fmt: skip
    return {
        "size": size, "kernel": kernel, "spread": spread, "pads": pads, "groups": groups,
        "strides": [draw(st.integers(1, 3)) for _ in range(n)],
        "inputs": groups * draw(st.integers(1, 3)), "outputs": groups * draw(st.integers(1, 9)),
        "bias": draw(st.booleans()), "last": draw(st.booleans()),
    }  # fmt: skip


@settings(max_examples=15, deadline=None, derandomize=True)
@given(conv=convolutions())
def test_convolutions_of_any_size_equal_onnxruntime_and_torch(conv: dict[str, Any]) -> None:
    n, random = len(conv["size"]), np.random.default_rng(1)
    weights = random.normal(size=(conv["outputs"], conv["inputs"] // conv["groups"], *conv["kernel"])).astype(
        np.float32
    )
    constants = {"weights": weights}
    if conv["bias"]:
        constants["bias"] = random.normal(size=conv["outputs"]).astype(np.float32)
    before, shape = [], (conv["inputs"], *conv["size"])
    if conv["last"]:  # channels come last, as cameras have them
        shape = (*conv["size"], conv["inputs"])
        before = [helper.make_node("Transpose", ["x"], ["moved"], perm=[0, n + 1, *range(1, n + 1)])]
    node = helper.make_node(
        "Conv", ["moved" if before else "x", *constants], ["found"], strides=conv["strides"], pads=conv["pads"],
        dilations=conv["spread"], group=conv["groups"],
    )  # fmt: skip
    sides = zip(
        conv["size"], conv["kernel"], conv["spread"], conv["strides"], conv["pads"][:n], conv["pads"][n:], strict=True
    )
    places = [(k + a + b - d * (w - 1) - 1) // s + 1 for k, w, d, s, a, b in sides]
    size = conv["outputs"] * math.prod(places)
    x, expected, found = compared([*before, node, flat("found")], shape, size, constants)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    wide = torch.from_numpy(np.moveaxis(x, -1, 1).copy() if conv["last"] else x)
    edges = [edge for axis in reversed(range(n)) for edge in (conv["pads"][axis], conv["pads"][n + axis])]
    convolve = torch.nn.functional.conv1d if n == 1 else torch.nn.functional.conv2d
    bias = torch.from_numpy(constants["bias"]) if conv["bias"] else None
    ours = convolve(
        torch.nn.functional.pad(wide, edges),
        torch.from_numpy(weights),
        bias,
        conv["strides"],
        0,
        conv["spread"],
        conv["groups"],
    )
    np.testing.assert_allclose(found, ours.flatten(1).numpy(), rtol=1e-5, atol=1e-5)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 12)), axis=st.integers(1, 3), data=st.data()
)
def test_operators_along_any_axis_equal_onnxruntime(shape: tuple[int, ...], axis: int, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["Softmax", "ReduceMean", "ReduceMax", "LayerNormalization"]))
    constants: dict[str, np.ndarray] = {}
    if kind == "Softmax":
        node, size = helper.make_node(kind, ["x"], ["found"], axis=axis), math.prod(shape)
    elif kind == "LayerNormalization":
        random = np.random.default_rng(2)
        constants = {name: random.normal(size=shape[axis - 1 :]).astype(np.float32) for name in ("scale", "bias")}
        node, size = helper.make_node(kind, ["x", "scale", "bias"], ["found"], axis=axis), math.prod(shape)
    else:
        constants = {"axes": np.array([axis])}
        node, size = helper.make_node(kind, ["x", "axes"], ["found"]), math.prod(shape) // shape[axis - 1]
    _, expected, found = compared([node, flat("found")], shape, size, constants)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(rows=st.integers(1, 9), width=st.integers(1, 13), turned=st.booleans())
def test_products_of_what_is_computed_equal_onnxruntime(rows: int, width: int, turned: bool) -> None:
    """Attention: weights of rows, from the rows themselves, and the sum that they weigh."""
    random = np.random.default_rng(3)
    constants = {
        "embedding": random.normal(size=(width, 6)).astype(np.float32),
        "query": random.normal(size=(6, 1)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "embedding"], ["inner"]),
        helper.make_node("Tanh", ["inner"], ["rows"]),
        helper.make_node("MatMul", ["rows", "query"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=1),
        helper.make_node("Transpose", ["weights" if not turned else "rows"], ["across"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["across", "rows" if not turned else "weights"], ["found"]),
        flat("found"),
    ]
    _, expected, found = compared(nodes, (rows, width), 6, constants)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data())
def test_moving_data_of_any_shape_costs_nothing_but_its_order(shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(1, len(shape) + 1)))
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"], perm=[0, *order]),
        helper.make_node("Exp", ["turned"], ["grown"]),
        flat("grown"),
    ]
    x, expected, found = compared(nodes, tuple(shape), math.prod(shape), {})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(found, np.exp(x.transpose(0, *order)).reshape(4, -1), rtol=1e-6)


@pytest.mark.parametrize("kind", ["MaxPool", "ConvTranspose"])
def test_what_has_no_c_is_refused_by_name(kind: str) -> None:
    constants = {} if kind == "MaxPool" else {"weights": np.ones((1, 1, 2), np.float32)}
    node = helper.make_node(kind, ["x", *constants], ["found"], "eye", kernel_shape=[2], strides=[2])
    with pytest.raises(UnsupportedError, match=rf"node 'eye' \({kind}\): there is no C for this operator"):
        compared([node, flat("found")], (1, 8), 4 if kind == "MaxPool" else 16, constants)
