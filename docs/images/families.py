"""Make docs/images/families.webp: a policy of the zoo for each family of robots, in its task.

python docs/images/families.py
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image, ImageDraw, ImageFont

SHOWN = (  # policy, what it does, seed, and more of play
    ("quadrotor-track", "follow a trajectory", 1, ()),
    ("go2-rough", "climb", 1, ("--fixed", "ground/kind", "0", "ground/difficulty", "0.75", "initial/place", "0",
                               "initial/yaw", "0", "command/x", "0.6", "command/y", "0", "command/yaw", "0")),
    ("arm-place", "pick and place", 1, ()),
    ("mobile-place", "drive there and pick", 1, ()),
    ("car-race", "race by lidar", 1, ()),
    ("car-traffic", "drive in traffic", 1, ()),
    ("diff-nav", "cross unknown rooms", 1, ()),
    ("go2-recover", "get up", 3, ("--fixed", "initial/tilt", "1")),
)  # fmt: skip
COLUMNS, TILE = 4, (240, 160)
SECONDS, RATE = 4, 8  # s, frames per second


def frames(
    policy: str, seed: int, words: tuple[str, ...], seconds: float, rate: int, size: tuple[int, int]
) -> list[np.ndarray]:
    """(height, width, 3) each, of one episode, ``rate`` in a second; ``size``: width and height, both even, px."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "film.mp4"
        given = ["--seed", str(seed), "--seconds", str(seconds), "--fps", str(rate), "--size", *map(str, size)]
        subprocess.run(
            ["robo-rl", "play", f"zoo:{policy}", "--video", str(file), "--episodes", "1", *given, *words], check=True
        )
        read = imageio_ffmpeg.read_frames(str(file))
        next(read)
        return [np.frombuffer(frame, np.uint8).reshape(size[1], size[0], 3) for frame in read]


def main() -> None:
    """Films side by side, each with a line of what is done; one that ends sooner rests at its end."""
    twice = (2 * TILE[0], 2 * TILE[1])  # as large as they are shown
    films = [frames(policy, seed, words, SECONDS, RATE, twice) for policy, _, seed, words in SHOWN]
    font, pictures = ImageFont.load_default(13), []
    for moment in range(SECONDS * RATE):
        whole = Image.new("RGB", (COLUMNS * TILE[0], len(SHOWN) // COLUMNS * TILE[1]))
        for k, film in enumerate(films):
            tile = Image.fromarray(film[min(moment, len(film) - 1)]).resize(TILE, Image.Resampling.LANCZOS)
            ImageDraw.Draw(tile).text((8, TILE[1] - 20), SHOWN[k][1], (40, 46, 54), font)
            whole.paste(tile, (k % COLUMNS * TILE[0], k // COLUMNS * TILE[1]))
        pictures.append(whole)
    file = Path(__file__).with_name("families.webp")
    pictures[0].save(
        file, save_all=True, append_images=pictures[1:], duration=1000 // RATE, loop=0, quality=50, method=6
    )


if __name__ == "__main__":
    main()
