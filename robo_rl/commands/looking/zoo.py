"""robo-rl zoo."""

from __future__ import annotations

import json as json_text
import re
from collections.abc import Mapping
from typing import Any

from robo_rl import zoo
from robo_rl.console import give, say, say_next

JOINED = " &&\n" + 12 * " "
"""Between commands that a shell runs one after the other, each in a line of its own."""


def main(json: bool = False) -> int:
    """List the trained policies that come with robo-rl; zoo:NAME stands for a policy file everywhere.

    With --json: policies, a list of name, file, command, digest, evaluation (what 'evaluate' gives).

    Args:
        json: Print one JSON object on the last line of stdout.
    """
    policies = []
    for name in zoo.names():
        about = json_text.loads((zoo.FOLDER / f"{name}.json").read_text())
        told = about["evaluation"]
        say(f"{zoo.PREFIX}{name}", json)
        say("\n".join(f"    {reached}" for reached in [*errors(told), rate(told, name)]), json)
        say(f"    train   {about['command'].replace(' && ', JOINED)}", json)
        say(f"    report  robo-rl report {zoo.PREFIX}{name}", json)
        policies.append({"name": f"{zoo.PREFIX}{name}", "file": str(zoo.FOLDER / f"{name}.onnx"), **about})
    if policies:
        say_next([f"robo-rl play {policies[0]['name']}"], json)
    give({"policies": policies}, json)
    return 0


def rate(told: Mapping[str, Any], name: str) -> str:
    """Which part of the episodes succeeds, or does not fail, of a policy of a task that knows no success."""
    what = "without failure" if name in zoo.ENDLESS else "succeed"
    return f"{told['success']:.1%} of {told['episodes']:,} episodes {what}"


def errors(told: Mapping[str, Any]) -> list[str]:
    """The errors in a summary of 'evaluate', by their names alone: the task, which knows them, is made of torch."""
    found = []
    for key, value in told.items():
        if (match := re.fullmatch(r"(\w+)_(mean|rms)_(m|rad|m_s|rad_s)", key)) and value is not None:
            unit = match[3].replace("_", "/")
            number = f"{100 * value:.2f} cm" if unit == "m" else f"{value:.3f} {unit}"
            found.append(f"{match[1].replace('_', ' ')} {number}")
    return found
