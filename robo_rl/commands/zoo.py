"""robo-rl zoo."""

from __future__ import annotations

import json as json_text

from robo_rl.console import give, say


def main(json: bool = False) -> int:
    """List the trained policies that come with robo-rl; zoo:NAME stands for a policy file everywhere.

    With --json: policies, a list of name, file, report (a page for a browser), command, digest, reported_digest
    (of the file that the report was made from, in the format of that time), evaluation (what 'evaluate' gives).

    Args:
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl import zoo
    from robo_rl.evaluation import shown
    from sim.tasks.loading import load_task

    policies = []
    for name in zoo.names():
        about = json_text.loads((zoo.FOLDER / f"{name}.json").read_text())
        told = about["evaluation"]
        errors = shown(load_task(told["task"]).measures, told)
        say(f"  zoo:{name:<18} {told['success']:.1%} of {told['episodes']} episodes succeed, {errors}", json)
        file, report = (str(zoo.FOLDER / f"{name}.{kind}") for kind in ("onnx", "html"))
        say(f"  {'':<22} {about['command']}", json)
        say(f"  {'':<22} {report}", json)
        policies.append({"name": f"{zoo.PREFIX}{name}", "file": file, "report": report, **about})
    if policies:
        say(f"Next:  robo-rl play {policies[0]['name']}", json)
    give({"policies": policies}, json)
    return 0
