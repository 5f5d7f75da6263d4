"""robo-rl verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say


def main(
    file: Annotated[Path, tyro.conf.Positional],
    episodes: int = 1000,
    seed: int = 1,
    min_success: float | None = None,
    robot: str | None = None,
    task: str | None = None,
    json: bool = False,
) -> int:
    """Check that a policy file reproduces the trained policy; exit with 1 if any check fails.

    Checks the digest, the golden vectors, that onnxruntime and torch agree at every step of closed-loop episodes, and
    the success rate. With --json: passed, max_abs_error (torch against onnxruntime: commands in units of their range,
    and memory), steps, golden_error, failures, and what 'evaluate' gives.

    Args:
        file: A bundle (*.onnx).
        episodes: Number of episodes.
        seed: Random seed of the episodes.
        min_success: Minimum success rate; by default that which the task expects of a trained policy.
        robot: The card, for a robot that isn't included in robo-rl.
        task: The task, if it is defined in your own file: FILE.py:CLASS.
        json: Print one JSON object on the last line of stdout.
    """
    from deploy.verify import verify
    from robo_rl.evaluation import shown

    found = verify(file, episodes, seed, min_success, robot, task)
    say(
        f"{file}\n"
        f"  digest right, graph matches contract\n"
        f"  golden vectors    off by {found.golden_error:.1g}\n"
        f"  torch and onnxruntime differ by at most {found.max_abs_error:.1g} over {found.steps:,} closed-loop steps\n"
        f"  {found.flights['success']:.2%} of {episodes} episodes succeed, "
        f"{shown(found.measures, found.flights)}",
        json,
    )
    for failure in found.failures:
        say(f"  FAILED: {failure}", json)
    say("verified" if found.passed else "not verified", json)
    result = {
        "file": str(file),
        "passed": found.passed,
        "max_abs_error": found.max_abs_error,
        "steps": found.steps,
        "golden_error": found.golden_error,
        "failures": found.failures,
        **found.flights,
    }
    give(result, json)
    return 0 if found.passed else 1
