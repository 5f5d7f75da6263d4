"""Make docs/images/wrist.png: what the camera on the Panda's hand measures while a cube is grasped and carried.

python docs/images/wrist.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.arm.place import Place
from robo_rl.sim.tasks.arm.place_depth import NAME, PlaceDepth

MOMENTS = (0, 40, 70, 85, 100, 130, 160, 185)  # control steps
TIMES, GAP = 4, 8  # pixels of the picture for one, and between images
FAR = 0.45  # m, white; near is dark, and what is not known is orange
ORANGE = (230, 159, 0)


def main() -> None:
    """An episode of a hand that knows where the cube is."""
    task = PlaceDepth()
    env, images = VecEnv(task.beside(Place()), 1, seed=4, evaluation=True), []
    signals, memory = env.reset(), task.first_memory(1)
    for step in range(MOMENTS[-1] + 1):
        if step in MOMENTS:
            images.append(_picture(signals[NAME][0].numpy()))
        commands = task.command(task.imitated({}, signals, memory), memory)
        memory = task.remember(memory, signals, commands)
        signals = env.step(commands).signals
    rows = [np.concatenate(images[k : k + 4], 1) for k in (0, 4)]
    picture = Image.fromarray(np.concatenate(rows)[:-GAP, :-GAP]).quantize(128)
    picture.save(Path(__file__).with_name("wrist.png"), optimize=True)


def _picture(depth: np.ndarray) -> np.ndarray:
    """Larger, in gray, with a white rim to the right and below."""
    gray = np.clip(255 * depth / FAR, 0, 255).astype(np.uint8)
    colours = np.where(depth[..., None] > 0, gray[..., None], np.array(ORANGE, np.uint8)).astype(np.uint8)
    large = np.kron(colours, np.ones((TIMES, TIMES, 1), np.uint8))
    return np.pad(large, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
