"""Legged robots: a walk on flat ground, fitted by ``fit`` and judged by ``judge``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robo_rl.identification.findings import Findings, Progress
from robo_rl.identification.fit import identify
from robo_rl.identification.judge import faults
from robo_rl.identification.recorded import walk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deploy.log_reader import Log
    from sim.tasks import Task


def find(logs: Sequence[Log], task: Task, iterations: int, progress: Progress) -> Findings:
    """ValueError unless it is one log of a robot that walks on flat ground."""
    if len(logs) > 1:
        raise ValueError(f"{logs[1].path}: a walk is fitted from one log; expected {logs[0].path} alone")
    path, spec = logs[0].path, task.spec
    plant: Any = task.make_plant(1, "cpu")
    mechanism, physics = getattr(plant, "mechanism", None), getattr(plant, "physics", None)
    if mechanism is None or physics is None or mechanism.fixed or not mechanism.points:
        raise ValueError(f"{path} is of a {spec.robot.kind}; expected a robot that walks, simulated by MuJoCo")
    if plant.ground is not None:
        raise ValueError(f"{path} is of {spec.name}, on rough ground; expected a walk on flat ground")
    if physics.contacts != "points":
        raise ValueError(f"{path} is of {spec.name}, where all shapes touch the ground; expected a walk")
    record = walk(logs[0])
    found = identify(mechanism, record, physics, iterations=iterations, progress=progress)
    ratio = found.error_nominal / found.error_fitted
    listed = ", ".join(f"{name} {left.size:.2g}" for name, left in found.residuals.items())

    def draw() -> Figure:
        from robo_rl.identification.plot import draw_identified

        return draw_identified(found, mechanism.joint_names, record.period)

    return Findings(
        recorded=f"{len(record)} control steps, {len(record) * record.period:.1f} s",
        estimates=tuple(found.estimates),
        notes=(
            *(
                f"  {one} and {two} can hardly be told apart here (correlation {correlation:+.2f})"
                for one, two, correlation in found.alike
            ),
            f"predicted joint angles are off by {1000 * found.error_fitted:.1f} mrad; with the card's figures by "
            f"{1000 * found.error_nominal:.1f} mrad, {ratio:.1f} times as much",
            f"one step ahead, errors are so many times the sensors' noise: {listed}",
        ),
        faults=tuple(faults(record, found)),
        bounds={e.unknown.name: e.range for e in found.estimates if e.determined and e.unknown.name in spec.ranges},
        figures={
            "error_nominal_rad": found.error_nominal,
            "error_fitted_rad": found.error_fitted,
            "pieces": found.pieces,
            "residuals": {name: dataclasses.asdict(left) for name, left in found.residuals.items()},
            "alike": [list(pair) for pair in found.alike],
        },
        draw=draw,
    )
