"""Robots as their cards describe them, at rest, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sim.pictures.film import captioned
from sim.pictures.scene import Scene
from sim.robots import Card as RobotCard
from sim.robots.legged import LeggedCard

COLUMNS = 3


def draw_portraits(file: Path, cards: Sequence[RobotCard], size: tuple[int, int] = (420, 320)) -> None:
    """Write a .png with one picture of ``size`` (width, height) in pixels per robot. Not to scale."""
    if file.suffix != ".png":
        raise ValueError(f"picture file is '{file}'; expected a name that ends in .png")
    pictures = [captioned(portrait(card, size), f"{card.name}: {card.title}") for card in cards]
    columns = min(COLUMNS, len(pictures))
    empty = np.full_like(pictures[0], 255)
    pictures += [empty] * (-len(pictures) % columns)
    rows = [np.concatenate(pictures[i : i + columns], 1) for i in range(0, len(pictures), columns)]
    Image.fromarray(np.concatenate(rows)).save(file)


def portrait(card: Any, size: tuple[int, int]) -> np.ndarray:
    """Pixels (height, width, 3), uint8."""
    if isinstance(card, LeggedCard):
        return _standing(card, size)
    reach = card.arm + card.propeller_radius
    with Scene(card, 1, size, floor=-0.5 * reach, extent=4 * reach) as scene:
        scene.place(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), np.full((1, len(card.rotors)), 0.4))
        scene.look(np.zeros(3), 5.5 * reach, 140, -28)
        return scene.draw([], [], np.zeros((0, 3)))


def _standing(card: LeggedCard, size: tuple[int, int]) -> np.ndarray:
    from sim.pictures.walking import Stage
    from sim.plants.rigid import Physics, assemble, standing_height

    height = standing_height(assemble(card, Physics()), card)
    values = {
        "position": (0.0, 0.0, height),
        "orientation": (0.0, 0.0, 0.0, 1.0),
        "joint_position": tuple(joint.stand for joint in card.joints),
        "linear_velocity": (0.0, 0.0, 0.0),
        "linear_velocity_command": (0.0, 0.0),
    }
    with Stage(card, size) as stage:
        stage.place({name: np.array([[value]]) for name, value in values.items()}, 0, 0)
        return stage.picture(stage.middle)
