"""Hostile pictures and meshes of models, maps and clips: a sentence each, little memory and time, no hang."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_rl.sim.models import read_model
from robo_rl.sim.scenes.tracks.courses import read_course
from robo_rl.sim.tasks.legged.clips.files import read_clip
from tests.planted import CODE, Make, device, hole, packed, pipe, written
from tests.test_hostile_files import refuse  # noqa: F401 (a fixture)


def zeros(width: int, height: int) -> bytes:
    """A PNG file of so many black pixels."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer, row = zlib.compressobj(1), bytes(1 + 3 * width)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", data) + part(b"IEND", b"")


def model(asset: str, make: Make, body: str = '<geom size="1"/>') -> Make:
    def both(folder: Path) -> Path:
        make(folder)
        text = f"<mujoco><asset>{asset}</asset><worldbody><body>{body}</body></worldbody></mujoco>"
        return written("model.xml", text)(folder)

    return both


TEXTURE = '<texture name="a" type="2d" file="a.png"/>'
MESH, MESHED = '<mesh name="a" file="{}"/>', '<geom type="mesh" mesh="a"/>'
ASSETS: dict[str, Make] = {
    "half a gigabyte of black pixels": model(TEXTURE, lambda folder: written("a.png", zeros(14_000, 14_000))(folder)),
    "a pipe for a picture": model(TEXTURE, pipe("a.png")), "a pipe for a mesh": model(
        MESH.format("a.stl"), pipe("a.stl"), MESHED
    ), "four billion triangles": model(MESH.format("a.stl"), written("a.stl", bytes(80) + b"\xff" * 4), MESHED),
    "a device": model(MESH.format("/dev/zero"), written("a.stl", ""), MESHED),
}  # fmt: skip


@pytest.mark.parametrize("what", ASSETS)
def test_pictures_and_meshes_of_models(what: str, refuse: Any) -> None:  # noqa: F811
    def read(path: Path) -> None:
        read_model(path, seen=True).compile()

    said = refuse(read, ASSETS[what])
    assert said or what == "a pipe for a picture"  # pictures that are no files are left out


# --- maps ------------------------------------------------------------------------------------------------------------

YAML = "image: map.png\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.25\n"


def cells(shape: tuple[int, int], fill: Callable[[np.ndarray], None], mode: str = "L") -> Make:
    def make(folder: Path) -> Path:
        from PIL import Image

        grey = np.zeros(shape, np.uint8)
        fill(grey)
        Image.fromarray(grey).convert(mode).save(folder / "map.png", compress_level=1)
        return written("map.yaml", YAML)(folder)

    return make


def free(grey: np.ndarray) -> None:
    grey[:] = 254


def noise(grey: np.ndarray) -> None:
    grey[:] = 254 * np.random.default_rng(0).integers(2, size=grey.shape, dtype=np.uint8)


def rings(grey: np.ndarray) -> None:
    """Many lanes round many islands."""
    middle = np.array(grey.shape) // 2
    for k in range(20, min(middle), 20):
        grey[middle[0] - k : middle[0] + k, middle[1] - k : middle[1] + k] = 254 * (k // 20 % 2)


def image(make: Make) -> Make:
    def both(folder: Path) -> Path:
        make(folder)
        return written("map.yaml", YAML)(folder)

    return both


MAPS: dict[str, Make] = {
    "all free": cells((4096, 4096), free), "noise": cells((4096, 4096), noise),
    "all free, in colours": cells((4096, 4096), free, "RGBA"), "rings": cells((4096, 4096), rings),
    "more cells than there may be": cells((4096, 4097), free), "one line": cells((1, 1 << 20), free),
    "a pipe for cells": image(pipe("map.png")), "a device for cells": image(device("map.png")),
    "a hole for cells": image(hole("map.png", b"\x89PNG\r\n\x1a\n")),
    "noise for cells": image(written("map.png", b"\x89PNG" * 99)),
    "a pipe": pipe("map.yaml"), "a hole": hole("map.yaml", YAML.encode()),
    "lists in lists": written("map.yaml", "[" * 8000),
    "deep tables": written("map.yaml", "".join(f"{' ' * k}a:\n" for k in range(150))),
    "a tag of Python": written("map.yaml", "!!python/object/apply:os.system ['touch ESCAPED']"),
    "a centre line that is a pipe": pipe("line.csv"), "a centre line that is a hole": hole("line.csv"),
}  # fmt: skip


@pytest.mark.parametrize("what", MAPS)
def test_maps(what: str, refuse: Any) -> None:  # noqa: F811
    sentence = refuse(read_course, MAPS[what])
    assert sentence or what == "rings"


# --- clips -----------------------------------------------------------------------------------------------------------


def header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """Of a .npy file."""
    text = str({"descr": kind, "fortran_order": False, "shape": shape})
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


CLIPS = {
    "bomb": packed("c.npz", {"position.npy": header((50, 10**7)) + bytes(1 << 25)}),
    "endless": packed("c.npz", {"position.npy": header((10**15, 3))}),
    "code": packed("c.npz", {"position.npy": CODE, "time.npy": header((9,), "__import__('os').abort()")}),
    "elsewhere": packed("c.npz", {"../../ESCAPED": b"x"}),
    "lines": written("c.csv", "\n" * (1 << 22)),
    "a field": written("c.csv", 'time,x\n"' + "1" * (1 << 22)),
    "pipe": pipe("c.npz"),
    "device": device("c.csv"),
    "hole": hole("c.npz", b"PK\x03\x04"),
}  # fmt: skip


@pytest.mark.parametrize("what", CLIPS)
def test_clips(what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(lambda path: read_clip(path, ("a", "b")), CLIPS[what])
