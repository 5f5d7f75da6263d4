"""robo-rl replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say


def main(
    log: Annotated[Path, tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    plot: Path | None = None,
    json: bool = False,
) -> int:
    """Rerun a recorded session and find the first step that differs; exit with 1 if one does.

    The recorded signals go through the policy file and the gate. Needs neither ROS nor a simulator.
    With --json: steps, compared, duration, whole, same_bundle, policy, greatest, gate, outside, first_outside, faults.

    Args:
        log: A session (*.mcap), as policy_node records it.
        file: A bundle (*.onnx): that of the session, or another with the same signals and commands.
        plot: Plot the signals and the ranges seen in training, into this picture.
        json: Print one JSON object on the last line of stdout.
    """
    from deploy.replay import as_dict, replay

    found = replay(log, file)
    end = "" if found.whole else ", cut off before its end"
    say(f"{log}: {found.steps} steps, {found.duration:.1f} s{end}", json)
    say(f"  recorded with {'this' if found.same_bundle else 'another'} policy file", json)
    if found.compared < found.steps:
        say(f"  switches  this policy alone was active in {found.compared} steps; only those are compared", json)
    say(f"  policy    {found.policy or f'as recorded, within {found.greatest:.1g} of the range of commands'}", json)
    say(f"  gate      {found.gate or 'every decision and every sent command as recorded'}", json)
    if found.first_outside:
        say(f"  ranges    first exceeded at {found.first_outside}", json)
        for name, part in found.outside.items():
            say(f"            {name:<26}{part:.1%} of the steps outside", json)
    else:
        say("  ranges    every signal within the range seen in training", json)
    for fault in found.faults:
        say(f"  fault     {fault}", json)
    if plot is not None:
        from deploy.replay import plot as draw

        draw(log, plot)
        say(f"  {plot}", json)
    give({"log": str(log), "file": str(file), **as_dict(found)}, json)
    return 1 if found.policy is not None or found.gate is not None else 0
