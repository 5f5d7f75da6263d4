"""robo-rl distill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say


def main(
    run: Annotated[Path, tyro.conf.Positional],
    updates: int = 4000,
    seed: int = 0,
    out: Path | None = None,
    episodes: int = 500,
    json: bool = False,
) -> int:
    """Teach a policy that sees what a robot measures to do what a teacher does, who sees more.

    The student walks in simulation and learns what the teacher would have commanded. It is a policy file like any
    other. With --json: file, task, error (root mean square of the difference in commands, in units of their range),
    environment_steps, and what 'evaluate' gives.

    Args:
        run: The teacher: a run's folder of a task that has a student, like go2-rough-teacher.
        updates: Steps of learning, of 256 robots each.
        seed: Of all random draws.
        out: The file to write; by default student.onnx in the run's folder.
        episodes: Held-out walks of the student; 0 for none.
        json: Print one JSON object on the last line of stdout.
    """
    import dataclasses

    import torch

    from deploy.export import export
    from robo_rl.distill import Lessons, distill
    from robo_rl.evaluation import Conditions, GraphPilot, fly, shown
    from robo_rl.policy import PolicyGraph
    from robo_rl.runs import Run
    from robo_rl.warm_start import narrow

    if updates < 1:
        raise ValueError(f"updates is {updates}; expected at least one")
    opened = Run.open(run)
    taught = opened.task().student
    if taught is None:
        raise ValueError(f"{run} is of task '{opened.task_name}', which has no student: its policy needs no teacher")
    teacher, made = opened.policy()
    task = dataclasses.replace(opened, task_name=taught).task()  # for the same robot
    say(f"{opened.task_name} teaches {taught}", json)
    torch.manual_seed(seed)
    student = PolicyGraph(task, made.hidden, made.activation, made.normalize)
    narrow(student, teacher)
    lessons = Lessons(updates, environments=256, mixed=16, learning_rate=1e-3, seed=seed)
    distilled = distill(teacher, student, lessons)
    steps = made.environment_steps + distilled.environment_steps
    provenance = dataclasses.replace(made, algorithm="distilled", environment_steps=steps)
    bundle = export(student, provenance, out or run / "student.onnx")
    error = (sum(distilled.losses[-50:]) / len(distilled.losses[-50:])) ** 0.5
    say(f"{bundle.path}: commands differ from the teacher's by {error:.2%} of their range", json)
    result = {"file": str(bundle.path), "task": task.spec.name, "error": error, "environment_steps": steps}
    if episodes:
        walks = fly(task, GraphPilot(student), Conditions(episodes=episodes)).summary()
        result |= walks
        say(f"{walks['success']:.1%} of {episodes} held-out walks survive, {shown(task.measures, walks)}", json)
    say(f"Next:  robo-rl evaluate {bundle.path} --ground      robo-rl verify {bundle.path}", json)
    give(result, json)
    return 0
