"""How long a decision of policy_node takes on one core, beside the simulated robot, and whether a replay repeats it.

    python benchmarks/ros_decision.py zoo:diff-nav [SECONDS]

The node and all its threads run on one core, the simulated robot on the others. A decision is the time from complete
signals to the policy's commands; from the node's step to the command that has left is longer by the gate, the record
and the message. The recorded signals are then given to the same policy again: commands and memory must be equal bit by
bit.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from results import words, write
from ros_loop import Loop

from robo_rl.deploy.robot.logs.replay import replay
from robo_rl.zoo import located

SECONDS = 60.0


def main() -> None:
    given = words(__doc__ or "", 2)
    if not given:
        sys.exit("ros_decision.py: expected a policy's file")
    bundle, seconds = located(given[0]).resolve(), float(given[1]) if len(given) > 1 else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(bundle, Path(folder), None)
        pin(loop.processes["policy"].pid)
        with loop:
            told: dict[str, str] = {}
            listen(loop.operator.node, told)
            loop.take_off()
            pin(loop.processes["policy"].pid)
            loop.fly(seconds)
        log = loop.log()
        times = 1e3 * np.array([step.gate["inference"] for step in log.steps if step.proposed is not None])
        again = replay(log, bundle)
    found = {f"p{q:g}_ms": round(float(np.quantile(times, q / 100)), 3) for q in (50, 90, 99, 100)}
    print(f"{len(times)} decisions", found, told["step to command p99 ms"], again.policy, again.gate, sep="\n")
    write(
        "ros_decision",
        {
            "bundle": bundle.name,
            "decisions": len(times),
            "inference": found,
            "step_to_command_p99_ms": float(told["step to command p99 ms"]),
            "replayed": again.compared,
            "replay_is_equal": again.policy is None and again.gate is None,
        },
    )


def pin(process: int) -> None:
    """Let all threads of a process run on the first core alone."""
    first = min(os.sched_getaffinity(0))
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {first})


def listen(node: Any, told: dict[str, str]) -> None:
    """Keep the last figures of the policy's node in ``told``."""
    from diagnostic_msgs.msg import DiagnosticArray

    def heard(message: Any) -> None:
        for status in message.status:
            figures = {pair.key: pair.value for pair in status.values}
            if "step to command p99 ms" in figures:
                told.update(figures)

    node.create_subscription(DiagnosticArray, "/diagnostics", heard, 10)


if __name__ == "__main__":
    main()
