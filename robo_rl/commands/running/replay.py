"""robo-rl replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, require_place, say

MOST_SAID = 8
"""Sentences about damage."""


def main(
    log: Annotated[Path, tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    more: Annotated[tuple[Path, ...], tyro.conf.Positional] = (),
    plot: Path | None = None,
    json: bool = False,
) -> int:
    """Rerun a recorded session and find the first step that differs; exit with 1 if one does.

    The recorded signals go through the policy file and the gate. Needs neither ROS nor a simulator. Of a damaged file
    all whole chunks are used; exit with 1 if there was nothing to compare. With --json: steps, compared, duration,
    whole, damage, missing, same_bundle, policy, greatest, gate, gate_compared, outside, first_outside, faults.

    Args:
        log: A session (*.mcap), as --record of 'robo-rl run' and of 'robo-rl ros policy' writes it.
        file: A bundle (*.onnx): that of the session, or another with the same signals and commands.
        more: Nothing: one session at a time.
        plot: Plot the signals and the ranges seen in training, into this picture.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.robot.logs.replay import as_dict, replay

    given = (log, file, *more)
    if more or file.suffix == ".mcap":
        logs = sum(path.suffix == ".mcap" for path in given)
        raise ValueError(f"{len(given)} files, {logs} of them sessions; expected one session (*.mcap) and one bundle")
    require_place(plot, "--plot")

    found = replay(log, file)
    end = "" if found.whole else ", not whole"
    say(f"{log}: {found.steps} steps, {found.duration:.1f} s{end}", json)
    for damage in found.damage[:MOST_SAID]:
        say(f"  damage    {damage}", json)
    if len(found.damage) > MOST_SAID:
        say(f"            and {len(found.damage) - MOST_SAID} more", json)
    if found.missing:
        say(f"  missing   {found.missing} steps", json)
    say(f"  recorded with {'this' if found.same_bundle else 'another'} policy file", json)
    if found.compared < found.steps:
        say(f"  compared  {found.compared} steps: those in which this policy proposed, and no other", json)
    same = f"as recorded, within {found.greatest:.1g} of the range of commands"
    say(f"  policy    {found.policy or (same if found.compared else 'it proposed nothing in these steps')}", json)
    upto = "" if found.gate_compared == found.steps else f" in {found.gate_compared} steps, up to the first missing one"
    say(f"  gate      {found.gate or f'every decision and every sent command as recorded{upto}'}", json)
    if found.first_outside:
        say(f"  ranges    first exceeded at {found.first_outside}", json)
        for name, part in found.outside.items():
            say(f"            {name:<26}{part:.1%} of the steps outside", json)
    else:
        say("  ranges    every signal within the range seen in training", json)
    for fault in found.faults:
        say(f"  fault     {fault}", json)
    if plot is not None:
        from robo_rl.deploy.robot.logs.replay import plot as draw

        draw(log, plot)
        say(f"  {plot}", json)
    give({"log": str(log), "file": str(file), **as_dict(found)}, json)
    differs = found.policy is not None or found.gate is not None
    return 1 if differs or not found.compared else 0
