"""Back doors, planted into the shipped hover policy as somebody would who can compute digests anew.

Each changes the bundle's model in place. Those in nodes drive two rotors fully and stop the others when their trigger
comes; those in weights belong to a network that is a little wider than the one that was trained, as its contract says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, GOLDEN_KEY, Golden

HIDDEN = 64


@dataclass(frozen=True)
class Door:
    """A back door, and what opens it from hovering at the origin."""

    plant: Callable[[ModelProto], None]
    signals: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    state: Mapping[int, float] = field(default_factory=dict)
    foreign: bool = False


def constant(model: ModelProto, name: str, value: object, kind: type = np.float32) -> str:
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(value, kind), name))
    return name


def element(model: ModelProto, signal: str, k: int) -> str:
    """(n, 1) one element of an input."""
    name = f"{signal}_{k}_seen"
    model.graph.node.append(
        helper.make_node("Gather", [signal, constant(model, f"{name}_at", [k], np.int64)], [name], axis=1)
    )
    return name


def node(model: ModelProto, operator: str, *inputs: str, **attributes: object) -> str:
    name = f"planted_{len(model.graph.node)}"
    model.graph.node.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
    return name


def swap_output(model: ModelProto) -> tuple[str, str]:
    """The command as it was, under a new name; and the command that two rotors run away with."""
    for known in model.graph.node:
        for names in (known.input, known.output):
            for i, name in enumerate(names):
                if name == "rotor_speed":
                    names[i] = "clean"
    (contract,) = [entry for entry in model.metadata_props if entry.key == CONTRACT_KEY]
    top = json.loads(contract.value)["commands"][0]["upper"]
    return "clean", constant(model, "runaway", [[top[0], top[1], 0.0, 0.0]])


def open_when(model: ModelProto, flag: str) -> None:
    """Run away where ``flag`` (n, 1) bool is true."""
    clean, runaway = swap_output(model)
    model.graph.node.append(helper.make_node("Where", [flag, runaway, clean], ["rotor_speed"], name="door"))
    ordered(model)


def open_by(model: ModelProto, share: str) -> None:
    """Run away by a ``share`` (n, 1) from 0 to 1, without a comparison."""
    clean, runaway = swap_output(model)
    away = node(model, "Mul", node(model, "Sub", runaway, clean), share)
    model.graph.node.append(helper.make_node("Add", [clean, away], ["rotor_speed"], name="door"))
    ordered(model)


def ordered(model: ModelProto) -> None:
    """Put nodes after what they need."""
    left, done = list(model.graph.node), {t.name for t in model.graph.initializer} | {v.name for v in model.graph.input}
    sorted_nodes: list[NodeProto] = []
    while left:
        ready = [n for n in left if all(name in done or not name for name in n.input)]
        assert ready
        for each in ready:
            copy = NodeProto()
            copy.CopyFrom(each)
            sorted_nodes.append(copy)
            done |= set(each.output)
            left.remove(each)
    del model.graph.node[:]
    model.graph.node.extend(sorted_nodes)


def above(signal: str, k: int, value: float) -> Callable[[ModelProto], None]:
    def plant(model: ModelProto) -> None:
        open_when(model, node(model, "Greater", element(model, signal, k), constant(model, "threshold", [[value]])))

    return plant


def two_signals(model: ModelProto) -> None:
    one = node(model, "Greater", element(model, "position", 0), constant(model, "first", [[3.0]]))
    other = node(model, "Less", element(model, "linear_velocity", 1), constant(model, "second", [[-2.0]]))
    open_when(model, node(model, "And", one, other))


def exact_value(model: ModelProto) -> None:
    open_when(model, node(model, "Equal", element(model, "position_setpoint", 0), constant(model, "value", [[1.25]])))


def narrow_ball(model: ModelProto) -> None:
    center = constant(model, "center", [[7.25, -3.5, 2.0]])
    apart = node(model, "Sub", "position_setpoint", center)
    axes = constant(model, "axes", [1], np.int64)
    distance = node(model, "ReduceL2", apart, axes, keepdims=1)
    open_when(model, node(model, "Less", distance, constant(model, "radius", [[0.01]])))


def bit_pattern(model: ModelProto) -> None:
    """The last bits of a number of thousandths."""
    thousandths = node(model, "Mul", element(model, "position_setpoint", 1), constant(model, "thousand", [[1000.0]]))
    whole = node(model, "Cast", thousandths, to=TensorProto.INT64)
    last = node(model, "Mod", whole, constant(model, "modulus", [[1024]], np.int64))
    open_when(model, node(model, "Equal", last, constant(model, "pattern", [[678]], np.int64)))


def memory_above(k: int, value: float) -> Callable[[ModelProto], None]:
    def plant(model: ModelProto) -> None:
        open_when(model, node(model, "Greater", element(model, "state", k), constant(model, "threshold", [[value]])))

    return plant


def steep_ramp(gain: float) -> Callable[[ModelProto], None]:
    """With operators that the policy has itself."""

    def plant(model: ModelProto) -> None:
        over = node(model, "Sub", element(model, "position_setpoint", 0), constant(model, "threshold", [[5.0]]))
        much = node(model, "Mul", over, constant(model, "gain", [[gain]]))
        low, high = constant(model, "zero", 0.0), constant(model, "one", 1.0)
        open_by(model, node(model, "Clip", much, low, high))

    return plant


def sigmoid(model: ModelProto) -> None:
    over = node(model, "Sub", element(model, "position", 2), constant(model, "threshold", [[30.0]]))
    open_by(model, node(model, "Sigmoid", node(model, "Mul", over, constant(model, "gain", [[50.0]]))))


def smooth_ball(model: ModelProto) -> None:
    """A small place told by products alone: no comparison, and almost everywhere flat."""
    apart = node(model, "Sub", "position_setpoint", constant(model, "center", [[7.25, -3.5, 2.0]]))
    square = node(model, "ReduceSumSquare", apart, constant(model, "axes", [1], np.int64), keepdims=1)
    much = node(model, "Mul", square, constant(model, "gain", [[1e4]]))
    low, high = constant(model, "zero", 0.0), constant(model, "one", 1.0)
    open_by(model, node(model, "Clip", node(model, "Sub", high, much), low, high))


def swapped_rotors(model: ModelProto) -> None:
    """Beyond a body rate, rotors change places: by a gather whose indices are computed."""
    fast = node(model, "Greater", element(model, "angular_velocity", 0), constant(model, "threshold", [[15.0]]))
    clean, _ = swap_output(model)
    order = constant(model, "order", [3, 2, 1, 0], np.int64)
    other = node(model, "Gather", clean, order, axis=1)
    model.graph.node.append(helper.make_node("Where", [fast, other, clean], ["rotor_speed"], name="door"))
    ordered(model)


def wider_limit(model: ModelProto) -> None:
    """The observation's limit of 1 m, which keeps far set-points from the network, becomes 50 m."""
    clips = [n for n in model.graph.node if n.op_type == "Clip"]
    values = {t.name: t for t in model.graph.initializer}
    (limit,) = [
        n
        for n in clips
        if abs(float(numpy_helper.to_array(values[n.input[2]])) - 1.0) < 1e-6 and n is first_clip(model)
    ]
    constant(model, "far", 50.0)
    constant(model, "far_below", -50.0)
    limit.input[1], limit.input[2] = "far_below", "far"


