"""Multirotors: free flight, fitted by ``fit``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from robo_rl.identification.findings import Findings, Progress
from robo_rl.identification.multirotor.fit import AHEAD, MOVE, Flown, fit
from robo_rl.identification.multirotor.flight import Flights, flights
from robo_rl.identification.multirotor.model import DELAY, ROTOR
from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.multirotor import MultirotorCard

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from robo_rl.deploy.robot.logs.reader import Log
    from robo_rl.sim.tasks import Task

LARGEST = 3.0
"""Times the sensors' noise, of any axis. Flights that were fitted well have up to 1.5."""
PATTERN = 0.7
"""Correlation of errors with those of the step before. Well fitted: up to 0.35."""
WORSE = 1.1
"""Times the error of the attitude predicted by the card's figures."""
APART = 6.0
"""Standard deviations of the difference between what the halves of the record would give. Well fitted: up to 3."""


def find(logs: Sequence[Log], task: Task, iterations: int, progress: Progress) -> Findings:
    """ValueError unless the logs are of a multirotor whose rotors' speeds are commanded."""
    card, plant = task.spec.robot, task.make_plant(1, "cpu")
    if not isinstance(card, MultirotorCard) or not isinstance(plant, MultirotorPlant):
        raise ValueError(f"{logs[0].path} is of {task.spec.name}, which simulates another plant than a multirotor's")
    recorded = flights(logs)
    found = fit(card, recorded, iterations, progress)
    listed = ", ".join(f"{name} {left.size:.2g}" for name, left in found.residuals.items())
    ratio = found.error_nominal / found.error_fitted

    def draw() -> Figure:
        from robo_rl.identification.plot import draw_flown

        return draw_flown(found, recorded.period)

    return Findings(
        recorded=f"{recorded.steps} control steps in {len(recorded.parts)} parts, "
        f"{recorded.steps * recorded.period:.1f} s",
        estimates=tuple(found.estimates),
        notes=(
            "thrust and inertia are per mass, which a flight doesn't tell: the mass is put to the card's",
            f"the predicted attitude is off by {1000 * found.error_fitted:.1f} mrad (root mean square) over {AHEAD} "
            f"steps; with the card's figures by {1000 * found.error_nominal:.1f} mrad, {ratio:.1f} times as much",
            f"one step ahead, errors are so many times the sensors' noise: {listed}",
        ),
        faults=tuple(faults(recorded, found)),
        bounds=bounds(found, task.spec.ranges),
        figures={
            "error_nominal_rad": found.error_nominal,
            "error_fitted_rad": found.error_fitted,
            "pieces": found.pieces,
            "residuals": {name: dataclasses.asdict(left) for name, left in found.residuals.items()},
            "alike": [],
        },
        draw=draw,
    )


def bounds(found: Flown, ranges: Mapping[str, Range]) -> dict[str, tuple[float, float]]:
    """Bounds of the ranges that are told.

    The rotors' factors share one range, and "delay" is the age of measurements and the commands' delay together, which
    a policy can't tell apart.
    """
    told = {e.unknown.name: e.range for e in found.estimates if e.determined and e.unknown.name in ranges}
    told = {name: pair for name, pair in told.items() if ranges[name].count is None}
    if "thrust" in told and "mass" in ranges:
        told["mass"] = (1.0, 1.0)
    rotors = [e for e in found.estimates if e.unknown.name.startswith(f"{ROTOR}/")]
    if ROTOR in ranges and all(e.determined for e in rotors):
        told[ROTOR] = min(e.range[0] for e in rotors), max(e.range[1] for e in rotors)
    delay = next(e for e in found.estimates if e.unknown.name == DELAY)
    if "delay" in ranges and delay.determined:
        told["delay"] = found.age[0] + delay.range[0], found.age[1] + delay.range[1]
    return {name: told[name] for name in ranges if name in told}


def faults(record: Flights, found: Flown) -> list[str]:
    """Sentences on why a fit must not be believed, each with what to do; empty if it may."""
    told = []
    large = {name: left.worst for name, left in found.residuals.items() if not left.worst <= LARGEST}
    if large:
        listed = ", ".join(f"{name} {size:.3g}" for name, size in large.items())
        told.append(
            f"what is left of {listed} times the sensors' noise at worst; expected at most {LARGEST:g}: the robot did "
            "not do what the model does under these commands. Check the rotors' order and spin, units, frames and "
            "stamps, that it flew free, and that the robot is the task's"
        )
    patterned = {name: left.correlation for name, left in found.residuals.items() if not left.correlation <= PATTERN}
    if patterned:
        listed = ", ".join(f"{name} {value:.2f}" for name, value in patterned.items())
        told.append(
            f"errors go on from step to step (correlation of {listed}); expected at most {PATTERN:g}: the robot has "
            "something that the model has not, such as gusts, ground effect or an estimator's lag"
        )
    if not found.error_fitted <= WORSE * found.error_nominal:
        told.append(
            f"what was found predicts the attitude {AHEAD} steps ahead worse than the card's figures do, by "
            f"{1000 * found.error_fitted:.3g} mrad instead of {1000 * found.error_nominal:.3g}: {MOVE}"
        )
    ends = [estimate.unknown.name for estimate in found.estimates if estimate.reason]
    if ends:
        told.append(f"{', '.join(ends)} came out at the end of what is possible: the model can't explain the record")
    apart = [name for name, far in found.halves.items() if not far <= APART]
    if apart:
        told.append(
            f"the halves of the record disagree about {', '.join(apart)} by more than {APART:g} standard deviations: "
            "something changed on the way (a battery, a payload); record again"
        )
    if not any(estimate.determined for estimate in found.estimates):
        told.append(f"nothing is determined: {MOVE}")
    if not np.isfinite([estimate.value for estimate in found.estimates]).all():
        told.append("the fit has no result: the record doesn't look like a flight")
    return told
