"""robo-rl distill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro


def main(
    run: Annotated[Path, tyro.conf.Positional],
    updates: int = 4000,
    seed: int = 0,
    runs: Path = Path("runs"),
    episodes: int = 500,
    checkpoint_seconds: float = 5.0,
    json: bool = False,
) -> int:
    """Train a policy that uses the robot's sensors to imitate a teacher that also has privileged observations.

    The student acts in simulation and learns the teacher's commands. It has its own run, from which
    'robo-rl train --begin-from' can continue. Ctrl-C saves and stops; 'robo-rl resume RUN' continues. With --json:
    as 'train'.

    Args:
        run: The teacher: a run's folder of a task that has a student, like go2-rough-teacher.
        updates: Number of updates, each with 256 environments.
        seed: Random seed.
        runs: Folder in which the student's run is created.
        episodes: Number of held-out episodes of the student; 0 for none.
        checkpoint_seconds: Time (s) between checkpoints.
        json: Print one JSON object on the last line of stdout.
    """
    import dataclasses

    from robo_rl.commands.training.train import learn
    from robo_rl.learn.config import DistillConfig
    from robo_rl.learn.distributed import processes
    from robo_rl.learn.runs.folder import Run
    from robo_rl.sim.tasks.loading import load_task

    teacher = Run.open(run)
    taught = teacher.task().student
    if taught is None:
        raise ValueError(f"{run} is of task '{teacher.task_name}', which has no student: its policy needs no teacher")
    if teacher.hyperparameters.get("recurrent"):
        raise ValueError(f"{run} has a recurrent network; distillation is for policies without one")
    if processes.count() > 1:
        raise ValueError(f"there are {processes.count()} processes; distillation is for one")
    made = teacher.policy()[0].shape
    task = load_task(taught, teacher.robot_source)
    usual = {"hidden": made.hidden, "activation": made.activation, "normalize": made.normalize and not task.encoders}
    told = {**usual, **task.settings.get("distilled", {}), "updates": updates, "teacher": str(run.resolve())}
    chosen = dataclasses.asdict(DistillConfig(**told))
    student = Run.create(runs, taught, teacher.robot_source, "distilled", seed, chosen, teacher.ranges, teacher)
    return learn(student, "cpu", episodes, checkpoint_seconds, json, resumed=False)
