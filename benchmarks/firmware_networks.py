"""The two networks that the published and measured figures of other generators are for, with random weights."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from robo_rl.contract import Actuator, Command, Contract, Network, Provenance, Robot, Safety, Signal
from robo_rl.deploy.build.pack import pack
from robo_rl.deploy.robot.bundle import Bundle

NETWORKS = {"A": ((146, 64, 64, 4), "Tanh"), "B": ((48, 128, 128, 128, 12), "Elu")}
ROBOT = Robot("network", "none", (Actuator("motor", "velocity", "rad/s", 0.0, 1.0, safe=0.0),))


def write_network(name: str, out: Path, steps: int = 8) -> Bundle:
    """A bundle that is nothing but the network: one signal in, one command out."""
    sizes, activation = NETWORKS[name]
    draw = np.random.default_rng(0)
    nodes, tensors, x = [], [], "signal"
    for i, (columns, rows) in enumerate(pairwise(sizes)):
        last = i == len(sizes) - 2
        weights = draw.uniform(-1, 1, (rows, columns)) / np.sqrt(columns)
        bias = draw.uniform(-1, 1, rows) / np.sqrt(columns)
        tensors += [numpy_helper.from_array(a.astype(np.float32), f"{n}{i}") for n, a in (("w", weights), ("b", bias))]
        y = "command" if last else f"y{i}"
        nodes.append(helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], [y], f"layer{i}", transB=1))
        x = y if last else f"x{i}"
        if not last:
            nodes.append(helper.make_node(activation, [y], [x], f"activation{i}"))
    nodes.append(helper.make_node("Identity", ["state"], ["next_state"]))
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", k]) for n, k in pairs]
        for pairs in ([("signal", sizes[0]), ("state", 0)], [("command", sizes[-1]), ("next_state", 0)])
    ]
    graph = helper.make_graph(nodes, name, *ends, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    elements = [tuple(f"{e}{i}" for i in range(n)) for e, n in (("x", sizes[0]), ("y", sizes[-1]))]
    contract = Contract(
        "benchmark", 0.01,
        (Signal("signal", elements[0], "1", "none", (-10.0,) * sizes[0], (10.0,) * sizes[0]),),
        (Command("command", elements[1], "1", "none", (-1.0,) * sizes[-1], (1.0,) * sizes[-1], (0.0,) * sizes[-1]),),
        (), Safety(0.1), ROBOT, Network(sizes[1:-1], activation.lower(), False), Provenance("none", 0, 0, "0" * 64),
    )  # fmt: skip
    return pack(model, contract, {"signal": draw.normal(size=(steps, sizes[0]))}, out)
