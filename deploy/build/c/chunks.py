"""What the C of a policy with chunks leaves out between two inferences.

The graph takes the network's answer only where none of a chunk's actions is left. Operations whose results go nowhere
but into that choice are computed together, under a condition. The results are the same, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robo_rl.contract import Contract
from robo_rl.contract.provenance import CHUNK_BLOCKS
from robo_rl.deploy.build.c.program import Map, Op, Program, Scalar

COUNTERS = (CHUNK_BLOCKS[1], "flow_left")
"""Blocks of memory that count the actions that are left."""


def set_apart(program: Program, contract: Contract) -> tuple[int, range]:
    """Put the operations of an inference side by side: the address of the counter, and which operations they are.

    An empty range where the policy plans no chunks.
    """
    counters = [place for place, block in enumerate(contract.state) if block.name in COUNTERS]
    if not counters:
        return 0, range(0)
    left = [buffer for buffer in program.buffers if buffer.kind == "state"][counters[0]].base
    apart = _only_chosen(program, left)
    after = dependent(program, apart)
    apart -= {place for place in apart if _reads_any(program, program.ops[place], after, program.ops)}
    after = dependent(program, apart)
    places = range(len(program.ops))
    first = [place for place in places if place not in apart and place not in after]
    order = [*first, *sorted(apart), *(place for place in places if place in after)]
    program.ops = [program.ops[place] for place in order]
    return left, range(len(first), len(first) + len(apart))


def _buffers(program: Program, op: Op) -> Iterator[int]:
    """Base addresses of what an operation reads."""
    yield from (program.find(address)[0].base for address in op.reads())


def _only_chosen(program: Program, left: int) -> set[int]:
    """Which operations give nothing but the answer that is chosen where the counter is below one half."""
    conditions = {
        op.output
        for op in program.ops
        if isinstance(op, Scalar) and op.name == "Less" and op.inputs[0] == left
        and program.value(op.inputs[1]) == np.float32(0.5)
    }  # fmt: skip
    results = {program.find(a)[0].base for result in program.results.values() for a in result.ravel().tolist()}
    readers: dict[int, list[tuple[int, bool]]] = {}
    for place, op in enumerate(program.ops):
        inputs = [a if isinstance(a, int) else a[0] for a in op.inputs] if isinstance(op, Scalar | Map) else []
        choice = bool(inputs) and op.name == "Where" and inputs[0] in conditions  # type: ignore[union-attr]
        for position, address in enumerate(op.reads()):
            readers.setdefault(program.find(address)[0].base, []).append((place, choice and position == 1))
    found: set[int] = set()
    for place in reversed(range(len(program.ops))):
        op = program.ops[place]
        buffer = program.find(op.output)[0].base
        if buffer in results or buffer not in readers:
            continue
        # a scalar is a variable of the block that computes it
        if all(by in found or (chosen and not isinstance(op, Scalar)) for by, chosen in readers[buffer]):
            found.add(place)
    return found


def dependent(program: Program, apart: set[int]) -> set[int]:
    """Which other operations need the results of those ``apart``, directly or not."""
    made = {program.find(program.ops[place].output)[0].base for place in apart}
    found: set[int] = set()
    for place, op in enumerate(program.ops):
        if place not in apart and made & set(_buffers(program, op)):
            found.add(place)
            made.add(program.find(op.output)[0].base)
    return found


def _reads_any(program: Program, op: Op, places: set[int], ops: list[Op]) -> bool:
    made = {program.find(ops[place].output)[0].base for place in places}
    return bool(made & set(_buffers(program, op)))
