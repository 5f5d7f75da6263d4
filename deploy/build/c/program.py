"""The form between ONNX and C: straight-line operations on floats that live in buffers.

Every float has an address, an integer. A tensor is a numpy array of addresses, so slicing, joining, transposing and
broadcasting a tensor only rearrange addresses and cost nothing at run time. Only arithmetic makes operations.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Addresses = NDArray[np.int64]
Kind = Literal["signal", "state", "scalar", "arena", "integer", "constant"]


@dataclass(frozen=True)
class Buffer:
    """Floats that lie side by side. ``name`` is the C expression of the first; a scalar's is the value itself."""

    base: int
    size: int
    kind: Kind
    name: str
    values: NDArray[np.float32] | None = None
    """Of a constant."""

    @property
    def addresses(self) -> Addresses:
        """Of all its floats."""
        return np.arange(self.base, self.base + self.size, dtype=np.int64)


@dataclass(frozen=True)
class Scalar:
    """One float from a few: ``name`` is one of expressions.py."""

    name: str
    inputs: tuple[int, ...]
    output: int

    def reads(self) -> Iterator[int]:
        yield from self.inputs


@dataclass(frozen=True)
class Map:
    """The same function of every element: ``inputs`` are addresses and strides, 1 or 0, of its operands."""

    name: str
    inputs: tuple[tuple[int, int], ...]
    output: int
    count: int

    def reads(self) -> Iterator[int]:
        yield from (address for address, _ in self.inputs)


@dataclass(frozen=True)
class Gather:
    """Copies floats from anywhere into one buffer."""

    inputs: tuple[int, ...]
    output: int

    def reads(self) -> Iterator[int]:
        yield from self.inputs


@dataclass(frozen=True, eq=False)
class Linear:
    """``count`` times weights (rows, columns) · x + bias; outputs lie ``padded_rows`` apart, inputs ``columns``."""

    weights: NDArray[np.float32]
    bias: NDArray[np.float32] | None
    input: int
    output: int
    count: int
    source: str = ""
    """The ONNX tensor that goes in, if it is that alone."""
    order: NDArray[np.int64] | None = None
    """Which element of that tensor each column belongs to, if they lie in another order."""

    def reads(self) -> Iterator[int]:
        yield self.input


@dataclass(frozen=True, eq=False)
class Convolution:
    """Weights (rows, patch) times every patch of an input; outputs of a place lie side by side, ``padded_rows``."""

    geometry: tuple[int, ...]
    """The fields of ``convolution`` in kernels/convolve.h."""
    weights: NDArray[np.float32]
    bias: NDArray[np.float32] | None
    input: int
    patch: int
    """Where patches are copied to."""
    output: int

    def reads(self) -> Iterator[int]:
        yield self.input


@dataclass(frozen=True)
class Rows:
    """A kernel on every row of a matrix (rows, columns), with more operands that all rows share."""

    name: str
    input: int
    shared: tuple[int, ...]
    numbers: tuple[float, ...]
    output: int
    rows: int
    columns: int

    def reads(self) -> Iterator[int]:
        yield self.input
        yield from self.shared


@dataclass(frozen=True)
class Dots:
    """Products of all rows of a (m, k) with all rows of b (n, k), or all columns of b (k, n): an output (m, n)."""

    a: int
    b: int
    output: int
    m: int
    n: int
    k: int
    columns: bool = False

    def reads(self) -> Iterator[int]:
        yield self.a
        yield self.b


@dataclass(frozen=True)
class Quantize:
    """Floats become integers: ``factor`` times as many, at most ``limit``; ``room`` beyond ``count`` is zero."""

    input: int
    output: int
    count: int
    factor: float
    limit: int

    def reads(self) -> Iterator[int]:
        yield self.input


