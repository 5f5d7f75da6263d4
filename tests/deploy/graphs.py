"""Bundles of small hand-written graphs, for tests of everything that reads a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from robo_rl.contract import Actuator, Command, Contract, Network, Provenance, Robot, Safety, Signal, StateBlock
from robo_rl.deploy.build.pack import pack
from robo_rl.deploy.robot.bundle import Bundle

MOTORS = ("a", "b", "c")


def make_contract(
    signals: Sequence[Signal], commands: Sequence[Command], state: Sequence[StateBlock] = (), **fields: Any
) -> Contract:
    """The contract of a toy with three motors. ``fields``: others than the usual."""
    motors = tuple(Actuator(name, "position", "rad", -1.0, 1.0, "hold") for name in MOTORS)
    usual: dict[str, Any] = {
        "task": "test",
        "control_period": 0.01,
        "safety": Safety(0.05),
        "robot": Robot("toy", "toy", motors),
        "network": Network((), "tanh", False),
        "provenance": Provenance("none", 0, 0, "0" * 64),
    }
    return Contract(signals=tuple(signals), commands=tuple(commands), state=tuple(state), **{**usual, **fields})


def position(name: str = "joint_position", **fields: Any) -> Signal:
    """The measured positions of the motors."""
    return Signal(name, MOTORS, "rad", "joint", (-2.0,) * 3, (2.0,) * 3, **fields)


def target(name: str = "joint_target", **fields: Any) -> Command:
    """Positions for the motors, from -1 to 1, off at 0."""
    usual: dict[str, Any] = {"safe": (0.0,) * 3}
    return Command(name, MOTORS, "rad", "joint", (-1.0,) * 3, (1.0,) * 3, **{**usual, **fields})


def make_model(
    contract: Contract, nodes: Sequence[NodeProto], constants: Mapping[str, np.ndarray] | None = None
) -> ModelProto:
    """The nodes, between the contract's signals and commands. A state that no node writes stays as it is."""

    def ends(channels: Sequence[Any], state: str) -> list[Any]:
        shapes = {c.name: c.dimensions for c in channels} | {state: (contract.state_size,)}
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", *s]) for n, s in shapes.items()]

    given = list(nodes)
    if not any("next_state" in node.output for node in given):
        given.append(helper.make_node("Identity", ["state"], ["next_state"]))
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(
        given, "test", ends(contract.signals, "state"), ends(contract.commands, "next_state"), tensors
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def make_bundle(
    folder: Path,
    contract: Contract,
    nodes: Sequence[NodeProto],
    signals: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray] | None = None,
) -> Bundle:
    """A bundle whose golden vectors come from ``signals``, (steps, *shape) by name."""
    return pack(make_model(contract, nodes, constants), contract, signals, folder / "test.onnx")
