"""Films and strobe pictures of recorded flights.

A recording is what ``robo_rl.evaluation.fly`` keeps: ``position`` (steps, n, 3) m, ``orientation`` (steps, n, 4)
quaternion x, y, z, w, ``rotor_speed`` (steps, n, R) rad/s and ``position_setpoint`` (steps, n, 3) m, one row per
control period. Episodes that all happen at the same place are shown side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from sim.pictures.scene import Scene
from sim.robots.multirotor import MultirotorCard

Recording = Mapping[str, np.ndarray]

TRAIL_SECONDS = 0.8
TRAIL_STEP = 0.02  # s
JUMP = 0.3  # m between two points of a trail; a vehicle would have to fly at 15 m/s
BLADE_SLOWDOWN = 40  # blades at their true speed would only flicker
VIEW = 32.0  # degrees, the camera's vertical field of view
AZIMUTH, ELEVATION = 120.0, -20.0  # degrees, of the camera
GIF_COLOURS = 128


def film(
    file: Path,
    card: MultirotorCard,
    recording: Recording,
    period: float,
    caption: str = "",
    size: tuple[int, int] = (640, 480),
    fps: int = 30,
    progress: Callable[[int], None] = lambda done: None,
) -> int:
    """Write an .mp4 or .gif of a recording in real time; returns the number of frames.

    ``period`` is the control period in s. ``size`` is (width, height) in pixels, both even.
    """
    require_film(file, size, fps)
    count = int(len(recording["position"]) * period * fps)
    write_film(file, _frames(card, recording, period, caption, size, fps, count, progress), size, fps)
    return count


def require_film(file: Path, size: tuple[int, int], fps: int) -> None:
    """Refuse what can't be written."""
    if file.suffix not in (".mp4", ".gif"):
        raise ValueError(f"video file is '{file}'; expected a name that ends in .mp4 or .gif")
    if not 1 <= fps <= 100:
        raise ValueError(f"frames per second are {fps}; expected 1 to 100")
    if min(size) < 32 or size[0] % 2 or size[1] % 2:
        raise ValueError(f"video size is {size}; expected even numbers of pixels, at least 32")


def write_film(file: Path, frames: Iterator[np.ndarray], size: tuple[int, int], fps: int) -> None:
    """Write frames (height, width, 3) as .mp4 or .gif."""
    (_write_mp4 if file.suffix == ".mp4" else _write_gif)(file, frames, size, fps)


def strobe(
    file: Path,
    card: MultirotorCard,
    recording: Recording,
    period: float,
    instants: int = 9,
    seconds: float = 0.8,
    size: tuple[int, int] = (1200, 600),
) -> None:
    """Write a .png in which time runs from left to right: every flight at ``instants`` moments, side by side.

    Heights and attitudes are true, relative to the set-point; the way to the right is added.
    """
    steps = np.linspace(0, min(round(seconds / period), len(recording["position"]) - 1), instants).round().astype(int)
    flights = recording["position"].shape[1]
    pitch = 3.4 * card.arm
    fine = np.arange(steps[-1] + 1)
    lanes = 6.0 * card.arm * (np.arange(flights) - (flights - 1) / 2)

    def shown(chosen: np.ndarray) -> np.ndarray:
        """(k, flights, 3): where the vehicles are drawn."""
        error = recording["position"][chosen] - recording["position_setpoint"][chosen]
        way = pitch * (instants - 1) * (chosen / steps[-1] - 0.5)
        return np.stack(np.broadcast_arrays(way[:, None], lanes, error[..., 2]), -1)

    places, points = shown(steps).reshape(-1, 3), shown(fine)
    angle = np.cumsum(recording["rotor_speed"], 0)[steps] * (period / BLADE_SLOWDOWN)
    at, distance = frame(places, 1.8 * card.arm, size, 90, -24)
    with Scene(card, instants * flights, size, places[:, 2].min() - 3 * card.arm, distance / 3) as scene:
        scene.look(at, distance, 90, -24)
        orientation = recording["orientation"][steps]
        scene.place(places, orientation.reshape(-1, 4), angle.reshape(instants * flights, -1))
        trails = [since_start(points[::2, i]) for i in range(flights)]
        Image.fromarray(scene.draw(trails, [], np.empty((0, 3)))).save(file)


