"""Whether a graph computes each row of a batch alone, as it does on the robot, where it is asked with one row.

Flights and searches ask a graph with thousands of rows at once. What is found there holds for the robot only if row k
of the answer is what row k alone would give. ``batching`` goes through the graph's nodes and keeps for every value
where its rows are: along one axis, as blocks one after the other; or nowhere, since it is made of constants; or in
numbers that are the batch's size. Each operator either keeps the rows apart, or mixes them, or it is not known here.
Where the rows are is checked against what onnxruntime gives for batches of several sizes.

A graph whose result depends on the other rows, on their number or on a row's place is refused (``Batching.fault``).
Where that can't be decided, the graph is run with one row at a time (``Apart``): what is examined is what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from robo_rl.deploy.build.row_rules import FIXED, RULES, Along, Call, MixesError, Seen, Sized, UnknownError, Value
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest

TOLERANCE = 1e-3
"""Of a command's range, and of memory as a part of its size: a row in a batch against the same row alone, which are
computed in another order."""


@dataclass(frozen=True)
class Batching:
    """What is known of a graph. Where both texts are empty, every row is computed alone."""

    fault: str = ""
    """Why it must not be used; "" if nothing is wrong."""
    unknown: str = ""
    """Name of the node whose rows are not known to be independent; "" if all are known."""


def batching(bundle: Bundle) -> Batching:
    """Go through the graph of a bundle. It was tried out before, when the bundle was read."""
    try:
        return analyze(onnx.load_from_string(bundle.data()), _inputs(bundle))
    except Exception as error:  # onnxruntime's errors share no type below Exception
        return Batching(unknown=f"it can't be analyzed ({str(error)[:200]})")


def analyze(model: ModelProto, inputs: Callable[[int], dict[str, np.ndarray]]) -> Batching:
    """``inputs`` gives the graph's inputs for so many rows."""
    graph = model.graph
    seen = Seen.of(model, inputs)
    values: dict[str, Value] = {value.name: Along(0, 1) for value in graph.input}
    values |= dict.fromkeys((tensor.name for tensor in graph.initializer), FIXED)
    for node in graph.node:
        name = f"{node.op_type} '{node.name or (node.output[0] if node.output else '')}'"
        try:
            values |= _through(node, values, seen)
        except MixesError as error:
            return Batching(fault=f"{name} {error}; each row of a batch must be computed alone, as on the robot")
        except (UnknownError, KeyError, IndexError) as error:
            return Batching(unknown=f"{name} ({error})")
    for output in graph.output:
        if values.get(output.name) != Along(0, 1):
            return Batching(unknown=f"output '{output.name}'")
    return Batching()


def _inputs(bundle: Bundle) -> Callable[[int], dict[str, np.ndarray]]:
    golden = bundle.golden

    def rows(n: int) -> dict[str, np.ndarray]:
        at = np.arange(n) % len(golden)
        return {**{name: value[at] for name, value in golden.signals.items()}, "state": golden.states[at]}

    return rows


