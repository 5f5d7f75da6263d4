"""Robots as their cards describe them, at rest, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from robo_rl.sim.drawing import Motion, corners
from robo_rl.sim.pictures.camera import BESIDE, arrange, frame
from robo_rl.sim.pictures.film import captioned
from robo_rl.sim.pictures.stage import Stage
from robo_rl.sim.robots import Card

COLUMNS = 3
ELEVATION = -24.0  # degrees


def draw_portraits(file: Path, cards: Sequence[Card], size: tuple[int, int] = (420, 320)) -> None:
    """Write a .png with one picture of ``size`` (width, height) in pixels per robot. Not to scale."""
    if file.suffix != ".png":
        raise ValueError(f"picture file is '{file}'; expected a name that ends in .png")
    for card in cards:
        if not callable(getattr(card, "drawing", None)):
            raise ValueError(f"the card of '{card.name}' has no drawing(); docs/own-robot.md says what it returns")
    pictures = [captioned(portrait(card, size), f"{card.name}: {card.title}") for card in cards]
    columns = min(COLUMNS, len(pictures))
    empty = np.full_like(pictures[0], 255)
    pictures += [empty] * (-len(pictures) % columns)
    rows = [np.concatenate(pictures[i : i + columns], 1) for i in range(0, len(pictures), columns)]
    Image.fromarray(np.concatenate(rows)).save(file)


def portrait(card: Card, size: tuple[int, int]) -> np.ndarray:
    """Pixels (height, width, 3), uint8."""
    model, poses = card.drawing()
    scene = arrange(Motion(model, poses[None, None], (), 1.0))
    at, distance = frame(corners(model, poses), 0.15 * scene.size, size, BESIDE, ELEVATION)
    with Stage(model, 1, size, distance / 3, floor=scene.floor) as stage:
        stage.place(poses[None])
        stage.look(at, distance, BESIDE + scene.heading[0] + 90.0 * (scene.floor is not None), ELEVATION)
        return stage.marked((), ())
