"""robo-rl sysid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import Progress, give, require_place, say, say_next
from robo_rl.files.escaping import shell_word

if TYPE_CHECKING:
    from robo_rl.identification.estimate import Estimate
    from robo_rl.identification.findings import Findings


def main(
    log: Annotated[Path, tyro.conf.Positional],
    robot: str | None = None,
    task: str | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    force: bool = False,
    json: bool = False,
) -> int:
    """Find a robot's parameters from a recorded walk, motion or flight; exit with 1 if that fails.

    Of a legged robot friction, rotor inertia, gains, latency and load, from a walk on flat ground; of an arm whose
    joints take positions the same, from motion through the air; of a multirotor thrust, inertia, motor lag, drag torque
    and latency, from free flight.

    What the recording doesn't determine is said so, and is not written. A fit that can't be believed is refused: the
    recording hardly moves, the model doesn't follow it, what is left has a pattern, its halves disagree, or (of an arm)
    a search from another start ends elsewhere.
    With --json: file (null if refused), accepted, faults, error_nominal_rad and error_fitted_rad (of joint angles, or
    of the attitude, predicted 0.2 s ahead in parts of the recording that were left out), pieces, alike, residuals (size
    and nominal, in units of the sensors' noise, and correlation), and parameters: a list of name, unit, value,
    standard_error, determined, reason, low, high.

    Args:
        log: A recording (*.mcap) of the policy's node, or of 'robo-rl record'.
        robot: The robot's name or card; by default what the recording says.
        task: The task whose ranges are written; by default the recording's. One of your own: FILE.py:CLASS.
        out: Where the ranges are written (*.toml), for 'robo-rl train --ranges'; by default beside the recording.
        plot: Draw predicted and recorded joint angles, and the parameters, into this picture (.png or .svg).
        force: Write the ranges of a fit that was refused, with the reasons in the file.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.build.verify import named_task
    from robo_rl.deploy.robot.logs.reader import read_log
    from robo_rl.identification.findings import ITERATIONS, find
    from robo_rl.sim.ranges import write_ranges

    require_place(plot, "--plot", ".png", ".svg")
    require_place(out, "--out", ".toml")
    recorded = read_log(log)
    loaded = named_task(recorded.contract, task, robot)
    with Progress("fitting", ITERATIONS) as progress:
        found = find([recorded], loaded, progress.update)
    say(f"{log}: {found.recorded}, {loaded.spec.robot.title}", json)
    describe(found, json)
    if plot is not None:
        found.draw().savefig(plot, dpi=120)
        say(f"{plot}", json)
    out = out or log.with_suffix(".toml")
    if found.faults and not force:
        say("nothing is written; --force writes it all the same", json)
        give(_result(None, found), json)
        return 1
    write_ranges(out, loaded.spec.name, found.bounds, source(found, [log]))
    say(f"{out}: {', '.join(found.bounds) or 'nothing that the recording determines'}", json)
    learn = f"{loaded.spec.name} --robot {shell_word(robot or recorded.contract.robot_name)}"
    say_next([f"robo-rl train {learn} --ranges {out}", f"robo-rl evaluate POLICY --ranges {out}"], json)
    give(_result(out, found), json)
    return 0 if found.bounds and not found.faults else 1


def describe(found: Findings, json: bool) -> None:
    """Say what was found, how good it is, and why it can't be believed."""
    for estimate in found.estimates:
        say(f"  {_line(estimate)}", json)
    for note in found.notes:
        say(note, json)
    for fault in found.faults:
        say(f"REFUSED: {fault}", json)


def source(found: Findings, logs: Sequence[Path]) -> str:
    """For the head of a file of ranges: where they are from."""
    first = f"from {', '.join(log.name for log in logs)} by robo-rl sysid; two standard errors to both sides"
    return "\n# ".join([first, *(f"REFUSED, and written by --force: {fault}" for fault in found.faults)])


def _line(estimate: Estimate) -> str:
    unknown = estimate.unknown
    low, high = estimate.range
    figures = f"{estimate.value:9.4g} {unknown.unit:<10} {low:.4g} to {high:.4g}"
    why = f": {estimate.reason}" if estimate.reason else ""
    doubt = "" if estimate.determined else f"   not determined by this recording{why}"
    return f"{unknown.name:<22} {figures}{doubt}"


def parameters(found: Findings) -> list[dict[str, Any]]:
    """The estimates, as --json has them."""
    return [
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


def _result(out: Path | None, found: Findings) -> dict[str, Any]:
    return {
        "file": None if out is None else str(out),
        "accepted": not found.faults,
        "faults": list(found.faults),
        **found.figures,
        "parameters": parameters(found),
    }
