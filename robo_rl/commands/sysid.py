"""robo-rl sysid."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import Progress, give, require_place, say

if TYPE_CHECKING:
    from robo_rl.identification.fit import Estimate, Identified

ITERATIONS = 9


def main(
    log: Annotated[Path, tyro.conf.Positional],
    robot: str | None = None,
    task: str | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    force: bool = False,
    json: bool = False,
) -> int:
    """Find a robot's friction, inertia, gains, latency and load from a recorded walk; exit with 1 if that fails.

    What the recording doesn't determine is said so, and is not written. A fit that can't be believed is refused: the
    recording hardly moves, the model doesn't follow it, what is left has a pattern, or its halves disagree.
    With --json: file (null if refused), accepted, faults, error_nominal_rad and error_fitted_rad (of joint angles
    predicted 0.2 s ahead in parts of the recording that were left out), pieces, alike, residuals (size and nominal, in
    units of the sensors' noise, and correlation), and parameters: a list of name, unit, value, standard_error,
    determined, reason, low, high.

    Args:
        log: A recording (*.mcap) of the policy's node, or of 'robo-rl record'.
        robot: The robot's name or card; by default what the recording says.
        task: The task whose ranges are written; by default the recording's. One of your own: FILE.py:CLASS.
        out: Where the ranges are written (*.toml), for 'robo-rl train --ranges'; by default beside the recording.
        plot: Draw predicted and recorded joint angles, and the parameters, into this picture (.png or .svg).
        force: Write the ranges of a fit that was refused, with the reasons in the file.
        json: Print one JSON object on the last line of stdout.
    """
    from deploy.log_reader import read_log
    from deploy.verify import named_task
    from robo_rl.identification import faults, identify, walk
    from sim.ranges import write_ranges

    require_place(plot, "--plot", ".png", ".svg")
    require_place(out, "--out", ".toml")
    recorded = read_log(log)
    contract = recorded.contract
    loaded = named_task(contract, task, robot)
    plant: Any = loaded.make_plant(1, "cpu")
    mechanism, physics = getattr(plant, "mechanism", None), getattr(plant, "physics", None)
    if mechanism is None or physics is None or mechanism.fixed or not mechanism.points:
        raise ValueError(f"{log} is of a {contract.robot.kind}; expected a robot that walks, simulated by MuJoCo")
    if plant.ground is not None:
        raise ValueError(f"{log} is of {loaded.spec.name}, on rough ground; expected a walk on flat ground")
    if physics.contacts != "points":
        raise ValueError(f"{log} is of {loaded.spec.name}, where all shapes touch the ground; expected a walk")
    record = walk(recorded)
    say(f"{log}: {len(record)} control steps, {len(record) * record.period:.1f} s, {loaded.spec.robot.title}", json)
    with Progress("fitting", ITERATIONS) as progress:
        found = identify(mechanism, record, physics, iterations=ITERATIONS, progress=progress.update)
    for estimate in found.estimates:
        say(f"  {_line(estimate)}", json)
    for one, two, correlation in found.alike:
        say(f"  {one} and {two} can hardly be told apart here (correlation {correlation:+.2f})", json)
    ratio = found.error_nominal / found.error_fitted
    say(
        f"predicted joint angles are off by {1000 * found.error_fitted:.1f} mrad; with the card's figures by "
        f"{1000 * found.error_nominal:.1f} mrad, {ratio:.1f} times as much",
        json,
    )
    listed = ", ".join(f"{name} {left.size:.2g}" for name, left in found.residuals.items())
    say(f"one step ahead, errors are so many times the sensors' noise: {listed}", json)
    if plot is not None:
        from robo_rl.identification.plot import draw_identified

        draw_identified(found, mechanism.joint_names, record.period).savefig(plot, dpi=120)
        say(f"{plot}", json)
    wrong, out = faults(record, found), out or log.with_suffix(".toml")
    for fault in wrong:
        say(f"REFUSED: {fault}", json)
    known = {e.unknown.name: e.range for e in found.estimates if e.determined and e.unknown.name in loaded.spec.ranges}
    if wrong and not force:
        say("nothing is written; --force writes it all the same", json)
        give(_result(None, found, wrong), json)
        return 1
    source = f"from {log.name} by robo-rl sysid; two standard errors to both sides"
    source = "\n# ".join([source, *(f"REFUSED, and written by --force: {fault}" for fault in wrong)])
    write_ranges(out, loaded.spec.name, known, source)
    say(f"{out}: {', '.join(known) or 'nothing that the recording determines'}", json)
    say(f"Next:  robo-rl train {loaded.spec.name} --ranges {out}      robo-rl evaluate POLICY --ranges {out}", json)
    give(_result(out, found, wrong), json)
    return 0 if known and not wrong else 1


def _line(estimate: Estimate) -> str:
    unknown = estimate.unknown
    low, high = estimate.range
    figures = f"{estimate.value:9.4g} {unknown.unit:<10} {low:.4g} to {high:.4g}"
    why = f": {estimate.reason}" if estimate.reason else ""
    doubt = "" if estimate.determined else f"   not determined by this recording{why}"
    return f"{unknown.name:<18} {figures}{doubt}"


def _result(out: Path | None, found: Identified, wrong: list[str]) -> dict[str, Any]:
    parameters = [
        {
            "name": estimate.unknown.name,
            "unit": estimate.unknown.unit,
            "value": estimate.value,
            "standard_error": estimate.error * (estimate.value if estimate.unknown.factor else 1.0),
            "determined": estimate.determined,
            "reason": estimate.reason,
            "low": estimate.range[0],
            "high": estimate.range[1],
        }
        for estimate in found.estimates
    ]
    return {
        "file": None if out is None else str(out),
        "accepted": not wrong,
        "faults": wrong,
        "error_nominal_rad": found.error_nominal,
        "error_fitted_rad": found.error_fitted,
        "pieces": found.pieces,
        "residuals": {name: dataclasses.asdict(left) for name, left in found.residuals.items()},
        "alike": [list(pair) for pair in found.alike],
        "parameters": parameters,
    }
