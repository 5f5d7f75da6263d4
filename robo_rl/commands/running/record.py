"""robo-rl record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import Progress, give, require_place, say

CALM = (
    "bias/joint_position", "bias/angular_velocity", "push/x", "push/y", "delay",
    "initial/joint_position", "initial/linear_velocity", "initial/angular_velocity",
)  # fmt: skip


def main(
    file: Annotated[Path, tyro.conf.Positional],
    out: Path = Path("session.mcap"),
    seconds: float = 60.0,
    seed: int = 0,
    fixed: dict[str, float] = {},  # noqa: B006 (never changed)
    new_goal_every: float | None = None,
    robot: str | None = None,
    task: str | None = None,
    json: bool = False,
) -> int:
    """Record a simulated robot running a policy, in the format in which the policy node records a real one.

    The robot starts at rest, and success ends nothing. Pushes, sensor bias and sensor latency are zero where the task
    has ranges of them; everything else is drawn from the task's ranges, sensor noise included. The drawn values are
    printed and are not part of the recording. Exits with 1 if the robot fell. With --json: file, seconds, fell, drawn.

    Args:
        file: A bundle (*.onnx).
        out: The recording to write (*.mcap); it must not exist.
        seconds: Length in simulated time.
        seed: Random seed of the draws.
        fixed: Ranges of the task set to one value, as NAME VALUE pairs: --fixed payload 2.5 joint_friction 1.6.
        new_goal_every: Draw a new goal so often (s), such as an arm's set-point: so that the robot keeps moving.
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        task: The task, if it is defined in your own file: FILE.py:CLASS; 'inside': the one that the file brings.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.build.verify import task_of
    from robo_rl.deploy.emulate.simulated import record
    from robo_rl.deploy.robot.bundle import Bundle

    if not 1.0 <= seconds <= 3600:
        raise ValueError(f"--seconds is {seconds:g}; expected 1 to 3600")
    require_place(out, "--out", ".mcap")
    if out.exists():
        raise ValueError(f"--out is {out}, which exists; expected the name of a new file")
    bundle = Bundle.read(file)
    known = task_of(bundle, robot, task)
    calm = dict.fromkeys(CALM, 0.0)
    held = {name: value for name, value in calm.items() if name in known.spec.ranges} | fixed
    with Progress("recording", round(seconds / known.spec.control_period)) as progress:
        drawn, fell = record(known, bundle, out, seconds, seed, held, progress.update, new_goal_every)
    told = ", ".join(f"{name} {value:.4g}" for name, value in drawn.items() if "/" not in name)
    say(f"{out}: {out.stat().st_size:,} bytes{', ends with a fall' if fell else ''}\n  drawn: {told}", json)
    give({"file": str(out), "seconds": seconds, "fell": fell, "drawn": drawn}, json)
    return 1 if fell else 0
