"""Places in the arena: buffers that are not needed at the same time share memory."""

from __future__ import annotations

from dataclasses import dataclass

from robo_rl.deploy.build.c.program import Convolution, Map, Program


@dataclass(frozen=True)
class Plan:
    """Offsets of the arena's buffers, by base address, and how many floats and integers it holds."""

    offsets: dict[int, int]
    floats: int
    integers: int


def plan(program: Program) -> Plan:
    """Give every buffer in order of its birth the smallest gap that is free for its whole life."""
    born: dict[int, int] = {}
    dies: dict[int, int] = {}
    for moment, op in enumerate(program.ops):
        for address in op.reads():
            dies[program.find(address)[0].base] = moment
        born.setdefault(program.find(op.output)[0].base, moment)
        if isinstance(op, Convolution):
            born[op.patch] = dies[op.patch] = moment
    for result in program.results.values():
        for address in result.ravel().tolist():
            dies[program.find(address)[0].base] = len(program.ops)
    offsets: dict[int, int] = {}
    floats, integers = (_place(program, kind, born, dies, offsets) for kind in ("arena", "integer"))
    return Plan(offsets, floats, integers)


def _place(program: Program, kind: str, born: dict[int, int], dies: dict[int, int], offsets: dict[int, int]) -> int:
    """Write the offsets of all buffers of a kind; the room that they need together."""
    sizes = {b.base: b.size for b in program.buffers if b.kind == kind and b.base in born}
    placed: list[int] = []
    for base in sorted(sizes, key=lambda base: born[base]):
        end = dies.get(base, born[base])
        # an elementwise operation may write over what it reads for the last time, but for what it reads again and again
        op = program.ops[born[base]]
        in_place = isinstance(op, Map) and all(stride for _, stride in op.inputs)
        start = born[base] + (1 if in_place else 0)
        taken = sorted(
            (offsets[other], offsets[other] + sizes[other])
            for other in placed
            if dies.get(other, born[other]) >= start and born[other] <= end
        )
        offsets[base] = _best_gap(taken, sizes[base])
        placed.append(base)
    return max((offsets[base] + sizes[base] for base in placed), default=0)


def _best_gap(taken: list[tuple[int, int]], size: int) -> int:
    """The start of the tightest gap between the taken stretches that has the size, or the end of all."""
    best, tightest, free_from = None, None, 0
    for start, end in taken:
        gap = start - free_from
        if gap >= size and (tightest is None or gap < tightest):
            best, tightest = free_from, gap
        free_from = max(free_from, end)
    return free_from if best is None else best
