"""robo-rl why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say, say_next
from robo_rl.files.escaping import shell_word


def main(run: Annotated[Path, tyro.conf.Positional], json: bool = False) -> int:
    """Say why a training does not learn: what is conspicuous in its metrics and in what its newest policy does.

    Looks at reward terms, ends of episodes, commands, observations and the algorithm, also while the training goes on.
    Each sentence has the figure, and what to try. With --json: run, part (of the updates that are done), findings, a
    list of check, sentence, suggestion.

    Args:
        run: The run's folder.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.diagnosis.examine import examine
    from robo_rl.learn.runs.folder import Run

    opened = Run.open(run)
    part, findings = examine(opened)
    task = opened.task()
    say(f"{opened.folder.name}: {task.name} by {opened.algorithm}, {part:.0%} of the updates", json)
    for number, one in enumerate(findings, 1):
        say(f"{number:>3}. {one.sentence[0].upper()}{one.sentence[1:]}.\n     Try: {one.suggestion}.", json)
    if not findings:
        say("  Nothing conspicuous: rewards, observations, commands and the algorithm's metrics are as usual.", json)
    say_next([f"robo-rl play {shell_word(run)}"], json)
    told = [{"check": x.check, "sentence": x.sentence, "suggestion": x.suggestion} for x in findings]
    give({"run": str(run), "part": part, "findings": told}, json)
    return 0
