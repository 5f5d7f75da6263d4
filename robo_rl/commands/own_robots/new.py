"""robo-rl new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say, say_next
from robo_rl.files.escaping import shell_word


def main(
    folder: Annotated[Path, tyro.conf.Positional], like: str = "crazyflie", urdf: Path | None = None,
    mjcf: Path | None = None, json: bool = False,
) -> int:  # fmt: skip
    """Make a project for a robot of your own: card, task, test and README; or the robot file of a maker's model.

    It works from the start, with the figures of an included robot, which you replace one by one. With --urdf or --mjcf
    the folder has a robot file (card.toml) for that model, and a copy of it: what the model does not say is guessed,
    and marked so. With --json: folder, files, task (for 'train'), and of a model kind and doubts instead of task.

    Args:
        folder: The new folder; its name is the robot's.
        like: The included robot to begin with: its kind, figures and model.
        urdf: A URDF of legs or of an arm.
        mjcf: An MJCF of the same.
        json: Print one JSON object on the last line of stdout.
    """
    if urdf is not None or mjcf is not None:
        return _from_model(folder, urdf, mjcf, json)
    from robo_rl.commands.project import write_project

    files = write_project(folder, like)
    for path in files:
        say(f"  {path}", json)
    (task,) = [path for path in files if path.name == f"{folder.name}_task.py"]
    named = f"{task}:{class_of(task)}"
    say_next([f"robo-rl train {shell_word(named)}", f"pytest {shell_word(folder)}"], json)
    give({"folder": str(folder), "files": [str(path) for path in files], "task": named}, json)
    return 0


def _from_model(folder: Path, urdf: Path | None, mjcf: Path | None, json: bool) -> int:
    from robo_rl.commands.project.from_model import write_card
    from robo_rl.sim.robots import load_robot
    from robo_rl.sim.tasks.beginning import beginning

    if urdf is not None and mjcf is not None:
        raise ValueError("--urdf and --mjcf are both given; expected one model")
    proposal, files = write_card(folder, urdf or mjcf or Path())
    card = folder / "card.toml"
    say(f'{card}: taken for {proposal.taken_for} (kind = "{proposal.kind}")', json)
    for doubt in proposal.doubts:
        say(f"  check {doubt}", json)
    shown, train = f"{shell_word(card)} --picture {shell_word(folder)}.png", beginning(load_robot(card)).task.name
    say('What is marked "guessed, check" in it is not in the model: replace it, with its source.', json)
    say_next([f"robo-rl robots {shown}", f"robo-rl train {train} --robot {shell_word(card)}"], json)
    found = {"folder": str(folder), "files": [str(path) for path in files]}
    give({**found, "kind": proposal.kind, "doubts": list(proposal.doubts)}, json)
    return 0


def class_of(task: Path) -> str:
    """The name of the class in a task's file."""
    import re

    (found,) = re.findall(r"^class (\w+)", task.read_text(), re.M)
    return found
