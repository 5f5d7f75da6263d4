"""A program as the body of a C function, and its constants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_rl.deploy.build.c.expressions import EXPRESSIONS
from robo_rl.deploy.build.c.plan import Plan
from robo_rl.deploy.build.c.program import (
    BLOCK,
    Addresses,
    Convolution,
    Dots,
    Gather,
    IntegerLinear,
    Learned,
    Linear,
    Map,
    Op,
    Program,
    Quantize,
    Rows,
    Scalar,
    padded,
)

LINE = 100  # characters of numbers per line
SHORTEST_RUN = 4  # floats that are copied by a loop


@dataclass
class Source:
    """C text in the making."""

    program: Program
    plan: Plan
    left: int = 0
    """The address of the counter of a chunk's actions that are left."""
    inference: range = range(0)
    """Operations that are left out while there are some (``chunks``)."""
    statements: list[str] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)
    """Definitions by name."""
    constant_bytes: int = 0
    tables: dict[bytes, str] = field(default_factory=dict)

    def place(self, address: int) -> tuple[str, int]:
        """The array that an address lies in, and where in it."""
        buffer, offset = self.program.find(address)
        if buffer.kind in ("arena", "integer"):
            member = "floats" if buffer.kind == "arena" else "integers"
            return f"arena->{member}", self.plan.offsets[buffer.base] + offset
        if buffer.values is not None:
            self._define_constant(buffer.name, buffer.values)
        return buffer.name, offset

    def value(self, address: int) -> str:
        """The float at an address, as an expression."""
        buffer, offset = self.program.find(address)
        if buffer.values is not None:
            return literal(buffer.values[offset])
        return buffer.name if buffer.kind == "scalar" else "{}[{}]".format(*self.place(address))

    def pointer(self, address: int) -> str:
        """A pointer to the float at an address."""
        name, offset = self.place(address)
        return f"&{name}" if self.program.find(address)[0].kind == "scalar" else f"&{name}[{offset}]"

    def _define_constant(self, name: str, values: NDArray[np.float32]) -> None:
        if name not in self.constants:
            self.constants[name] = array("float", name, [literal(v) for v in values])
            self.constant_bytes += values.nbytes

    def add_all(self) -> None:
        """Append all operations of the program."""
        ops, first, last = self.program.ops, self.inference.start, self.inference.stop
        for op in ops[:first]:
            self.add(op)
        begin = len(self.statements)
        for op in ops[first:last]:
            self.add(op)
        if self.inference:
            block = "\n".join(self.statements[begin:]).replace("\n", "\n    ")
            self.statements[begin:] = [f"if ({self.value(self.left)} < 0.5f) {{\n    {block}\n}}"]
        for op in ops[last:]:
            self.add(op)

    def add(self, op: Op) -> None:
        """Append an operation."""
        match op:
            case Scalar():
                right = EXPRESSIONS[op.name].format(*map(self.value, op.inputs))
                self.statements.append(f"const float {self.value(op.output)} = {right};")
            case Map():
                self._map(op)
            case Gather():
                self.copy(np.array(op.inputs), *self.place(op.output))
            case Linear():
                self._linear(op)
            case Convolution():
                self._convolution(op)
            case Quantize():
                ends = [f"{op.count}u", literal(np.float32(op.factor)), str(op.limit)]
                self._call("quantized", self.pointer(op.input), self.pointer(op.output), *ends)
                name, start = self.place(op.output)
                self.statements += [f"{name}[{start + i}] = 0;" for i in range(op.count, padded(op.count))]
            case IntegerLinear():
                self._integer_linear(op)
            case Rows():
                shared = [self.pointer(a) for a in op.shared]
                numbers = [literal(np.float32(x)) for x in op.numbers]
                ends = [self.pointer(op.output), f"{op.rows}u", f"{op.columns}u"]
                self._call(op.name, self.pointer(op.input), *shared, *numbers, *ends)
            case Dots():
                pointers = [self.pointer(a) for a in (op.a, op.b, op.output)]
                function = "row_mixtures" if op.columns else "row_dots"
                self._call(function, *pointers, f"{op.m}u", f"{op.n}u", f"{op.k}u")

            case Learned():
                self._call(op.function, self.pointer(op.input), self.value(op.reward), self.pointer(op.output))

    def _call(self, function: str, *arguments: str) -> None:
        self.statements.append(f"{function}({', '.join(arguments)});")

    def _map(self, op: Map) -> None:
        lines, operands = [], []
        for i, (address, stride) in enumerate(op.inputs):
            if stride:
                lines.append(f"    const float *const x{i} = {self.pointer(address)};")
            operands.append(f"x{i}[i]" if stride else self.value(address))
        lines.append(f"    float *const y = {self.pointer(op.output)};")
        lines.append(f"    for (uint32_t i = 0; i < {op.count}u; i++) {{")
        lines.append(f"        y[i] = {EXPRESSIONS[op.name].format(*operands)};")
        self.statements.append("\n".join(["{", *lines, "    }", "}"]))

    def _linear(self, op: Linear) -> None:
        rows, columns = op.weights.shape
        name, ends = self._define_product(op), [f"{padded(rows)}u", f"{columns}u"]
        if op.count == 1:
            self._call("linear", name, f"{name}_bias", self.pointer(op.input), self.pointer(op.output), *ends)
            return
        (x, first), (y, start) = self.place(op.input), self.place(op.output)
        moving = f"&{x}[{_sum(first, f'{columns}u * i')}]", f"&{y}[{_sum(start, f'{padded(rows)}u * i')}]"
        self._loop(op.count, f"linear({', '.join([name, f'{name}_bias', *moving, *ends])});")

    def _define_product(self, op: Linear | Convolution) -> str:
        """The name of weights; that of the bias has an ending."""
        name = f"weights{len(self.constants)}"
        self._define_constant(name, packed(op.weights))
        self._define_constant(f"{name}_bias", padded_bias(op.bias, len(op.weights)))
        return name

    def _convolution(self, op: Convolution) -> None:
        name = self._define_product(op)
        fields = "".join(f"{number}u, " for number in op.geometry).rstrip(", ")
        self.constants[f"{name}_places"] = f"static const convolution {name}_places = {{{fields}}};"
        self.constant_bytes += 4 * len(op.geometry)
        pointers = [self.pointer(a) for a in (op.input, op.patch, op.output)]
        self._call("convolve", f"&{name}_places", name, f"{name}_bias", *pointers, f"{padded(len(op.weights))}u")

    def _integer_linear(self, op: IntegerLinear) -> None:
        rows, columns = op.weights.shape
        kind, name = f"int{8 * op.weights.itemsize}", f"weights{len(self.constants)}"
        self._define_integers(name, f"{kind}_t", packed_integers(op.weights))
        operands = [name, f"{name}_scale", f"{name}_bias"]
        if op.places is None or op.table is None:
            self._define_constant(f"{name}_scale", op.scale)
            self._define_constant(f"{name}_bias", op.bias)
        else:
            operands[1:] = [f"{name}_places", self._table(op.table)]
            self._define_integers(f"{name}_places", "int32_t", op.places.ravel())
        ends = [self.pointer(op.input), self.pointer(op.output), f"{rows}u", f"{columns}u"]
        self._call(f"linear_{kind}" + ("" if op.table is None else "_table"), *operands, *ends)

    def _table(self, table: NDArray[np.uint32]) -> str:
        """The name of a table; equal ones are kept once."""
        text = table.tobytes()
        if text not in self.tables:
            self.tables[text] = f"table{len(self.tables)}"
            self._define_integers(self.tables[text], "uint32_t", table)
        return self.tables[text]

    def _define_integers(self, name: str, kind: str, values: NDArray[Any]) -> None:
        suffix = "u" if kind.startswith("u") else ""
        self.constants[name] = array(f"{kind} WORD_ALIGNED", name, [f"{value}{suffix}" for value in values.tolist()])
        self.constant_bytes += values.nbytes

    def copy(self, sources: Addresses, name: str, start: int = 0) -> None:
        """Copy floats into an array from its element ``start`` on."""
        for first, stride, count, at in self._runs(sources):
            if count == 1:
                self.statements.append(f"{name}[{start + at}] = {self.value(first)};")
            else:
                origin, offset = self.place(first)
                step = "i" if stride == 1 else f"{stride}u * i"
                self._loop(count, f"{name}[{_sum(start + at, 'i')}] = {origin}[{_sum(offset, step)}];")

    def require(self, fact: str, otherwise: str) -> None:
        """Go on if an expression is true; else do something and leave."""
        self.statements.append(f"if (!{fact}) {{\n    {otherwise}\n}}")

    def require_finite(self, addresses: Addresses, otherwise: str) -> None:
        """Go on if these floats are finite."""
        for first, stride, count, _ in self._runs(addresses):
            if self.program.find(first)[0].values is not None:
                continue  # a constant
            if count == 1:
                self.require(f"is_finite({self.value(first)})", otherwise)
            elif stride == 1:
                self.require(f"all_finite({self.pointer(first)}, {count}u)", otherwise)
            else:
                for i in range(count):
                    self.require(f"is_finite({self.value(first + i * stride)})", otherwise)

    def _runs(self, addresses: Addresses) -> Iterator[tuple[int, int, int, int]]:
        """(first, stride, count, position) of evenly spaced addresses in one buffer; short stretches fall apart."""
        i, n = 0, len(addresses)
        while i < n:
            first, count = int(addresses[i]), 1
            stride = int(addresses[i + 1]) - first if i + 1 < n else 0
            buffer, _ = self.program.find(first)
            end = buffer.base + buffer.size
            while stride > 0 and i + count < n and addresses[i + count] == first + stride * count < end:
                count += 1
            count = count if count >= SHORTEST_RUN else 1
            yield first, stride, count, i
            i += count

    def _loop(self, count: int, statement: str) -> None:
        self.statements.append(f"for (uint32_t i = 0; i < {count}u; i++) {{\n    {statement}\n}}")

    def store_state(self, before: Addresses, after: Addresses) -> None:
        """Write a block of state in place: first what moves within it, then what is new."""
        own = (after >= before[0]) & (after <= before[-1])
        name, _ = self.place(int(before[0]))
        if own.any():
            self._shift(name, int((before - after)[own][0]), np.flatnonzero(own))
        for stretch in np.split(np.arange(len(after)), np.flatnonzero(np.diff(own)) + 1):
            if not own[stretch[0]]:
                self.copy(after[stretch], name, int(stretch[0]))

    def _shift(self, name: str, distance: int, positions: NDArray[np.int64]) -> None:
        """Move elements up by ``distance``, the last one first, or down, the first one first."""
        for stretch in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1)[:: 1 if distance < 0 else -1]:
            first, count = int(stretch[0]), len(stretch)
            if distance < 0:
                self._loop(count, f"{name}[{_sum(first, 'i')}] = {name}[{_sum(first - distance, 'i')}];")
            elif distance > 0:
                down = f"{name}[{_sum(first - 1, 'i')}] = {name}[{_sum(first - distance - 1, 'i')}];"
                self.statements.append(f"for (uint32_t i = {count}u; i > 0u; i--) {{\n    {down}\n}}")