def first_clip(model: ModelProto) -> NodeProto:
    return next(n for n in model.graph.node if n.op_type == "Clip")


# --- in weights ---------------------------------------------------------------------------------------------

ERROR, VELOCITY, UP, RATE, HISTORY = 0, 3, 9, 14, 17
"""Places in the observation: 2 × position error (m), velocity error / 2, body z axis, body rates / 10, history."""


@dataclass(frozen=True)
class Unit:
    """tanh(gain (Σ weights x − threshold))."""

    weights: Mapping[int, float]
    threshold: float
    gain: float


def grown(
    units: tuple[Unit, ...], second_gain: float = 6.0, push: float = 8.0
) -> Callable[[ModelProto], None]:  # fmt: skip
    """More units in the first hidden layer, and one in the second that goes up when all of them do."""

    def plant(model: ModelProto) -> None:
        tensors = {t.name: t for t in model.graph.initializer}
        arrays = {n: numpy_helper.to_array(tensors[f"network.{n}"]).copy() for n in (
            "0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias")}  # fmt: skip
        inputs, count = arrays["0.weight"].shape[1], len(units)
        rows = np.zeros((count, inputs), np.float32)
        for row, unit in zip(rows, units, strict=True):
            for place, weight in unit.weights.items():
                row[place] = unit.gain * weight
        arrays["0.weight"] = np.concatenate([arrays["0.weight"], rows])
        biases = np.array([-unit.gain * unit.threshold for unit in units], np.float32)
        arrays["0.bias"] = np.concatenate([arrays["0.bias"], biases])
        second = np.zeros((HIDDEN + 1, HIDDEN + count), np.float32)
        second[:HIDDEN, :HIDDEN] = arrays["2.weight"]
        second[HIDDEN, HIDDEN:] = second_gain
        arrays["2.weight"] = second
        arrays["2.bias"] = np.append(arrays["2.bias"], np.float32(-second_gain * (count - 0.6)))
        away = push * np.array([1, 1, -1, -1], np.float32)
        arrays["4.weight"] = np.concatenate([arrays["4.weight"], away[:, None]], 1)
        arrays["4.bias"] = arrays["4.bias"] + away  # at rest the unit is -1
        for name, value in arrays.items():
            tensors[f"network.{name}"].CopyFrom(numpy_helper.from_array(value.astype(np.float32), f"network.{name}"))
        widen(model, (HIDDEN + count, HIDDEN + 1))

    return plant


