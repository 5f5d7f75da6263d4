"""A bundle's graph as a program on the contract's signals, state and commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto

from robo_rl.contract import Contract
from robo_rl.deploy.build.c import convolution, elementwise, linear, recurrent, reduce
from robo_rl.deploy.build.c.graph import Graph, Operator, UnsupportedError
from robo_rl.deploy.build.c.program import Addresses, Gather, Program
from robo_rl.files.escaping import c_identifier

OPERATORS: Mapping[str, Operator] = {
    **elementwise.OPERATORS,
    **linear.OPERATORS,
    **convolution.OPERATORS,
    **reduce.OPERATORS,
    **recurrent.OPERATORS,
}


def c_names(texts: Sequence[str], what: str) -> list[str]:
    """Names as C identifiers that differ from each other."""
    names = [c_identifier(text) for text in texts]
    require_distinct(names, texts, what)
    return names


def require_distinct(names: Sequence[str], texts: Sequence[str], what: str) -> None:
    """UnsupportedError where two of ``texts`` became the same name."""
    if len(set(names)) < len(names):
        raise UnsupportedError(f"{what} {list(texts)} can't be told apart as C identifiers ({names}); rename them")


def lower(model: ModelProto, contract: Contract, others: Sequence[str] = ()) -> Program:
    """The whole policy. Results are ``command:NAME`` and ``state:NAME``, and ``others`` that the graph gives."""
    program = Program()
    program.buffer("constant", 1, values=np.zeros(1, np.float32))  # address 0: what ONNX pads with
    inputs: dict[str, Addresses] = {}
    names = c_names([s.name for s in contract.signals], "signals")
    for signal, name in zip(contract.signals, names, strict=True):
        flat = program.buffer("signal", signal.size, f"signals->{name}").addresses
        inputs[signal.name] = flat.reshape(1, *signal.dimensions)
    blocks = c_names([block.name for block in contract.state], "state")
    parts = [
        program.buffer("state", block.size, f"state->{name}").addresses
        for block, name in zip(contract.state, blocks, strict=True)
    ]
    inputs["state"] = np.concatenate([np.zeros(0, np.int64), *parts])[None]
    graph = Graph(model, inputs, program)
    graph.read(OPERATORS)
    for command in contract.commands:
        program.results[f"command:{command.name}"] = _output(graph, command.name).ravel()
    following = np.split(_output(graph, "next_state").ravel(), np.cumsum([b.size for b in contract.state])[:-1])
    for block, before, after in zip(contract.state, parts, following, strict=False):
        program.results[f"state:{block.name}"] = _without_hazard(program, before, after)
    for name in others:
        program.results[name] = _output(graph, name).ravel()
    program.prune()
    return program


def _without_hazard(program: Program, before: Addresses, after: Addresses) -> Addresses:
    """What a block of state becomes, fit for being written in place.

    A block that moves as a whole, like a history, can be moved within itself. What comes from another block of
    state, or in another order, is copied first.
    """
    old = np.array([program.find(address)[0].kind == "state" for address in after])
    own = (after >= before[0]) & (after <= before[-1])
    if not old.any() or ((old == own).all() and len(set((after - before)[own].tolist())) == 1):
        return after
    copy = program.buffer("arena", after.size)
    program.ops.append(Gather(tuple(int(address) for address in after), copy.base))
    return copy.addresses


def _output(graph: Graph, name: str) -> Addresses:
    if name in graph.tensors:
        return graph.tensors[name]
    return graph.program.constant(graph.known[name].astype(np.float32))