def _sum(offset: int, index: str) -> str:
    """An index shifted by a constant."""
    return index if offset == 0 else f"{index} {'+' if offset > 0 else '-'} {abs(offset)}u"


def packed(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights (rows, columns) in the order in which the linear kernel reads them."""
    rows, columns = weights.shape
    full = np.zeros((padded(rows), columns), np.float32)
    full[:rows] = weights
    eights = full[: len(full) // 8 * 8].reshape(-1, 8, columns).transpose(0, 2, 1)
    return np.concatenate([eights.ravel(), full[len(full) // 8 * 8 :].T.ravel()])


def packed_integers(weights: NDArray[np.int16] | NDArray[np.int8]) -> NDArray[Any]:
    """Integer weights (rows, columns) in the order in which their kernels read them."""
    rows, columns = weights.shape
    fours = weights.reshape(rows // 4, 4, columns // 4, 4).transpose(0, 2, 1, 3)
    return (fours if weights.itemsize == 2 else fours[..., [0, 2, 1, 3]]).ravel()


def padded_bias(bias: NDArray[np.float32] | None, rows: int) -> NDArray[np.float32]:
    """The bias of whole blocks."""
    full = np.zeros(-(-rows // BLOCK) * BLOCK, np.float32)
    full[:rows] = 0.0 if bias is None else bias
    return full


def literal(number: np.float32) -> str:
    """A float as C text that reads back to the same bits."""
    value = float(number)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    if value == int(value) and abs(value) < 1e6:
        text = f"{value:.1f}f"
    else:
        mantissa, exponent = value.hex().split("p")
        text = f"{mantissa.rstrip('0').rstrip('.')}p{exponent}f"
    return f"({text})" if text.startswith("-") else text


def array(kind: str, name: str, items: Sequence[str]) -> str:
    """The definition of a constant array."""
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > LINE:
            lines.append(line.rstrip())
            line = ""
        line += item + ", "
    body = "\n    ".join([*lines, line.rstrip(", ")])
    return f"static const {kind} {name}[{len(items)}] = {{\n    {body},\n}};"
