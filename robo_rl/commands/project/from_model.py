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
from robo_rl.sim.robots.two_arms import TwoArmCard
from robo_rl.sim.tasks.arm.workspace import workspace
from robo_rl.sim.tasks.two_arms.apart import reason_against

BOXES = (6.0, 5.0, 4.0, 3.0, 2.0, 1.5)
"""Sizes of a workspace that are tried, over that of the proposal."""
REACHED = "a box around the tool at home that it reaches, by inverse kinematics"


def _box(corners: list[list[float]]) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    (a, b, c), (d, e, f) = corners
    return (a, b, c), (d, e, f)


def _with_room_for_two(text: str, card: TwoArmCard) -> str:
    """The same of two arms: the largest boxes, alike in size, in which the arms never meet."""
    for times in BOXES:
        arms, grown = {}, text
        for name, arm in card.arms.items():
            corners = _grown(arm, times)
            arms[name] = dataclasses.replace(arm, workspace=_box(corners))
            for old, new in zip(arm.workspace, corners, strict=True):
                grown = grown.replace(f"value = {list(old)}", f"value = {new}", 1)
        if reason_against(dataclasses.replace(card, arms=arms)) is None:
            return grown.replace(BOX, f"{REACHED}, out of the other arm's way")
    return text


def _grown(card: ArmCard, times: float) -> list[list[float]]:
    """m, corners of a box so many times as large around the same middle, not below the ground."""
    lower, upper = (np.array(corner) for corner in card.workspace)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    low, high = middle - times * half, middle + times * half
    low[2] = max(low[2], min(float(lower[2]), 0.0))
    return [[float(f"{x:.3g}") for x in corner] for corner in (low, high)]


def _with_room(text: str, card: ArmCard) -> str:
    """The card with the largest box around its proposed workspace, not below the ground, that its tool reaches."""
    for times in BOXES:
        corners = _grown(card, times)
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
        text = proposal.text
        if isinstance(robot, ArmCard):
            text = _with_room(text, robot)
        elif isinstance(robot, TwoArmCard):
            text = _with_room_for_two(text, robot)
        if text != proposal.text:
            proposal = dataclasses.replace(proposal, text=text)
            (folder / "card.toml").write_text(text)
            robot = load_robot(folder / "card.toml")
        robot.figures()
    except CardError as error:
        shutil.rmtree(folder)
        raise CardError(str(error).replace(str(folder / model.name), str(model))) from None
    return proposal, sorted(path for path in folder.rglob("*") if path.is_file())
