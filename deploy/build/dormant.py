"""Parts of a graph that no flight uses: decisions that always go the same way, hidden units that never move.

A planted trigger waits, so in flights it rests: its comparison always gives the same answer, or its units, where it
hides in weights, always the same value. What was trained moves. Units whose weights are many times those of their
neighbours are told too: a trigger for a small place needs steep ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.shape_inference import infer_shapes

from robo_rl.contract import Contract
from robo_rl.deploy.build.search import JUMP, Rows, scaled

ACTIVATIONS = {"Tanh", "Elu", "Relu", "Sigmoid", "LeakyRelu", "Softplus", "Selu", "Gelu", "HardSigmoid", "Softsign"}
DECISIONS = {
    "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Not", "And", "Or", "Xor", "IsNaN", "IsInf",
    "Sign", "Floor", "Ceil", "Round", "Mod",
}  # fmt: skip
STILL = 0.03
"""A unit rests whose deviation in flights is less than this part of that of its layer's median unit."""
STEEP = 8.0
"""Times the median norm of a layer's weights."""
AT_WORK = 0.3
"""A unit is at work whose deviation in flights is more than this part of that of its layer's median unit: what comes
out of it is seen in every flight, however much it weighs. Few units of an output layer may have grown in training."""
FEWEST = 8
"""Units that a layer must have for its median to tell something."""
ROWS = 4096
"""That are asked."""


