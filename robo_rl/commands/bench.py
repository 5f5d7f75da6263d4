"""robo-rl bench."""

from __future__ import annotations

from typing import Any

from robo_rl.console import give, say


def main(task: str = "quadrotor-hover", robot: str | None = None, device: str = "cpu", json: bool = False) -> int:
    """Measure how fast this machine simulates, beside a peer if one is installed.

    The peer is rl_tools' simulator of the same vehicle: pip install 'robo-rl[bench]', which compiles for a quarter
    of an hour. With --json: plant_steps_per_second, environment_steps_per_second (with sensors, reward and resets),
    l2f_steps_per_second and plant_over_l2f (null without l2f), machine.

    Args:
        task: The task.
        robot: Another robot than the task's own.
        device: cpu or cuda.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.benchmark import env_stepper, l2f_stepper, machine, plant_stepper, rates
    from sim.tasks import load_task

    loaded = load_task(task, robot)
    sides = {"plant": plant_stepper(loaded, device), "environment": env_stepper(loaded, device)}
    peer = l2f_stepper()
    if peer is not None:
        sides["l2f"] = peer
    found = rates(sides)
    l2f = found.get("l2f")
    here = machine()
    say(f"{here['processor']}, {here['cores']} cores, torch {here['torch']}, {device}", json)
    say(f"  plant alone        {found['plant'] / 1e6:8.1f} million control steps/s", json)
    say(f"  whole environment  {found['environment'] / 1e6:8.1f} million control steps/s", json)
    if l2f is None:
        say("  l2f                not installed (pip install 'robo-rl[bench]')", json)
    else:
        ratio = found["plant"] / l2f
        say(f"  l2f vector8192     {l2f / 1e6:8.1f} million control steps/s; ours over its: {ratio:.1f}", json)
    result: dict[str, Any] = {
        "task": task,
        "robot": loaded.spec.robot.name,
        "device": device,
        "plant_steps_per_second": found["plant"],
        "environment_steps_per_second": found["environment"],
        "l2f_steps_per_second": l2f,
        "plant_over_l2f": None if l2f is None else found["plant"] / l2f,
        "machine": here,
    }
    give(result, json)
    return 0
