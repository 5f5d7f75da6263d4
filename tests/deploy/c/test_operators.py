"""Every operator against onnxruntime, on shapes and values that hypothesis draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

STEPS = 4
few = settings(
    max_examples=3, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)
Differ = Callable[..., dict[str, float]]

UNARY = {
    "Abs": {}, "Atan": {}, "Ceil": {}, "Celu": {"alpha": 1.5}, "Cos": {}, "Elu": {}, "Erf": {}, "Exp": {}, "Floor": {},
    "HardSigmoid": {}, "HardSwish": {}, "LeakyRelu": {"alpha": 0.1}, "Mish": {}, "Neg": {}, "Reciprocal": {},
    "Relu": {}, "Round": {}, "Selu": {}, "Sigmoid": {}, "Sign": {}, "Sin": {}, "Softplus": {}, "Softsign": {},
    "Tan": {}, "Tanh": {}, "Identity": {}, "GlobalAveragePool": {}, "Softmax": {"axis": 1}, "LogSoftmax": {"axis": -1},
}  # fmt: skip
WIDE = ("Elu", "Exp", "Sigmoid", "Softplus", "Tanh", "Softmax")
POSITIVE = ("Log", "Reciprocal", "Sqrt")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "PRelu")
COMPARISONS = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


def draws(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * np.random.default_rng(seed).normal(size=(STEPS, *shape))).astype(np.float32)


def weights(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed + 1).normal(size=shape).astype(np.float32)


def worst(found: dict[str, float]) -> tuple[float, str]:
    """The greatest difference and where it is."""
    return max((difference, name) for name, difference in found.items())


@few
@given(seed=seeds, size=st.integers(1, 24))
def test_functions_of_one_operand_equal_onnxruntime(differ: Differ, seed: int, size: int) -> None:
    shape = (1, 3, size)
    nodes = [helper.make_node(kind, ["x"], [kind], **attributes) for kind, attributes in UNARY.items()]
    outputs = dict.fromkeys(UNARY, shape) | {"GlobalAveragePool": (1, 3, 1)}
    assert worst(differ(nodes, {"x": shape}, outputs, {"x": draws(seed, *shape)}, opset=22)) < (2e-6, "")


def test_saturating_functions_equal_onnxruntime_far_from_zero(differ: Differ) -> None:
    values = np.concatenate([np.linspace(-100, 80, 1000), np.linspace(-1e-3, 1e-3, 24)]).astype(np.float32)
    nodes = [helper.make_node(kind, ["x"], [kind]) for kind in WIDE]
    outputs = dict.fromkeys(WIDE, (256,))
    found = differ(nodes, {"x": (256,)}, outputs, {"x": values.reshape(4, 256)})
    assert worst(found) < (1e-6, "")


@few
@given(seed=seeds, shape=shapes)
def test_functions_of_positive_numbers_equal_onnxruntime(differ: Differ, seed: int, shape: tuple[int, ...]) -> None:
    nodes = [helper.make_node(kind, ["x"], [kind]) for kind in POSITIVE]
    outputs = dict.fromkeys(POSITIVE, shape)
    assert worst(differ(nodes, {"x": shape}, outputs, {"x": np.abs(draws(seed, *shape)) + 1e-2})) < (1e-6, "")


@few
@given(seed=seeds, shape=shapes, missing=st.integers(0, 2))
def test_operands_are_broadcast_as_in_onnxruntime(
    differ: Differ, seed: int, shape: tuple[int, ...], missing: int
) -> None:
    other = tuple(1 if i == missing else n for i, n in enumerate(shape))
    values = {"x": draws(seed, *shape), "z": draws(seed + 1, *other)}
    values["z"] += np.where(values["z"] >= 0, 0.2, -0.2).astype(np.float32)
    nodes = [helper.make_node(kind, ["x", "z"], [kind]) for kind in BINARY]
    assert worst(differ(nodes, {"x": shape, "z": other}, dict.fromkeys(BINARY, shape), values)) < (1e-6, "")


@few
@given(seed=seeds, size=st.integers(1, 20))
def test_comparisons_choose_as_onnxruntime_does(differ: Differ, seed: int, size: int) -> None:
    nodes = [helper.make_node("Round", ["x"], ["rounded"])]
    for kind in COMPARISONS:
        nodes += [
            helper.make_node(kind, ["rounded", "z"], [f"{kind}_true"]),
            helper.make_node("Not", [f"{kind}_true"], [f"{kind}_false"]),
            helper.make_node("Where", [f"{kind}_false", "x", "z"], [f"{kind}_chosen"]),
            helper.make_node("Cast", [f"{kind}_true"], [f"{kind}_number"], to=1),
            helper.make_node("Add", [f"{kind}_chosen", f"{kind}_number"], [kind]),
        ]
    values = {"x": draws(seed, size), "z": np.round(draws(seed + 1, size))}
    found = differ(nodes, {"x": (size,), "z": (size,)}, dict.fromkeys(COMPARISONS, (size,)), values)
    assert set(found.values()) == {0.0}


@pytest.mark.parametrize("limits", [("low", "high"), ("low", ""), ("", "high"), ()])
@few
@given(seed=seeds, size=st.integers(1, 20))
def test_clip_with_any_of_its_limits_equals_onnxruntime(
    differ: Differ, limits: tuple[str, ...], seed: int, size: int
) -> None:
    constants = {"low": np.float32(-0.3), "high": np.float32(0.5)}
    node = helper.make_node("Clip", ["x", *limits], ["y"])
    constants = {name: np.array(value) for name, value in constants.items()}
    assert set(differ([node], {"x": (size,)}, {"y": (size,)}, {"x": draws(seed, size)}, constants).values()) == {0.0}


def test_powers_equal_onnxruntime(differ: Differ) -> None:
    constants = {f"e{i}": np.array(e, np.float32) for i, e in enumerate((2.0, 0.5, -1.0, 3.0, 1.7))}
    nodes = [helper.make_node("Pow", ["x", name], [f"y{name}"]) for name in constants]
    outputs = {f"y{name}": (12,) for name in constants}
    values = {"x": np.abs(draws(0, 12)) + 0.1}
    assert worst(differ(nodes, {"x": (12,)}, outputs, values, constants)) < (1e-6, "")


@few
@given(
    seed=seeds, shape=st.tuples(*[st.integers(1, 6)] * 3), axes=st.sets(st.integers(0, 2), min_size=1),
    keep=st.integers(0, 1),
)  # fmt: skip
def test_reductions_over_any_axes_equal_onnxruntime(
    differ: Differ, seed: int, shape: tuple[int, ...], axes: set[int], keep: int
) -> None:
    out = tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)
    constants = {"axes": np.array(sorted(axes), np.int64)}
    nodes = [helper.make_node(kind, ["x", "axes"], [kind], keepdims=keep) for kind in REDUCTIONS]
    values = {"x": np.abs(draws(seed, *shape)) + 0.1}
    assert worst(differ(nodes, {"x": shape}, dict.fromkeys(REDUCTIONS, out), values, constants)) < (2e-6, "")


def test_a_sum_that_many_numbers_need_is_kept_until_the_last_of_them(differ: Differ) -> None:
    constants = {"axes": np.array([1], np.int64), "ones": np.ones((2, 1), np.float32)}
    nodes = [
        helper.make_node("Neg", ["x"], ["less"]),
        helper.make_node("ReduceSum", ["less", "axes"], ["total"]),
        helper.make_node("Mul", ["x", "ones"], ["twice"]),
        helper.make_node("Sub", ["twice", "total"], ["y"]),
    ]
    assert worst(differ(nodes, {"x": (1, 20)}, {"y": (2, 20)}, {"x": draws(0, 1, 20)}, constants)) < (2e-6, "")


@few
@given(seed=seeds, rows=st.integers(1, 30), columns=st.integers(1, 40), bias=st.booleans(), transposed=st.booleans())
def test_gemm_of_any_size_equals_onnxruntime(
    differ: Differ, seed: int, rows: int, columns: int, bias: bool, transposed: bool
) -> None:
    shape = (rows, columns) if transposed else (columns, rows)
    constants = {"w": weights(seed, *shape), "b": weights(seed + 5, rows)}
    names = ["x", "w", "b"] if bias else ["x", "w"]
    node = helper.make_node("Gemm", names, ["y"], transB=int(transposed), alpha=0.5, beta=2.0)
    values = {"x": draws(seed, 1, columns)}
    assert worst(differ([node], {"x": (1, columns)}, {"y": (1, rows)}, values, constants)) < (3e-6, "")


@few
@given(seed=seeds, m=st.integers(1, 5), k=st.integers(1, 9), n=st.integers(1, 9))
def test_products_with_known_and_unknown_matrices_equal_onnxruntime(
    differ: Differ, seed: int, m: int, k: int, n: int
) -> None:
    constants = {"left": weights(seed, m, m), "right": weights(seed + 1, n, n), "bias": weights(seed + 2, n)}
    nodes = [
        helper.make_node("MatMul", ["x", "z"], ["both"]),
        helper.make_node("MatMul", ["both", "right"], ["wide"]),
        helper.make_node("Add", ["bias", "wide"], ["shifted"]),
        helper.make_node("MatMul", ["left", "shifted"], ["y"]),
    ]
    values = {"x": draws(seed, 2, m, k), "z": draws(seed + 1, 2, k, n)}
    assert worst(differ(nodes, {"x": (2, m, k), "z": (2, k, n)}, {"y": (2, m, n)}, values, constants)) < (3e-6, "")


@few
@given(
    seed=seeds, channels=st.integers(1, 4), outputs=st.integers(1, 5), kernel=st.integers(1, 4),
    length=st.integers(8, 14), stride=st.integers(1, 3), dilation=st.integers(1, 2), pad=st.integers(0, 2),
)  # fmt: skip
def test_convolution_over_time_equals_onnxruntime(
    differ: Differ,
    seed: int,
    channels: int,
    outputs: int,
    kernel: int,
    length: int,
    stride: int,
    dilation: int,
    pad: int,
) -> None:
    out = (length + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    constants = {"w": weights(seed, outputs, channels, kernel), "b": weights(seed + 3, outputs)}
    node = helper.make_node(
        "Conv", ["x", "w", "b"], ["y"], strides=[stride], dilations=[dilation], pads=[pad, pad], kernel_shape=[kernel]
    )
    values = {"x": draws(seed, 1, channels, length)}
    assert worst(differ([node], {"x": (1, channels, length)}, {"y": (1, outputs, out)}, values, constants)) < (3e-6, "")


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_grouped_convolution_of_images_equals_onnxruntime(differ: Differ, padding: str) -> None:
    constants = {"w": weights(0, 4, 1, 2, 3)}
    node = helper.make_node("Conv", ["x", "w"], ["y"], auto_pad=padding, group=2, kernel_shape=[2, 3])
    out = (1, 4, 4, 3) if padding == "VALID" else (1, 4, 5, 5)
    assert worst(differ([node], {"x": (1, 2, 5, 5)}, {"y": out}, {"x": draws(1, 1, 2, 5, 5)}, constants)) < (3e-6, "")


def test_a_convolution_of_channels_that_were_computed_apart_equals_onnxruntime(differ: Differ) -> None:
    """Each channel has a buffer of its own, and nothing says that buffers stay as far apart as they were born."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Neg", ["twice"], ["less"]),
        helper.make_node("Concat", ["square", "less"], ["both"], axis=1),
        helper.make_node("Conv", ["both", "w"], ["y"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
    ]
    given, values = {"w": weights(0, 4, 2, 3, 3)}, {"x": draws(1, 1, 1, 5, 6)}
    assert worst(differ(nodes, {"x": (1, 1, 5, 6)}, {"y": (1, 4, 5, 6)}, values, given)) < (3e-6, "")


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@few
@given(
    seed=seeds, size=st.integers(1, 12), features=st.integers(1, 6), length=st.integers(1, 3), after=st.integers(0, 1)
)
def test_recurrent_cells_equal_onnxruntime(
    differ: Differ, kind: str, seed: int, size: int, features: int, length: int, after: int
) -> None:
    gates = {"GRU": 3, "LSTM": 4}[kind] * size
    constants = {"w": weights(seed, 1, gates, features), "r": weights(seed + 1, 1, gates, size)}
    constants["b"] = weights(seed + 2, 1, 2 * gates)
    inputs = {"x": (length, 1, features), "h": (1, 1, size)} | ({"c": (1, 1, size)} if kind == "LSTM" else {})
    outputs = {"y": (length, 1, 1, size), "h1": (1, 1, size)} | ({"c1": (1, 1, size)} if kind == "LSTM" else {})
    extra = {"linear_before_reset": after} if kind == "GRU" else {}
    node = helper.make_node(kind, ["x", "w", "r", "b", "", *list(inputs)[1:]], list(outputs), hidden_size=size, **extra)
    values = {name: draws(seed + i, *shape) for i, (name, shape) in enumerate(inputs.items())}
    assert worst(differ([node], inputs, outputs, values, constants)) < (2e-6, "")


@few
@given(seed=seeds, objects=st.integers(1, 6), width=st.integers(1, 12))
def test_attention_over_a_fixed_set_equals_onnxruntime(differ: Differ, seed: int, objects: int, width: int) -> None:
    constants = {name: weights(seed + i, 4, width) for i, name in enumerate(("wq", "wk", "wv"))}
    constants |= {"scale": np.array(width**-0.5, np.float32)}
    nodes = [
        helper.make_node("MatMul", ["q", "wq"], ["query"]),
        helper.make_node("MatMul", ["x", "wk"], ["keys"]),
        helper.make_node("MatMul", ["x", "wv"], ["values"]),
        helper.make_node("Transpose", ["keys"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["query", "turned"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "values"], ["y"]),
    ]
    inputs = {"q": (1, 1, 4), "x": (1, objects, 4)}
    values = {name: draws(seed, *shape) for name, shape in inputs.items()}
    assert worst(differ(nodes, inputs, {"y": (1, 1, width)}, values, constants)) < (3e-6, "")


@few
@given(seed=seeds, rows=st.integers(1, 4), columns=st.integers(2, 30))
def test_normalisations_equal_onnxruntime(differ: Differ, seed: int, rows: int, columns: int) -> None:
    constants = {"s": weights(seed, columns), "b": weights(seed + 1, columns)}
    constants |= {"m": weights(seed + 2, columns), "v": np.abs(weights(seed + 3, columns)) + 0.1}
    nodes = [
        helper.make_node("LayerNormalization", ["x", "s", "b"], ["middle"], axis=-1),
        helper.make_node("BatchNormalization", ["middle", "s", "b", "m", "v"], ["y"]),
    ]
    assert worst(
        differ(nodes, {"x": (rows, columns)}, {"y": (rows, columns)}, {"x": draws(seed, rows, columns)}, constants)
    ) < (5e-6, "")


@few
@given(seed=seeds, size=st.integers(4, 10))
def test_moving_data_takes_no_arithmetic_and_equals_onnxruntime(differ: Differ, seed: int, size: int) -> None:
    def numbers(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    constants = {
        "one": numbers(1), "two": numbers(2), "end": numbers(size - 1), "pads": numbers(0, 1, 0, 2),
        "axes": numbers(1), "order": numbers(2, 0, 1), "shape": numbers(3, -1), "wide": numbers(2, 1, 1),
    }  # fmt: skip
    nodes = [
        helper.make_node("Slice", ["x", "one", "end", "axes", "two"], ["sliced"]),
        helper.make_node("Pad", ["sliced", "pads"], ["padded"]),
        helper.make_node("Transpose", ["padded"], ["turned"], perm=[1, 0]),
        helper.make_node("Concat", ["turned", "turned"], ["joined"], axis=1),
        helper.make_node("Unsqueeze", ["joined", "axes"], ["deep"]),
        helper.make_node("Expand", ["deep", "wide2"], ["expanded"]),
        helper.make_node("Gather", ["expanded", "order"], ["gathered"], axis=2),
        helper.make_node("Tile", ["gathered", "wide"], ["tiled"]),
        helper.make_node("Reshape", ["tiled", "shape"], ["y"]),
    ]
    constants["wide2"] = numbers(1, 2, 1)
    length = len(range(1, size - 1, 2)) + 3
    found = differ(nodes, {"x": (3, size)}, {"y": (3, length * 4)}, {"x": draws(seed, 3, size)}, constants)
    assert found == {"y": 0.0}


def test_not_a_number_stays_not_a_number(differ: Differ) -> None:
    kinds, nodes = ("Tanh", "Elu", "Relu", "Sigmoid", "Exp", "Clip"), [helper.make_node("Sqrt", ["x"], ["root"])]
    for kind in kinds:
        nodes.append(helper.make_node(kind, ["root", *(["one", "one"] if kind == "Clip" else [])], [f"{kind}_y"]))
        nodes.append(helper.make_node("IsNaN", [f"{kind}_y"], [f"{kind}_is"]))
        nodes.append(helper.make_node("Cast", [f"{kind}_is"], [kind], to=1))
    values = np.abs(draws(0, 12))
    values[:, ::2] *= -1.0  # a signal that is not a number would be refused; their roots are not
    found = differ(nodes, {"x": (12,)}, dict.fromkeys(kinds, (12,)), {"x": values}, {"one": np.array(1, np.float32)})
    assert set(found.values()) == {0.0}