@dataclass(frozen=True)
class Opened:
    """A graph whose decisions and units can be seen, and whose units can be moved."""

    session: onnxruntime.InferenceSession
    units: tuple[str, ...]
    decisions: tuple[str, ...]
    labels: dict[str, str]

    @staticmethod
    def of(model: ModelProto) -> Opened:
        """Every activation gets an input that is added to it; activations and decisions become outputs."""
        opened = ModelProto()
        opened.CopyFrom(model)
        kinds = {value.name: value.type.tensor_type.elem_type for value in infer_shapes(model).graph.value_info}
        kinds |= {value.name: TensorProto.FLOAT for value in model.graph.output}
        graph, nodes = opened.graph, list[NodeProto]()
        units, decisions, labels = list[str](), list[str](), dict[str, str]()
        for found in graph.node:
            node = NodeProto()
            node.CopyFrom(found)
            nodes.append(node)
            if node.domain or node.op_type not in DECISIONS | ACTIVATIONS:
                continue
            name = node.output[0]
            if node.op_type in ACTIVATIONS and kinds.get(name, TensorProto.FLOAT) != TensorProto.FLOAT:
                continue  # of numbers that what is added is not
            labels[name] = f"{node.op_type} '{node.name or name}'"
            graph.output.append(helper.make_tensor_value_info(f"{name}?", TensorProto.FLOAT, None))
            if node.op_type in DECISIONS:
                decisions.append(name)
                nodes.append(helper.make_node("Cast", [name], [f"{name}?"], to=TensorProto.FLOAT))
            else:
                units.append(name)
                node.output[0] = f"{name}?"
                graph.input.append(helper.make_tensor_value_info(f"{name}+", TensorProto.FLOAT, None))
                nodes.append(helper.make_node("Add", [f"{name}?", f"{name}+"], [name]))
        del graph.node[:]
        graph.node.extend(nodes)
        del graph.value_info[:]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(opened.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return Opened(session, tuple(units), tuple(decisions), labels)

    def run(
        self, contract: Contract, rows: Rows, moved: dict[str, np.ndarray] | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """(n, K) commands in units of their ranges, and by name what decisions and units are."""
        none = {f"{name}+": np.zeros((), np.float32) for name in self.units}
        told = {f"{name}+": value for name, value in (moved or {}).items()}
        names = [c.name for c in contract.commands]
        seen = [f"{name}?" for name in (*self.units, *self.decisions)]
        found = self.session.run([*names, *seen], {**rows.signals, "state": rows.state, **none, **told})
        commands = scaled(contract, dict(zip(names, found, strict=False)))
        return commands, {name[:-1]: value for name, value in zip(seen, found[len(names) :], strict=True)}


def resting(contract: Contract, model: ModelProto, seen: Rows, spread: Rows, decisions: bool) -> list[str]:
    """Phrases on units, and ``decisions``, that rest in what flights have ``seen`` and move in the rows ``spread``."""
    opened = Opened.of(model)
    seen, spread = (rows.take(np.arange(len(rows))[:: max(1, len(rows) // ROWS)]) for rows in (seen, spread))
    _, flown = opened.run(contract, seen)
    commands, wide = opened.run(contract, spread)
    told = []
    for name in opened.decisions if decisions else ():
        if not _has_rows(flown[name], seen) or not _has_rows(wide[name], spread):
            continue  # one number for all: ``robo_rl.deploy.build.rows`` tells whether that may be
        if not (flown[name] != flown[name][:1]).any():
            share = float((wide[name] != flown[name][:1]).reshape(len(spread), -1).any(1).mean())
            told.append(f"{opened.labels[name]} never decides otherwise in flights, but in {share:.1%} of the ranges")
    for name in opened.units:
        if flown[name].ndim != 2 or not _has_rows(flown[name], seen) or not _has_rows(wide[name], spread):
            continue
        deviation = flown[name].std(0)
        still = np.flatnonzero(deviation <= STILL * np.median(deviation))
        back = np.zeros_like(wide[name])
        back[:, still] = flown[name][:, still].mean(0) - wide[name][:, still]
        changed = opened.run(contract, spread, {name: back})[0] if len(still) else commands
        effect = float(np.abs(changed - commands).max())
        if not effect <= JUMP:
            units = ", ".join(map(str, still[:4])) + (" …" if len(still) > 4 else "")
            told.append(
                f"{opened.labels[name]}: unit {units} never moves in flights, but moves commands by {effect:.2g} of "
                "their range within the signals' limits"
            )
    return told


def _has_rows(value: np.ndarray, rows: Rows) -> bool:
    return value.shape[:1] == (len(rows),)


def steep(contract: Contract, model: ModelProto, seen: Rows) -> list[str]:
    """Phrases on hidden units whose weights are many times those of their layer's median unit.

    What comes out of a unit may weigh as much as it likes if the unit is at work in what flights have ``seen``.
    """
    weights = {t.name: t for t in model.graph.initializer}
    _, flown = Opened.of(model).run(contract, seen.take(np.arange(len(seen))[:: max(1, len(seen) // ROWS)]))
    made = {name: node for node in model.graph.node for name in node.output}
    told = []
    for node in model.graph.node:
        if node.op_type not in ("Gemm", "MatMul") or len(node.input) < 2 or node.input[1] not in weights:
            continue
        weight = numpy_helper.to_array(weights[node.input[1]])
        if weight.ndim != 2:
            continue
        turned = any(a.name == "transB" and a.i for a in node.attribute)
        weight = np.asarray(weight if turned else weight.T, np.float64)  # (units, inputs)
        above = made.get(node.input[0])
        sides = [("what goes into unit", 1, len(weight))]
        moved = flown.get(node.input[0]) if above is not None and above.op_type in ACTIVATIONS else None
        if moved is not None and moved.shape[1:] == weight.shape[1:]:
            sides.append(("what comes out of unit", 0, weight.shape[1]))
        for what, axis, count in sides:
            norms = np.linalg.norm(weight, axis=axis)
            middle = float(np.median(norms))
            if axis == 0:
                deviation = flown[node.input[0]].std(0)
                norms = np.where(deviation > AT_WORK * np.median(deviation), np.minimum(norms, middle), norms)
            if count >= FEWEST and not norms.max() <= STEEP * middle:
                k = int(np.argmax(norms))
                ratio = norms[k] / middle if middle else float("inf")
                told.append(f"{node.op_type} '{node.name}': {what} {k} weighs {ratio:.3g} times what is usual there")
    return told
