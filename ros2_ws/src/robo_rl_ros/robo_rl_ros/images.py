"""Between sensor_msgs/Image and a contract's image: rows from top to bottom, whatever lies between them in memory.

Depth is 32FC1 in m or 16UC1 in mm, gray is mono8 (REP 118). An image that is a whole number of times larger in both
directions is made smaller: of every block of a depth image the known pixel nearest to its middle, of a gray one the
mean. Nothing of ROS is imported.

REP 118: NaN, or 0 mm, is a depth that is not known, plus infinity is too far, minus infinity too close. In a contract's
"depth with holes" what is not known or too close is 0; a contract's "depth" has no number for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robo_rl.contract import Image

MAX_PIXELS = 1 << 23
"""More in one message are not read, whatever they are."""
ENCODINGS: dict[str, dict[str, type[np.number]]] = {
    "depth": {"32FC1": np.float32, "16UC1": np.uint16},
    "depth with holes": {"32FC1": np.float32, "16UC1": np.uint16},
    "gray": {"mono8": np.uint8, "8UC1": np.uint8},
}
MILLIMETRE = 1e-3


class ImageError(ValueError):
    """An image must not be used. The sentence says what is wrong with it."""


def pixels_of(message: Any, layout: Image, shape: tuple[int, int]) -> np.ndarray:
    """(rows, columns) of the contract: depth in m, infinite as REP 118 has it, or gray from 0 to 1. ImageError if not.

    A pixel that is not known makes an image that must be "depth" one that can't be used: nothing is invented.
    """
    kinds = ENCODINGS[layout.encoding]
    if message.encoding not in kinds:
        raise ImageError(f"its encoding is '{message.encoding[:40]}'; expected one of {sorted(kinds)}")
    rows, columns = message.height, message.width
    factor = rows // shape[0]
    if not factor or (rows, columns) != (factor * shape[0], factor * shape[1]) or rows * columns > MAX_PIXELS:
        raise ImageError(
            f"it has {rows} x {columns} pixels; expected {shape[0]} x {shape[1]}, or a whole number of times as many "
            "in both directions"
        )
    values = _values(message, np.dtype(kinds[message.encoding])).astype(np.float64)
    blocks = values.reshape(shape[0], factor, shape[1], factor).swapaxes(1, 2).reshape(*shape, factor * factor)
    if layout.encoding == "gray":
        return blocks.mean(-1) / 255.0
    if message.encoding == "16UC1":
        blocks = np.where(blocks == 0, np.nan, MILLIMETRE * blocks)
    found = _nearest_known(blocks, factor)
    if layout.encoding == "depth with holes":
        return np.where(np.isnan(found) | np.isneginf(found), 0.0, found)
    holes = int(np.isnan(found).sum())
    if holes:
        raise ImageError(f"{holes} of {found.size} pixels are invalid; expected a depth for each: fill holes before")
    return found


def _values(message: Any, kind: np.dtype) -> np.ndarray:
    """(height, width) numbers, in this computer's order of bytes."""
    used, data = message.width * kind.itemsize, np.frombuffer(memoryview(message.data), np.uint8)
    if message.step < used or len(data) != message.step * message.height:
        raise ImageError(
            f"it has {len(data)} bytes in steps of {message.step}; expected {message.height} rows of at least {used}"
        )
    rows = np.ascontiguousarray(data.reshape(message.height, message.step)[:, :used])
    return rows.view(kind.newbyteorder(">" if message.is_bigendian else "<"))


def _nearest_known(blocks: np.ndarray, factor: int) -> np.ndarray:
    """(rows, columns): of each block (…, factor²) the pixel nearest to its middle that is not NaN."""
    across = np.arange(factor) - (factor - 1) / 2
    order = np.argsort((across[:, None] ** 2 + across**2).ravel(), kind="stable")
    found = blocks[..., order[0]].copy()
    for place in order[1:]:
        unknown = np.isnan(found)
        if not unknown.any():
            break
        found[unknown] = blocks[..., place][unknown]
    return found


def fill(message: Any, layout: Image, pixels: np.ndarray) -> None:
    """Write pixels (rows, columns) into an Image: depth as 32FC1, gray as mono8."""
    message.header.frame_id = message.header.frame_id or "camera"
    message.height, message.width = pixels.shape
    is_depth = layout.encoding != "gray"
    message.encoding, message.is_bigendian = ("32FC1" if is_depth else "mono8"), 0
    if is_depth:
        data = np.asarray(pixels, "<f4")
        data = np.where(data == 0.0, np.float32(np.nan), data) if layout.encoding == "depth with holes" else data
    else:
        data = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    message.step = data.itemsize * message.width
    message.data = data.tobytes()