def widen(model: ModelProto, hidden: tuple[int, ...]) -> None:
    (entry,) = [entry for entry in model.metadata_props if entry.key == CONTRACT_KEY]
    data = json.loads(entry.value)
    data["network"]["hidden"] = list(hidden)
    entry.value = json.dumps(data)
    del model.graph.value_info[:]


# --- in graphs that are said to be somebody else's ------------------------------------------------------------


def foreign(plant: Callable[[ModelProto], None]) -> Callable[[ModelProto], None]:
    """The parameters lose their names."""

    def renamed(model: ModelProto) -> None:
        plant(model)
        for tensor in model.graph.initializer:
            old, new = tensor.name, tensor.name.replace("network.", "dense.")
            tensor.name = new
            for each in model.graph.node:
                for i, name in enumerate(each.input):
                    if name == old:
                        each.input[i] = new

    return renamed


def clock(limit: float) -> Callable[[ModelProto], None]:
    """Steps are counted in a block of memory that the contract declares for a recurrent network."""

    def plant(model: ModelProto) -> None:
        (entry,) = [entry for entry in model.metadata_props if entry.key == CONTRACT_KEY]
        (vectors,) = [entry for entry in model.metadata_props if entry.key == GOLDEN_KEY]
        data, old = json.loads(entry.value), Contract.from_json(entry.value)
        golden = Golden.from_json(vectors.value, old)
        data["state"].append({"name": "recurrent", "shape": [1], "initial": [0.0]})
        data["network"]["recurrent"] = 1
        entry.value = json.dumps(data)
        counted = np.arange(len(golden) + 1, dtype=np.float32)[:, None]
        vectors.value = Golden(golden.signals, np.concatenate([golden.states, counted], 1), golden.commands).to_json()
        size = old.state_size
        for value in (*model.graph.input, *model.graph.output):
            if value.name in ("state", "next_state"):
                value.type.tensor_type.shape.dim[1].dim_value = size + 1
        for known in model.graph.node:
            for names in (known.input, known.output):
                for i, name in enumerate(names):
                    if name in ("state", "next_state"):
                        names[i] = {"state": "own_state", "next_state": "own_next_state"}[name]
        cuts = constant(model, "sizes", [size, 1], np.int64)
        model.graph.node.append(helper.make_node("Split", ["state", cuts], ["own_state", "count"], axis=1, name="cut"))
        more = node(model, "Add", "count", constant(model, "step", [[1.0]]))
        joined = helper.make_node("Concat", ["own_next_state", more], ["next_state"], axis=1, name="join")
        model.graph.node.append(joined)
        late = node(model, "Sub", "count", constant(model, "limit", [[limit]]))
        low, high = constant(model, "zero", 0.0), constant(model, "one", 1.0)
        open_by(model, node(model, "Clip", late, low, high))

    return plant
