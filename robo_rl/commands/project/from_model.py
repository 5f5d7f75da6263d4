"""A robot file (card.toml) for a maker's model, for ``robo-rl new NAME --urdf FILE``."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.commands.project import NAME
from robo_rl.sim.robots import load_robot, robot_names
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.model_copy import copy_model
from robo_rl.sim.robots.proposal import BOX, Proposal, propose
from robo_rl.sim.tasks.arm.workspace import workspace

BOXES = (6.0, 5.0, 4.0, 3.0, 2.0, 1.5)
"""Sizes of a workspace that are tried, over that of the proposal."""
REACHED = "a box around the tool at home that it reaches, by inverse kinematics"


def _box(corners: list[list[float]]) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    (a, b, c), (d, e, f) = corners
    return (a, b, c), (d, e, f)


def _with_room(text: str, card: ArmCard) -> str:
    """The card with the largest box around its proposed workspace, not below the ground, that its tool reaches."""
    lower, upper = (np.array(corner) for corner in card.workspace)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    for times in BOXES:
        low, high = middle - times * half, middle + times * half
        low[2] = max(low[2], min(float(lower[2]), 0.0))
        corners = [[float(f"{x:.3g}") for x in corner] for corner in (low, high)]
        try:
            workspace(dataclasses.replace(card, workspace=_box(corners)))
        except CardError:
            continue
        for old, new in zip(card.workspace, corners, strict=True):
            text = text.replace(f"value = {list(old)}", f"value = {new}", 1)
        return text.replace(BOX, REACHED)
    return text


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
        robot: Any = load_robot(folder / "card.toml")
        if isinstance(robot, ArmCard):
            proposal = dataclasses.replace(proposal, text=_with_room(proposal.text, robot))
            (folder / "card.toml").write_text(proposal.text)
            robot = load_robot(folder / "card.toml")
        robot.figures()
    except CardError as error:
        shutil.rmtree(folder)
        raise CardError(str(error).replace(str(folder / model.name), str(model))) from None
    return proposal, sorted(path for path in folder.rglob("*") if path.is_file())
