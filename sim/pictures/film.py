"""Films of recorded motion, in real time or, of what takes less than a quarter of a second, slower, as .mp4 or .gif."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robo_rl.sim.drawing import Motion, Trail
from robo_rl.sim.pictures.camera import JUMP, Scene, arrange, distance_of, followed, whole
from robo_rl.sim.pictures.stage import Stage

TRAIL_STEP = 0.02  # s
BRIEF, STRETCHED = 0.25, 4.0
"""s: a motion that is shorter is shown in slow motion, and how long that takes."""
GIF_COLOURS = 128
INK, PAPER = (60, 66, 74), (236, 239, 243)
"""Of captions."""


def film(
    file: Path,
    motion: Motion,
    caption: str = "",
    size: tuple[int, int] = (640, 480),
    fps: int = 30,
    progress: Callable[[int], None] = lambda done: None,
    begin: float = 0.0,
) -> int:
    """Write an .mp4 or .gif of a motion in real time, or slower where it is brief; returns the number of frames.

    ``size`` is (width, height) in pixels, both even. ``progress`` is called with the number of frames done. ``begin``:
    the time (s) that the first one shows.
    """
    require_film(file, size, fps)
    pace = pace_of(motion)
    count = int(len(motion) * motion.period / pace * fps)
    steps = [min(round(k * pace / (fps * motion.period)), len(motion) - 1) for k in range(count)]
    digits, slow = (4, f", {1 / pace:.0f} times slower") if pace < 1.0 else (2, "")
    scene = arrange(motion)
    draw = _following if scene.follow else _standing

    def frames() -> Iterator[np.ndarray]:
        for k, pixels in enumerate(draw(motion, scene, size, steps)):
            yield captioned(pixels, f"{caption}   t = {begin + steps[k] * motion.period:.{digits}f} s{slow}".strip())
            progress(k + 1)

    (_write_mp4 if file.suffix == ".mp4" else _write_gif)(file, frames(), size, fps)
    return count


def pace_of(motion: Motion) -> float:
    """Of real time, in which a film shows a motion: 1, or less where it is brief."""
    seconds = len(motion) * motion.period
    return seconds / STRETCHED if seconds < BRIEF else 1.0


def require_film(file: Path, size: tuple[int, int], fps: int) -> None:
    """Refuse what can't be written."""
    if file.suffix not in (".mp4", ".gif"):
        raise ValueError(f"video file is '{file}'; expected a name that ends in .mp4 or .gif")
    if not 1 <= fps <= 100:
        raise ValueError(f"frames per second are {fps}; expected 1 to 100")
    if min(size) < 32 or size[0] % 2 or size[1] % 2:
        raise ValueError(f"video size is {size}; expected even numbers of pixels, at least 32")


def _standing(motion: Motion, scene: Scene, size: tuple[int, int], steps: list[int]) -> Iterator[np.ndarray]:
    """All robots in one picture, by a camera that stands still."""
    at, distance, azimuth, elevation = whole(motion, scene, size)
    with Stage(motion.model, motion.robots, size, distance / 3, scene.offsets, scene.floor) as stage:
        stage.look(at, distance, azimuth, elevation)
        for now in steps:
            yield picture(stage, motion, now, scene.size)


def _following(motion: Motion, scene: Scene, size: tuple[int, int], steps: list[int]) -> Iterator[np.ndarray]:
    """A picture per robot, side by side, by cameras that follow."""
    columns = math.ceil(math.sqrt(motion.robots))
    rows = math.ceil(motion.robots / columns)
    tile = (size[0] // columns, size[1] // rows)
    distance = distance_of(motion, tile)
    middles = followed(motion, scene, distance)
    single = [motion.part(robots=slice(i, i + 1)) for i in range(motion.robots)]
    with Stage(motion.model, 1, tile, distance / 3) as stage:
        for now in steps:
            whole_picture = np.full((size[1], size[0], 3), 255, np.uint8)
            for i, one in enumerate(single):
                stage.look(middles[now, i], distance, scene.azimuth[i], scene.elevation)
                top, left = i // columns * tile[1], i % columns * tile[0]
                whole_picture[top : top + tile[1], left : left + tile[0]] = picture(stage, one, now, scene.size)
            yield whole_picture


def picture(stage: Stage, motion: Motion, now: int, size: float) -> np.ndarray:
    """Pixels (height, width, 3) of all robots of a ``size`` (m) at a step, with their markers."""
    stage.place(motion.poses[now])
    stage.begin()
    every = round(TRAIL_STEP / motion.period) or 1
    for marker, still in zip(motion.markers, motion.moment(now), strict=True):
        for robot in range(motion.robots):
            if not isinstance(marker, Trail):
                stage.mark(still, robot)
            elif marker.seconds is None:
                stage.trail(marker.position[::every, robot] + stage.offsets[robot], marker.color)
            else:
                first = max(0, now - round(marker.seconds / motion.period))
                points = since_start(marker.position[first : now + 1 : every, robot], JUMP * size)
                stage.trail(points + stage.offsets[robot], marker.color, fading=True)
    return stage.finish()


def since_start(points: np.ndarray, jump: float) -> np.ndarray:
    """The points (k, 3) since the last step of more than ``jump`` (m), at which a robot began again."""
    jumps = np.flatnonzero(np.linalg.norm(np.diff(points, axis=0), axis=-1) > jump)
    return points[jumps[-1] + 1 :] if len(jumps) else points


def captioned(pixels: np.ndarray, text: str) -> np.ndarray:
    """Pixels with a line of text at the top, with a light rim so that it is read before a dark robot, too."""
    image = Image.fromarray(pixels)
    height = max(11, pixels.shape[0] // 30)
    place, font = (height, height * 0.8), ImageFont.load_default(height)
    ImageDraw.Draw(image).text(place, text, INK, font, stroke_width=2, stroke_fill=PAPER)
    return np.asarray(image)


def _write_mp4(file: Path, frames: Iterator[np.ndarray], size: tuple[int, int], fps: int) -> None:
    options = ["-crf", "25", "-preset", "medium", "-movflags", "+faststart"]
    writer = imageio_ffmpeg.write_frames(
        str(file), size, fps=fps, codec="libx264", quality=None, macro_block_size=2, output_params=options
    )
    writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()


def _write_gif(file: Path, frames: Iterator[np.ndarray], size: tuple[int, int], fps: int) -> None:
    images = [Image.fromarray(frame) for frame in frames]
    palette = _palette(images[:: max(1, len(images) // 8)])
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    flat[0].save(file, save_all=True, append_images=flat[1:], duration=round(1000 / fps), loop=0, optimize=True)


def _palette(images: list[Image.Image]) -> Image.Image:
    """A palette for which rare colours, those of small robots, count as much as common ones."""
    pixels = np.concatenate([np.asarray(image).reshape(-1, 3) for image in images])
    _, rare = np.unique(pixels >> 3, axis=0, return_index=True)
    common = np.linspace(0, len(pixels) - 1, len(rare)).astype(int)
    return Image.fromarray(pixels[np.concatenate([rare, common])][None]).quantize(GIF_COLOURS)
