"""What was found of a robot with joints, for people, for the training, and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from robo_rl.identification.estimate import Estimate
from robo_rl.identification.findings import Findings
from robo_rl.identification.fit import Identified
from robo_rl.identification.following import Recorded
from robo_rl.sim.ranges import Range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 0.1
"""Of a value, two standard deviations; what is known less well is told."""


def joint_findings(
    record: Recorded, found: Identified, wrong: Sequence[str], ranges: Mapping[str, Range], joints: Sequence[str],
    sharper: str = "",
) -> Findings:  # fmt: skip
    """``wrong`` is why it can't be believed; ``joints`` are their names in the record's order; ``sharper`` is what to
    record so that less is left open."""
    ratio = found.error_nominal / found.error_fitted
    listed = ", ".join(f"{name} {left.size:.2g}" for name, left in found.residuals.items())

    def draw() -> Figure:
        from robo_rl.identification.plot import draw_identified

        return draw_identified(found, joints, record.period)

    return Findings(
        recorded=f"{len(record)} control steps, {len(record) * record.period:.1f} s",
        estimates=tuple(found.estimates),
        notes=(
            *(wide(found.estimates, sharper) if sharper else ()),
            *(f"  {' and '.join(names)} can hardly be told apart here" for names in groups(found.alike)),
            f"predicted joint angles are off by {1000 * found.error_fitted:.1f} mrad; with the card's figures by "
            f"{1000 * found.error_nominal:.1f} mrad, {ratio:.1f} times as much",
            f"one step ahead, errors are so many times the sensors' noise: {listed}",
        ),
        faults=tuple(wrong),
        bounds={e.unknown.name: e.range for e in found.estimates if e.determined and e.unknown.name in ranges},
        figures={
            "error_nominal_rad": found.error_nominal,
            "error_fitted_rad": found.error_fitted,
            "pieces": found.pieces,
            "residuals": {name: dataclasses.asdict(left) for name, left in found.residuals.items()},
            "alike": [list(pair) for pair in found.alike],
        },
        draw=draw,
    )


def wide(estimates: Sequence[Estimate], sharper: str) -> list[str]:
    """A sentence on what is determined to more than ``WIDE`` of its value only, if anything is."""
    shares = {
        e.unknown.name: 2.0 * e.error / (1.0 if e.unknown.factor else max(abs(e.value), 1e-9))
        for e in estimates
        if e.determined
    }
    listed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items() if not share <= WIDE)
    return [f"  two standard deviations are more than {100 * WIDE:.0f} %: {listed}; {sharper}"] if listed else []


def groups(alike: Sequence[tuple[str, str, float]]) -> list[list[str]]:
    """Parameters that hang together by pairs that are alike."""
    found: list[list[str]] = []
    for one, two, _ in alike:
        touched = [names for names in found if one in names or two in names]
        joined = dict.fromkeys(name for names in (*touched, [one, two]) for name in names)
        found = [names for names in found if names not in touched] + [list(joined)]
    return found
