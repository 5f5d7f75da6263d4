"""robo-rl verify."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.console import give, say

if TYPE_CHECKING:
    from robo_rl.deploy.build.examination import GraphCheck, Search


def main(
    file: Annotated[Path, tyro.conf.Positional],
    episodes: int = 1000,
    seed: int = 1,
    min_success: float | None = None,
    robot: str | None = None,
    task: str | None = None,
    foreign: bool = False,
    json: bool = False,
) -> int:
    """Check that a policy file reproduces the trained policy; exit with 1 if any check fails.

    Checks the digest, the golden vectors, that onnxruntime and torch agree at every step of closed-loop episodes, the
    success rate, that the graph is the one which its task and network give, and that nothing unexpected happens within
    the signals' limits: their ranges are searched for jumps, differences from torch, and parts of the graph that stay
    inactive. With --json: passed, max_abs_error (torch against onnxruntime: commands in units of their range, and
    memory), steps, golden_error, graph, search, failures, and what 'evaluate' gives.

    Args:
        file: A bundle (*.onnx).
        episodes: Number of episodes.
        seed: Random seed of the episodes.
        min_success: Minimum success rate; by default that which the task expects of a trained policy.
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        task: The task, if it is defined in your own file: FILE.py:CLASS; 'inside': the one that the file brings.
        foreign: The graph is not an export of robo-rl: run and search it, without a comparison with torch.
        json: Print one JSON object on the last line of stdout.
    """
    if episodes < 1:
        raise ValueError(f"--episodes is {episodes}; expected at least 1")
    from robo_rl.deploy.build.verify import verify
    from robo_rl.evaluate.evaluation import outcome

    found = verify(file, episodes, seed, min_success, robot, task, foreign)
    graph, search = found.graph, found.search
    say(
        f"{file}\n"
        f"  digest right, graph matches contract\n"
        f"  graph             {_compared(graph)}; structure {graph.structure_digest[:12]}…, weights "
        f"{graph.weights_digest[:12]}…\n"
        f"  operators         {_operators(graph)}\n"
        f"  golden vectors    off by {found.golden_error:.1g}\n"
        f"  {_parity(found.max_abs_error, found.steps)}\n"
        f"  searched          {search.rows:,} times within the signals' limits: {_searched(search)}\n"
        f"  {outcome(found.task, found.flights, seed)}",
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
        "graph": dataclasses.asdict(graph),
        "search": dataclasses.asdict(search),
        "failures": found.failures,
        **found.flights,
    }
    give(result, json)
    return 0 if found.passed else 1


def _compared(graph: GraphCheck) -> str:
    if graph.same is None:
        return "not ours, compared with nothing"
    return "what its task and network give" if graph.same else "not what its task and network give"


def _operators(graph: GraphCheck) -> str:
    if graph.foreign_operators:
        return f"the policy has no use for {', '.join(graph.foreign_operators)}"
    return f"{len(graph.operators)} kinds" + (", all the policy's own" if graph.same is not None else "")


def _parity(error: float | None, steps: int) -> str:
    if error is None:
        return f"there is no torch graph to compare {steps:,} closed-loop steps with"
    return f"torch and onnxruntime differ by at most {error:.1g} over {steps:,} closed-loop steps"


def _searched(search: Search) -> str:
    told = [] if search.torch_error is None else [f"torch differs by {search.torch_error:.1g}"]
    told += [
        f"commands change by {search.jump:.1%} across 1e-4 of a range",
        f"all are at their limits in {search.saturated:.1%} (in episodes {search.saturated_in_flight:.1%})",
        f"{len(search.resting) or 'no'} suspicious parts",
    ]
    return ", ".join(told)
