"""Places in the arena: buffers that are not needed at the same time share memory."""

from __future__ import annotations

from dataclasses import dataclass

from deploy.c.program import Map, Program


@dataclass(frozen=True)
class Plan:
    """Offsets (floats) of the arena's buffers, by base address, and the arena's size."""

    offsets: dict[int, int]
    size: int


def plan(program: Program) -> Plan:
    """Give every buffer in order of its birth the smallest gap that is free for its whole life."""
    born: dict[int, int] = {}
    dies: dict[int, int] = {}
    for moment, op in enumerate(program.ops):
        for address in op.reads():
            dies[program.find(address)[0].base] = moment
        born.setdefault(program.find(op.output)[0].base, moment)
    for result in program.results.values():
        for address in result.ravel().tolist():
            dies[program.find(address)[0].base] = len(program.ops)
    sizes = {b.base: b.size for b in program.buffers if b.kind == "arena" and b.base in born}
    offsets: dict[int, int] = {}
    for base in sorted(sizes, key=lambda base: born[base]):
        end = dies.get(base, born[base])
        # an elementwise operation may write over what it reads for the last time
        in_place = isinstance(program.ops[born[base]], Map)
        start = born[base] + (1 if in_place else 0)
        taken = sorted(
            (offsets[other], offsets[other] + sizes[other])
            for other in offsets
            if dies.get(other, born[other]) >= start and born[other] <= end
        )
        offsets[base] = _best_gap(taken, sizes[base])
    return Plan(offsets, max((offsets[base] + sizes[base] for base in offsets), default=0))


def _best_gap(taken: list[tuple[int, int]], size: int) -> int:
    """The start of the tightest gap between the taken stretches that has the size, or the end of all."""
    best, tightest, free_from = None, None, 0
    for start, end in taken:
        gap = start - free_from
        if gap >= size and (tightest is None or gap < tightest):
            best, tightest = free_from, gap
        free_from = max(free_from, end)
    return free_from if best is None else best
