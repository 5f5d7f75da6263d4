"""robo-rl resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.console import give, say, say_next
from robo_rl.files.escaping import shell_word

if TYPE_CHECKING:
    from robo_rl.learn.runs.folder import Run


def words_of(run: Path, device: str, episodes: int, checkpoint_seconds: float, json: bool) -> list[str]:
    """This command's."""
    kept = ["--device", device, "--episodes", str(episodes), "--checkpoint-seconds", str(checkpoint_seconds)]
    return ["resume", str(run), *kept, *(["--json"] if json else [])]


def again_from(run: Run) -> str:
    """The command that begins a new training with the networks of a run that is finished."""
    algorithm = run.algorithm if run.algorithm != "distilled" else "ppo"
    robot = f" --robot {shell_word(run.robot_source)}" if run.robot_source else ""
    updates = f" --{algorithm}.updates {run.hyperparameters['updates']}" if "updates" in run.hyperparameters else ""
    begin = f"--begin-from {shell_word(run.folder)}"
    return f"robo-rl train {shell_word(run.task_source)}{robot} --algorithm {algorithm} {begin}{updates}"


def main(
    run: Annotated[Path, tyro.conf.Positional],
    device: str = "cpu",
    processes: int = 1,
    episodes: int = 500,
    checkpoint_seconds: float = 5.0,
    json: bool = False,
) -> int:
    """Continue a training from its newest checkpoint; from its beginning if it has none yet.

    On a CPU the result is bit for bit that of a training without the interruption, except that a distillation
    continues with new episodes. With --json: as 'train'; of a run that is finished what it gave, and finished: true.

    Args:
        run: The run's folder.
        device: cpu or cuda.
        processes: As many as before, of a training in several.
        episodes: Number of held-out episodes after training; 0 for none.
        checkpoint_seconds: Time (s) between checkpoints.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.commands.training.train import learn, require_device, require_plant, require_times
    from robo_rl.learn.distributed import launch
    from robo_rl.learn.distributed import processes as joined
    from robo_rl.learn.runs.checkpoint import CheckpointError, load
    from robo_rl.learn.runs.folder import Run

    require_times(episodes, checkpoint_seconds)
    opened = Run.open(run)
    require_device(device, opened.algorithm)
    if (done := opened.done()) is not None:
        opened.policy()  # what is damaged, or was changed, is refused
        word = shell_word(run)
        say(f"{run} is finished; there is nothing to resume", json)
        say_next([f"robo-rl evaluate {word}", f"robo-rl export {word} --out policy.onnx"], json)
        say(f"To train on from its networks:  {again_from(opened)}", json)
        give({**done, "finished": True}, json)
        return 0
    require_plant(opened.plant, opened.task_source, device)
    resumed = opened.checkpoint_file.exists()
    if not resumed and opened.begun_from and opened.algorithm != "distilled":
        raise CheckpointError(
            f"{run} was ended before its first checkpoint, and began from another run, which it does not hold; train "
            "again with --begin-from"
        )
    if resumed and load(opened.checkpoint_file)[1].get("finished"):
        say(f"{run} is trained; what is left is its evaluation", json)
    if launch.checked(processes) > 1:
        again = words_of(run, device, episodes, checkpoint_seconds, json)
        return launch.train(again, again, run, processes, json)
    return learn(opened, joined.join(device), episodes, checkpoint_seconds, json, resumed)
