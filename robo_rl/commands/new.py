"""robo-rl new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say
from robo_rl.files.escaping import shell_word


def main(folder: Annotated[Path, tyro.conf.Positional], like: str = "crazyflie", json: bool = False) -> int:
    """Make a project for a robot of your own: card, task, test and README.

    It works from the start, with the figures of an included robot, which you replace one by one. With --json: folder,
    files, task (for 'train').

    Args:
        folder: The new folder; its name is the robot's.
        like: The included robot to begin with: its kind, figures and model.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.commands.project import write_project

    files = write_project(folder, like)
    for path in files:
        say(f"  {path}", json)
    (task,) = [path for path in files if path.name == f"{folder.name}_task.py"]
    named = f"{task}:{class_of(task)}"
    say(f"Next:  robo-rl train {shell_word(named)}      pytest {shell_word(folder)}", json)
    give({"folder": str(folder), "files": [str(path) for path in files], "task": named}, json)
    return 0


def class_of(task: Path) -> str:
    """The name of the class in a task's file."""
    import re

    (found,) = re.findall(r"^class (\w+)", task.read_text(), re.M)
    return found
