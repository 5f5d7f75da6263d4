"""A project of a user's own robot: its card, a task, a test, CI and a page with the commands, for ``robo-rl new``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import Template

from robo_rl.files.escaping import shell_word
from robo_rl.sim.robots import FOLDER, Card, load_robot, place_of, robot_names
from robo_rl.sim.tasks.beginning import beginning

TEMPLATES = Path(__file__).parent / "files"
PLACES = {"ci.yml": ".github/workflows/test.yml", "gitignore": ".gitignore"}
"""Of files that have to be called otherwise than their template."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)


def write_project(folder: Path, like: str) -> list[Path]:
    """Write the files of a robot that is called as ``folder``, with the figures of the robot ``like``; their paths.

    ValueError for names that are no identifiers, a folder that is there, or a robot that robo-rl does not include.
    """
    name = folder.name
    if not NAME.fullmatch(name) or name in robot_names():
        raise ValueError(f"the name is '{name}'; expected small letters, digits and _, and none of {robot_names()}")
    if folder.exists():
        raise ValueError(f"{folder} exists; expected the name of a new folder")
    if like not in robot_names():
        raise ValueError(f"--like is '{like}'; expected one of {robot_names()}")
    card: Card = load_robot(like)
    source = FOLDER / like / "card.toml"
    begun = beginning(card)
    task, verb = begun.task, begun.verb
    parts = [f"{name}.toml", *(place_of(path, source).as_posix() for path in card.files())]
    ending = "" if task.algorithms[0] == "apg" else f"-{task.algorithms[0]}"
    texts = {
        "name": name, "like": like, "title": name.replace("_", " "), "module": task.__module__, "base": task.__name__,
        "class_name": "".join(part.capitalize() for part in re.split("[_-]", f"{name}_{verb}")),
        "task": f"{name.replace('_', '-')}-{verb}", "verb": verb, "card_module": type(card).__module__,
        "card_class": type(card).__name__, "folder": shell_word(folder),
        "fixed": f", fixed={json.dumps(dict(begun.fixed))}" if begun.fixed else "",
        "run": f"{name.replace('_', '-')}-{verb}{ending}-seed0-1",
        "files": "".join(f'"{part}", ' for part in parts).strip(),
    }  # fmt: skip
    folder.mkdir(parents=True)
    text = source.read_text()
    figures = re.sub(r"^title = .*$", f'title = "{texts["title"]}"', text, count=1, flags=re.M)
    head = f"# {name}: these are the figures of {like}. Replace each, with its source (docs/own-robot.md).\n"
    (folder / f"{name}.toml").write_text(head + figures)
    for path in card.files():
        copy = folder / place_of(path, source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    for template in sorted(TEMPLATES.iterdir()):
        told = template.name.removesuffix(".txt").replace("NAME", name)
        made = folder / PLACES.get(told, told)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(Template(template.read_text()).substitute(texts))
    return sorted(folder.iterdir())