def _frames(
    card: MultirotorCard,
    recording: Recording,
    period: float,
    caption: str,
    size: tuple[int, int],
    fps: int,
    count: int,
    progress: Callable[[int], None],
) -> Iterator[np.ndarray]:
    """Pixels (height, width, 3) of every frame."""
    offset = spread(recording["position_setpoint"], card.arm)
    position, target = recording["position"] + offset, recording["position_setpoint"] + offset
    angle = np.cumsum(recording["rotor_speed"], 0) * (period / BLADE_SLOWDOWN)
    points = np.concatenate([position, target]).reshape(-1, 3)
    at, distance = frame(points, 2 * card.arm, size, AZIMUTH, ELEVATION)
    paths = [path[::4] for path in target.swapaxes(0, 1)] if moves(recording["position_setpoint"]) else []
    flights = position.shape[1]
    every, length = round(TRAIL_STEP / period) or 1, round(TRAIL_SECONDS / period)
    with Scene(card, flights, size, float(points[:, 2].min()) - 0.1, distance / 3) as scene:
        scene.look(at, distance, AZIMUTH, ELEVATION)
        for k in range(count):
            now = min(round(k / (fps * period)), len(position) - 1)
            scene.place(position[now], recording["orientation"][now], angle[now])
            trails = [since_start(position[max(0, now - length) : now + 1 : every, i]) for i in range(flights)]
            yield captioned(scene.draw(trails, paths, target[now]), f"{caption}   t = {now * period:.2f} s".strip())
            progress(k + 1)


def frame(
    points: np.ndarray, margin: float, size: tuple[int, int], azimuth: float, elevation: float
) -> tuple[np.ndarray, float]:
    """Where a camera must look, and from which distance (m), to see all of ``points`` (k, 3) and ``margin`` (m).

    Angles are MuJoCo's, in degrees: azimuth 90 looks along world y, elevation below 0 looks down.
    """
    turn, lift = math.radians(azimuth), math.radians(elevation)
    ahead = np.array([math.cos(lift) * math.cos(turn), math.cos(lift) * math.sin(turn), math.sin(lift)])
    right = np.array([math.sin(turn), -math.cos(turn), 0.0])
    axes = np.stack([right, np.cross(right, ahead), ahead])
    seen = points @ axes.T  # to the right, up, ahead
    middle = 0.5 * (seen.min(0) + seen.max(0))
    side, up, depth = (seen - middle).T
    slope = math.tan(math.radians(VIEW / 2))
    needed = np.maximum((np.abs(side) + margin) / (slope * size[0] / size[1]), (np.abs(up) + margin) / slope) - depth
    return middle @ axes, float(needed.max())


def moves(setpoint: np.ndarray) -> bool:
    """Whether set-points (steps, n, 3) move by more than a millimetre."""
    return bool(np.ptp(setpoint, axis=0).max() > 1e-3)


def since_start(points: np.ndarray) -> np.ndarray:
    """The points (k, 3) since the last jump, at which a flight failed and began again."""
    jumps = np.flatnonzero(np.linalg.norm(np.diff(points, axis=0), axis=-1) > JUMP)
    return points[jumps[-1] + 1 :] if len(jumps) else points


def spread(setpoint: np.ndarray, arm: float) -> np.ndarray:
    """Offsets (n, 3) in m that put flights with these set-points (steps, n, 3) side by side, in rows.

    Vehicles are ``arm`` (m) from centre to rotor.
    """
    n = setpoint.shape[1]
    columns = math.ceil(math.sqrt(n))
    reach = np.abs(setpoint).max((0, 1))[:2] + max(0.24, 2.8 * arm)
    index = np.arange(n)
    row, column = index // columns, index % columns
    rows = math.ceil(n / columns)
    x, y = (row - (rows - 1) / 2) * 2 * reach[0], (column - (columns - 1) / 2) * 2 * reach[1]
    return np.stack([x, y, 0 * x], -1)


def captioned(pixels: np.ndarray, text: str) -> np.ndarray:
    """Pixels with a line of text at the top."""
    image = Image.fromarray(pixels)
    height = max(11, pixels.shape[0] // 30)
    ImageDraw.Draw(image).text((height, height * 0.8), text, (60, 66, 74), ImageFont.load_default(height))
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
    """A palette for which rare colours, those of small vehicles, count as much as common ones."""
    pixels = np.concatenate([np.asarray(image).reshape(-1, 3) for image in images])
    _, rare = np.unique(pixels >> 3, axis=0, return_index=True)
    common = np.linspace(0, len(pixels) - 1, len(rare)).astype(int)
    return Image.fromarray(pixels[np.concatenate([rare, common])][None]).quantize(GIF_COLOURS)
