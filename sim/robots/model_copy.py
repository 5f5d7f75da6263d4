"""A maker's model with its meshes in one folder, from wherever in its package they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from robo_rl.sim.models import MAX_BYTES, UNREAD
from robo_rl.sim.robots.figures import CardError

ABOVE = 3
"""Folders above the model's in which the meshes of its package may be."""


def copy_model(model: Path, folder: Path) -> Path:
    """Copy an MJCF or URDF, and the meshes and files that it names, below ``folder``; the copy's path.

    Meshes that MuJoCo can't read, and textures, stay behind; what is not found is told where the copy is read.
    """
    if not model.is_file():
        raise CardError(f"{model}: there is no such file; expected an MJCF or URDF file")
    if model.stat().st_size > MAX_BYTES:
        raise CardError(f"{model}: {model.stat().st_size} bytes; expected an MJCF or URDF file of at most {MAX_BYTES}")
    for source, place in {model: Path(model.name), **dict(_named(model.resolve(), model.resolve()))}.items():
        made = folder / place
        made.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, made)
    return folder / model.name


def _named(model: Path, file: Path) -> Iterator[tuple[Path, Path]]:
    """Files that a model names, and where in the copy's folder they are looked for."""
    try:
        root = ElementTree.parse(file).getroot()
    except ElementTree.ParseError as error:
        raise CardError(f"{file}: not XML ({error}); expected MJCF or URDF, a xacro expanded") from None
    folders = {part.get(key, "") for part in root.iter("compiler") for key in ("meshdir", "assetdir") if part.get(key)}
    for part in root.iter():
        told = part.get("filename") or part.get("file")
        if not told or part.tag in ("texture", "skin") or Path(told).suffix.lower() in UNREAD:
            continue
        for place in _places(model, told, file.parent, folders or {""}):
            if place.is_file() and place.stat().st_size <= MAX_BYTES:
                yield place, _below(place, model.parent)
                if part.tag == "include":
                    yield from _named(model, place)
                break


def _places(model: Path, told: str, beside: Path, folders: set[str]) -> Iterator[Path]:
    package, _, rest = told.rpartition("://")
    parts = Path(rest).parts
    for folder in folders if not package else ():
        yield Path(os.path.normpath(Path(beside, folder, rest)))
    yield Path(os.path.normpath(Path(beside, rest)))
    for above in list(model.parents)[: ABOVE + 1]:
        yield above.joinpath(*parts)
        yield above.joinpath(*parts[1:])  # without the package's name


def _below(place: Path, folder: Path) -> Path:
    """Where a file goes: as it is below the model's folder, else as it is below the folder that both are in."""
    if place.is_relative_to(folder):
        return place.relative_to(folder)
    both = Path(os.path.commonpath([place, folder]))
    return place.relative_to(both)