class Apart:
    """A bundle's graph, asked with batches whose rows are as if each had been asked alone.

    Where the graph's rows are not known to be independent, each row is run alone. Otherwise ``ROWS`` rows of every
    ``EVERY`` batches are run again alone, and compared.
    """

    EVERY, ROWS = 16, 4

    def __init__(self, bundle: Bundle, found: Batching) -> None:
        self.bundle, self.found, self.calls, self.worst = bundle, found, 0, 0.0

    def run(self, signals: dict[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """As ``Bundle.run``."""
        count = len(state)
        if (self.found.fault or self.found.unknown) and count > 1:
            return self._alone(signals, state, np.arange(count))
        commands, following = self.bundle.run(signals, state)
        if self.calls % self.EVERY == 0 and count > 1:
            step = max(1, count // self.ROWS)
            self._compare(signals, state, (np.arange(0, count, step) + self.calls) % count, commands, following)
        self.calls += 1
        return commands, following

    def compare(self, signals: dict[str, np.ndarray], state: np.ndarray) -> None:
        """Ask all rows together and one by one."""
        self._compare(signals, state, np.arange(len(state)), *self.bundle.run(signals, state))

    @property
    def told(self) -> str:
        """A sentence if rows in a batch were not what they are alone, else ""."""
        if self.worst <= TOLERANCE:
            return ""
        return (
            f"a row in a batch differs from the same row alone, as the robot asks, by {self.worst:.2g} of a command's "
            f"range; expected at most {TOLERANCE:g}"
        )

    def _compare(
        self, signals: dict[str, np.ndarray], state: np.ndarray, rows: np.ndarray,
        commands: dict[str, np.ndarray], following: np.ndarray,
    ) -> None:  # fmt: skip
        alone, memory = self._alone(signals, state, rows)
        apart = command_differences(self.bundle.contract, {n: v[rows] for n, v in commands.items()}, alone)
        apart.append((following[rows] - memory) / (1 + np.abs(memory)))
        neither = [~np.isfinite(commands[name][rows]) & ~np.isfinite(alone[name]) for name in alone]
        neither.append(~np.isfinite(following[rows]) & ~np.isfinite(memory))
        differences = [np.where(same, 0.0, one) for same, one in zip(neither, apart, strict=True)]
        self.worst = max(self.worst, greatest(differences))

    def _alone(
        self, signals: dict[str, np.ndarray], state: np.ndarray, rows: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        answers = [self.bundle.run({n: v[k : k + 1] for n, v in signals.items()}, state[k : k + 1]) for k in rows]
        names = [command.name for command in self.bundle.contract.commands]
        commands = {name: np.concatenate([one[name] for one, _ in answers]) for name in names}
        return commands, np.concatenate([memory for _, memory in answers])


def _through(node: NodeProto, values: dict[str, Value], seen: Seen) -> dict[str, Value]:
    """Where the rows of a node's results are."""
    operands = [values[name] if name else FIXED for name in node.input]
    results = [name for name in node.output if name]
    if node.op_type in ("Shape", "Size") and operands[0] is not FIXED:
        return {name: _size(name, True, seen) for name in results}
    if any(isinstance(value, Sized) for value in operands):
        return _by_size(node, operands, seen)
    if all(value is FIXED for value in operands):
        return dict.fromkeys(results, FIXED)
    call = Call(node, operands, seen)
    rule = RULES.get(node.op_type)
    if rule is None:
        raise UnknownError("no rule for this operator")
    rule(call)
    return {name: seen.placed(name) for name in results}


def _size(name: str, plain: bool, seen: Seen) -> Value:
    """Numbers of shapes that are the same in every batch are constants."""
    return FIXED if plain and seen.same(name) and seen.numbers[name][0].size else Sized(plain)


LINEAR = {"Gather", "Slice", "Squeeze", "Unsqueeze", "Concat", "Cast", "Identity", "Reshape", "Mul", "Split"}
"""Operators that keep constants, and constants times the batch's size, what they are."""
SHAPES = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Tile": 1}
"""Operands that are a result's shape, or how often it comes."""


def _by_size(node: NodeProto, operands: list[Value], seen: Seen) -> dict[str, Value]:
    """A node that the batch's size goes into."""
    results = [name for name in node.output if name]
    place = SHAPES.get(node.op_type)
    given = operands[place] if place is not None and place < len(operands) else None
    others = [value for k, value in enumerate(operands) if k != place]
    if isinstance(given, Sized) and not any(isinstance(value, Sized) for value in others):
        if not given.plain:
            raise UnknownError("a shape that is computed from the batch's size")
        if node.op_type == "ConstantOfShape" or (node.op_type == "Tile" and others[0] is FIXED):
            return {name: seen.placed(name) for name in results}
        if node.op_type == "Expand" and others[0] is FIXED:
            for name in results:
                shape = seen.shapes[node.input[0]][0]
                at = seen.placed(name).axis - (seen.rank(name) - len(shape))
                if at >= 0 and shape[at] != 1:
                    raise UnknownError("a constant with rows")
            return {name: seen.placed(name) for name in results}
        if node.op_type in ("Reshape", "Expand") and isinstance(others[0], Along):
            RULES[node.op_type](Call(node, [others[0], FIXED], seen))
            return {name: seen.placed(name) for name in results}
        raise UnknownError("a shape that is computed from the batch's size")
    if any(isinstance(value, Along) for value in operands) or node.op_type in ("Range", "OneHot", "EyeLike", "Trilu"):
        raise MixesError("takes the batch's size for a number")
    sized = [k for k, value in enumerate(operands) if isinstance(value, Sized)]
    plain = (
        node.op_type in LINEAR
        and seen.numbers[results[0]][0].dtype in (np.int32, np.int64)
        and all(value is FIXED or value == Sized(True) for value in operands)
        and (node.op_type == "Concat" or (len(sized) == 1 and (sized == [0] or node.op_type == "Mul")))
    )
    return {name: _size(name, plain, seen) for name in results}
