"""Of every kind of robot and every kind of network: each row of a batch is computed alone, and a graph that does not is
found. The kinds and the networks are listed by the product itself, so that a new one comes in here by itself."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from planting import constant, node, ordered

from robo_rl.contract import Chunk, Contract, Flow, Network, Provenance
from robo_rl.contract.kinds import kinds_in, of_kind
from robo_rl.deploy.build.export import exported_graph
from robo_rl.deploy.build.rows import Batching, analyze
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.learn.factory import graph_of
from robo_rl.policy import PolicyGraph
from robo_rl.sim.robots import card_types, load_robot, robot_names
from robo_rl.sim.tasks.beginning import PACKAGE, beginning
from robo_rl.sim.tasks.loading import load_task
from robo_rl.zoo import located, names

SMALL = Network((8,), "tanh", False)
KINDS = tuple(kind for kind in kinds_in(PACKAGE) if hasattr(of_kind(PACKAGE, kind), "beginning"))
NETWORKS = {
    "chunk": Network((8,), "tanh", False, chunk=Chunk(3)), "recurrent": Network((8,), "tanh", False, 4),
    "flow": Network((8,), "tanh", False, flow=Flow(2, 3)), "normalize": Network((8,), "tanh", True),
    "team": SMALL,
}  # fmt: skip
"""By what makes the network special; "team": what it sees of its neighbours."""
TASKS = {"team": "swarm-swap"}


@functools.cache
def robot_of(kind: str) -> str:
    """The first of our robots of a kind."""
    return next(name for name in robot_names() if load_robot(name).kind == kind)


@functools.cache
def policy_of(what: str) -> tuple[PolicyGraph, Contract]:
    if what in KINDS:
        robot = robot_of(what)
        task, network = load_task(beginning(load_robot(robot)).task.name, robot), SMALL
    else:
        task, network = load_task(TASKS.get(what, "quadrotor-hover")), NETWORKS[what]
    policy = graph_of(task, network).eval()
    return policy, policy.contract(Provenance("none", 0, 0, "0" * 64))


@functools.cache
def exported(what: str) -> bytes:
    policy, contract = policy_of(what)
    return exported_graph(policy.requires_grad_(False), contract).SerializeToString()


def model_of(what: str) -> tuple[ModelProto, Contract]:
    """A graph of our zoo, or an untrained one of a kind or network."""
    if what in names():
        bundle = Bundle.read(located(f"zoo:{what}"))
        return onnx.load_from_string(bundle.data()), bundle.contract
    return onnx.load_from_string(exported(what)), policy_of(what)[1]


def inputs_of(contract: Contract) -> Callable[[int], dict[str, np.ndarray]]:
    def rows(n: int) -> dict[str, np.ndarray]:
        draw = np.random.default_rng(0)
        found = {s.name: draw.uniform(-1, 1, (n, *s.dimensions)).astype(np.float32) for s in contract.signals}
        return {**found, "state": np.tile(contract.initial_state, (n, 1)).astype(np.float32)}

    return rows


def test_every_kind_of_robot_and_every_part_of_a_network_is_here() -> None:
    assert card_types().keys() <= {*KINDS}
    special = {field.name for field in dataclasses.fields(Network)} - {"hidden", "activation", "encoders", "base"}
    assert special <= NETWORKS.keys(), "say here what a policy with this part is"
    assert typing.get_type_hints(Network)["base"]  # a residual policy's is a network as the others: test_residual.py


MADE = [pytest.param(what, marks=pytest.mark.release) for what in (*KINDS, *NETWORKS)]
"""Exported here, which takes some seconds each."""


@pytest.mark.parametrize("what", MADE)
def test_each_row_is_computed_alone(what: str) -> None:
    model, contract = model_of(what)
    assert analyze(model, inputs_of(contract)) == Batching()


# --- the same graphs with a back door ---------------------------------------------------------------------------


def rows_of(model: ModelProto) -> str:
    """(n, 1) an element of the first signal."""
    flat = node(model, "Flatten", model.graph.input[0].name, axis=1)
    return node(model, "Gather", flat, constant(model, "planted_first", [0], np.int64), axis=1)


def add(model: ModelProto, amount: str) -> None:
    """Add an amount (n, 1), or for all rows, to the first command."""
    output = model.graph.output[0].name
    for known in model.graph.node:
        for given in (known.input, known.output):
            for i, name in enumerate(given):
                given[i] = "planted_clean" if name == output else name
    model.graph.node.append(helper.make_node("Add", ["planted_clean", amount], [output], name="planted_door"))
    ordered(model)


def by_count(model: ModelProto) -> None:
    count = node(model, "Gather", node(model, "Shape", model.graph.input[0].name), constant(model, "at", [0], np.int64))
    alone = node(model, "Equal", count, constant(model, "one", [1], np.int64))
    add(model, node(model, "Cast", alone, to=TensorProto.FLOAT))


def by_mean(model: ModelProto) -> None:
    add(model, node(model, "ReduceMean", rows_of(model), constant(model, "axes", [0], np.int64), keepdims=1))


def by_neighbour(model: ModelProto) -> None:
    """What the next robot of the batch sees."""
    seen, zero, one = rows_of(model), constant(model, "zero", [0], np.int64), constant(model, "one", [1], np.int64)
    rest = node(model, "Slice", seen, one, constant(model, "end", [1 << 60], np.int64), zero)
    add(model, node(model, "Concat", rest, node(model, "Slice", seen, zero, one, zero), axis=0))


def by_memory(model: ModelProto) -> None:
    """The greatest of all robots' memories."""
    if not any(value.name == "state" and value.type.tensor_type.shape.dim[1].dim_value for value in model.graph.input):
        return by_mean(model)  # there is none
    greatest = node(model, "ReduceMax", "state", constant(model, "axes", [0, 1], np.int64), keepdims=1)
    return add(model, greatest)


DOORS = (by_count, by_mean, by_neighbour, by_memory)


@pytest.mark.parametrize("what", [*MADE, *names()])
def test_a_back_door_is_found_in_every_one(what: str) -> None:
    """Of our zoo one after the other of them, of the others all."""
    for door in DOORS if what not in names() else [DOORS[names().index(what) % len(DOORS)]]:
        model, contract = model_of(what)
        door(model)
        assert "each row of a batch must be computed alone" in analyze(model, inputs_of(contract)).fault, door.__name__
