"""What a graph computes, apart from the names in it: to compare a file with what the exporter would write.

Every value has a digest: of an input its name, of a constant its type, shape and bytes, of a parameter its name, type
and shape, of a node's output the operator, its attributes and the digests of what goes in. Two graphs whose outputs
have equal digests compute the same of the same parameters, whatever their values are called and in whatever order the
nodes stand. Names and order are all that torch's exporter changes from one export to the next. Where a sum or product
takes a constant, neither the order of the two counts nor whether equal numbers are written once or as a row.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

COMMUTATIVE = {"Add", "Mul", "Max", "Min"}
ELEMENTWISE = COMMUTATIVE | {"Sub", "Div"}
SHOWN = 4
"""Differences that are named one by one."""


@dataclass(frozen=True)
class Structure:
    """A graph by its digests."""

    outputs: dict[str, str]
    nodes: dict[str, tuple[str, tuple[str, ...]]]
    """By digest: what it is, for people, and the digests of what goes into it."""
    counts: Counter[str]
    """How often each node is there, by digest."""
    operators: frozenset[str]
    oddities: tuple[str, ...]
    """What no exported policy has, one phrase each: functions, sparse tensors, external data, names given twice."""

    @property
    def digest(self) -> str:
        """SHA-256 of all nodes and outputs; it does not depend on the parameters' values."""
        parts = [*sorted(self.outputs.items()), *sorted(self.counts.items()), *self.oddities]
        return _hash(*(str(part) for part in parts))


def structure_of(model: ModelProto, parameters: frozenset[str] = frozenset()) -> Structure:
    """The structure of a graph, in which the initializers named ``parameters`` count by their shapes alone."""
    graph = model.graph
    values = {"": "nothing"}
    oddities = _oddities(model)
    for value in graph.input:
        values[value.name] = _hash("input", value.name, value.type.SerializeToString(deterministic=True))
    for tensor in graph.initializer:
        values[tensor.name] = _tensor(tensor, tensor.name in parameters)
    uniform = {t.name: digest for t in graph.initializer if t.name not in parameters and (digest := _uniform(t))}
    nodes: dict[str, tuple[str, tuple[str, ...]]] = {}
    counts: Counter[str] = Counter()
    for node in graph.node:
        above = tuple(
            uniform.get(name, values.get(name, f"unknown {name}"))
            if node.op_type in ELEMENTWISE and not node.domain
            else values.get(name, f"unknown {name}")
            for name in node.input
        )
        if node.op_type in COMMUTATIVE and not node.domain:
            above = tuple(sorted(above))
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].name == "value":
            values[node.output[0]] = _tensor(node.attribute[0].t, False)
            continue
        digest = _hash(node.domain, node.op_type, *_attributes(node), "of", *above)
        nodes[digest] = (f"{node.op_type} '{node.name or node.output[0]}'", above)
        counts[digest] += 1
        for k, name in enumerate(node.output):
            values[name] = _hash(digest, str(k))
    made = {_hash(digest, str(k)): digest for digest in nodes for k in range(64)}
    nodes = {d: (label, tuple(made.get(value, value) for value in above)) for d, (label, above) in nodes.items()}
    outputs = {
        out.name: _hash(values.get(out.name, "unknown"), out.type.SerializeToString(deterministic=True))
        for out in graph.output
    }
    return Structure(outputs, nodes, counts, operators_of(model), tuple(oddities))


def operators_of(model: ModelProto) -> frozenset[str]:
    """The operators of a graph, with their domain where it is not ONNX's own."""
    return frozenset(f"{node.domain}.{node.op_type}".removeprefix("ai.onnx").lstrip(".") for node in model.graph.node)


def weights_digest(model: ModelProto, parameters: frozenset[str]) -> str:
    """SHA-256 over the parameters' names, types, shapes and values."""
    chosen = sorted((t for t in model.graph.initializer if t.name in parameters), key=lambda tensor: tensor.name)
    return _hash(*(part for tensor in chosen for part in (tensor.name, _tensor(tensor, False))))


def differences(found: Structure, expected: Structure) -> list[str]:
    """Phrases on what one graph has otherwise than another; empty if both compute the same in the same way."""
    if found.digest == expected.digest:
        return []
    told = list(found.oddities)
    strange, missing = (_first(one, other) for one, other in ((found, expected), (expected, found)))
    if strange:
        told.append(f"it has {_listed(strange)}, which the exporter would not write")
    if missing:
        told.append(f"it lacks {_listed(missing)}")
    changed = [name for name, value in expected.outputs.items() if found.outputs.get(name) != value]
    if changed:
        told.append(f"other values are given out as {', '.join(changed)}")
    again = sum((found.counts - expected.counts).values())
    if not told:
        told.append(f"{again} of its nodes stand there more often")
    return told


def _first(one: Structure, other: Structure) -> list[str]:
    """Nodes of one graph that the other has not, but whose inputs both have: where the difference begins."""
    new = [digest for digest in one.nodes if digest not in other.nodes]
    return [one.nodes[digest][0] for digest in new if not any(above in new for above in one.nodes[digest][1])]


def _listed(labels: list[str]) -> str:
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(labels[:SHOWN]) + more


def _oddities(model: ModelProto) -> list[str]:
    graph = model.graph
    found = [f"it has {len(what)} {name}" for name, what in (
        ("functions of its own", model.functions), ("sparse tensors", graph.sparse_initializer),
        ("training graphs", model.training_info), ("notes on quantization", graph.quantization_annotation),
    ) if what]  # fmt: skip
    given = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    given += [name for node in graph.node for name in node.output if name]
    found += [f"'{name}' is given {count} times" for name, count in Counter(given).items() if count > 1]
    external = [t.name for t in graph.initializer if t.data_location == TensorProto.EXTERNAL]
    found += [f"'{name}' lies in another file" for name in external]
    versions = sorted(f"{item.domain or 'ai.onnx'} {item.version}" for item in model.opset_import)
    found += [f"it uses {version}" for version in versions[1:]]
    return found


def _tensor(tensor: TensorProto, parameter: bool) -> str:
    if parameter:
        return _hash("parameter", tensor.name, str(tensor.data_type), str(list(tensor.dims)))
    if tensor.data_location == TensorProto.EXTERNAL:
        return _hash("external", tensor.name)
    data = (
        numpy_helper.to_array(tensor).tobytes()
        if tensor.data_type != TensorProto.STRING
        else b"".join(tensor.string_data)
    )
    return _hash("constant", str(tensor.data_type), str(list(tensor.dims)), data)


def _uniform(tensor: TensorProto) -> str | None:
    """The digest of a constant that is one number, however often; None for others."""
    if tensor.data_type != TensorProto.FLOAT or tensor.data_location == TensorProto.EXTERNAL:
        return None
    data = numpy_helper.to_array(tensor)
    first = data.flat[0].tobytes() if data.size else b""
    return _hash("number", first) if first and data.tobytes() == first * data.size else None


def _attributes(node: NodeProto) -> list[bytes]:
    return [item.SerializeToString(deterministic=True) for item in sorted(node.attribute, key=lambda item: item.name)]


def _hash(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()
