"""A robot file (card.toml) for a maker's model, for ``robo-rl new NAME --urdf FILE``."""

from __future__ import annotations

import shutil
from pathlib import Path

from robo_rl.commands.project import NAME
from robo_rl.sim.robots import load_robot, robot_names
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.model_copy import copy_model
from robo_rl.sim.robots.proposal import Proposal, propose

EXAMPLES = {"legged": "go2-flat", "arm": "arm-reach"}
"""Tasks to begin with, by kind."""


def write_card(folder: Path, model: Path) -> tuple[Proposal, list[Path]]:
    """Write a card for ``model`` and copies of its files into the new ``folder``; the proposal, and the files' paths.

    ValueError for a name that is no identifier, a folder that is there, or a model of no kind that robo-rl knows.
    """
    name = folder.name
    if not NAME.fullmatch(name) or name in robot_names():
        raise ValueError(f"the name is '{name}'; expected small letters, digits and _, and none of {robot_names()}")
    if folder.exists():
        raise ValueError(f"{folder} exists; expected the name of a new folder")
    folder.mkdir(parents=True)
    try:
        proposal = propose(copy_model(model, folder), name.replace("_", " "))
        (folder / "card.toml").write_text(proposal.text)
        load_robot(folder / "card.toml").figures()
    except CardError as error:
        shutil.rmtree(folder)
        raise CardError(str(error).replace(str(folder / model.name), str(model))) from None
    return proposal, sorted(path for path in folder.rglob("*") if path.is_file())