@dataclass(frozen=True, eq=False)
class IntegerLinear:
    """Integer weights (rows, columns), both padded to fours. Either scale and bias give floats, or places and table

    give integers again.
    """

    weights: NDArray[np.int16] | NDArray[np.int8]
    input: int
    output: int
    scale: NDArray[np.float32]
    bias: NDArray[np.float32]
    places: NDArray[np.int32] | None = None
    table: NDArray[np.uint32] | None = None

    def reads(self) -> Iterator[int]:
        yield self.input


@dataclass(frozen=True)
class Learned:
    """A network whose weights are learnt on the microcontroller (``learning``): a function of a whole observation and
    the reward, both of this step."""

    function: str
    input: int
    reward: int
    output: int

    def reads(self) -> Iterator[int]:
        yield self.input
        yield self.reward


Op = Scalar | Map | Gather | Linear | Convolution | Rows | Dots | Quantize | IntegerLinear | Learned

BLOCK = 4  # kernels write outputs in fours


def padded(rows: int) -> int:
    """Rows that a linear kernel writes."""
    return -(-rows // BLOCK) * BLOCK


@dataclass
class Program:
    """Operations in order; what they read and write; and the addresses of the results by name."""

    buffers: list[Buffer] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    results: dict[str, Addresses] = field(default_factory=dict)
    _bases: list[int] = field(default_factory=list)
    _scalars: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    _constants: dict[bytes, Buffer] = field(default_factory=dict)

    def buffer(self, kind: Kind, size: int, name: str = "", values: NDArray[np.float32] | None = None) -> Buffer:
        """A new buffer. Addresses leave a gap between buffers, so that neighbours never look like one."""
        base = self.buffers[-1].base + self.buffers[-1].size + 1 if self.buffers else 0
        made = Buffer(base, size, kind, name or f"{kind[0]}{len(self.buffers)}", values)
        self.buffers.append(made)
        self._bases.append(base)
        return made

    def find(self, address: int) -> tuple[Buffer, int]:
        """The buffer that an address lies in, and where in it."""
        buffer = self.buffers[bisect.bisect_right(self._bases, address) - 1]
        return buffer, int(address) - buffer.base

    def constant(self, values: NDArray[np.float32]) -> Addresses:
        """Addresses of constants, in their shape. Equal arrays are kept once."""
        values = np.asarray(values, dtype=np.float32)
        key = values.tobytes()
        if key not in self._constants:
            self._constants[key] = self.buffer("constant", values.size, values=values.ravel())
        return self._constants[key].addresses.reshape(values.shape)

    def value(self, address: int) -> np.float32 | None:
        """The number at an address, if it is constant."""
        buffer, offset = self.find(address)
        return None if buffer.values is None else buffer.values[offset]

    def scalar(self, name: str, *inputs: int) -> int:
        """One float computed from others; the same question is computed once."""
        key = (name, tuple(int(address) for address in inputs))
        if key not in self._scalars:
            self._scalars[key] = self.buffer("scalar", 1).base
            self.ops.append(Scalar(name, key[1], self._scalars[key]))
        return self._scalars[key]

    @staticmethod
    def in_line(addresses: Addresses) -> bool:
        """Whether floats lie side by side in this order."""
        return bool((np.diff(addresses.ravel()) == 1).all())

    def side_by_side(self, addresses: Addresses) -> int:
        """The address of floats that lie side by side in this order: they themselves or copies of them."""
        flat = addresses.ravel()
        if self.in_line(flat):
            return int(flat[0])
        values = [self.value(address) for address in flat.tolist()]
        if None not in values:
            return int(self.constant(np.array(values, np.float32))[0])
        copy = self.buffer("arena", flat.size)
        self.ops.append(Gather(tuple(flat.tolist()), copy.base))
        return copy.base

    def prune(self) -> None:
        """Leave out operations whose result is not used."""
        needed = {self.find(a)[0].base for result in self.results.values() for a in result.ravel().tolist()}
        kept = []
        for op in reversed(self.ops):
            if self.find(op.output)[0].base in needed:
                kept.append(op)
                needed |= {self.find(a)[0].base for a in op.reads()}
        self.ops = kept[::-1]
