"""Make the films of the docs, and place.png: policies of the zoo in their tasks, each drawn by ``robo-rl play``.

python docs/images/films.py [NAME …]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from families import frames
from PIL import Image

RATE, SIZE = 8, (480, 320)  # frames per second, and pixels of a film
STAIRS = ("--fixed", "ground/kind", "0", "ground/difficulty", "0.75", "initial/place", "0", "initial/yaw", "0",
          "command/x", "0.6", "command/y", "0", "command/yaw", "0")  # fmt: skip
FILMS = {  # file: policy, seed, seconds, and more of play
    "hand": ("arm-place", 1, 4.0, ()),
    "peg": ("arm-insert", 1, 3.0, ()),
    "fetch": ("mobile-place", 0, 9.0, ()),
    "rooms": ("diff-nav", 3, 7.0, ()),
    "people": ("diff-follow", 1, 5.0, ()),
    "race": ("car-race", 1, 6.0, ()),
    "traffic": ("car-traffic", 1, 5.0, ()),
    "flight": ("quadrotor-track", 0, 5.0, ("--fixed", "initial/tilt", "0")),
    "climb": ("go2-rough", 1, 6.0, STAIRS),
}
PLACE, MOMENTS, PANEL = "hand", (0, 9, 14, 20, 24, 28), (300, 200)
"""The film whose frames place.png has, and which."""


def pictures(name: str) -> list[Image.Image]:
    """Of a film."""
    policy, seed, seconds, words = FILMS[name]
    return [Image.fromarray(frame) for frame in frames(policy, seed, words, seconds, RATE, SIZE)]


def main(names: list[str]) -> None:
    """Write the films of those names, or all."""
    here = Path(__file__).parent
    for name in names or FILMS:
        film = pictures(name)
        film[0].save(
            here / f"{name}.webp", save_all=True, append_images=film[1:], duration=1000 // RATE, loop=0, quality=40,
            method=6,
        )  # fmt: skip
        if name == PLACE:
            panels = [np.asarray(film[min(k, len(film) - 1)].resize(PANEL)) for k in MOMENTS]
            rows = [np.concatenate(panels[k : k + 3], 1) for k in (0, 3)]
            palette = Image.Quantize.MAXCOVERAGE  # which the small goal is in
            Image.fromarray(np.concatenate(rows)).quantize(256, palette).save(here / "place.png", optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
