"""Model files that others wrote, MJCF or URDF: another process finds out first whether MuJoCo can bear them.

A line of XML can ask for 10⁹ bodies, a height field of 40 GB, or a file that includes itself.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

from robo_rl.files import sandbox as confined
from robo_rl.sim.robots.figures import CardError

OURS = Path(__file__).resolve().parent
MAX_BYTES = 1 << 26
SECONDS = 8.0
LEEWAY = 0.25
"""By which part of the others' sum a moment of inertia may be above it, and is lowered."""
UNREAD = (".dae", ".glb", ".gltf", ".ply", ".fbx", ".3ds")
"""Meshes of a URDF's pictures."""
_borne: set[tuple[str, int, int]] = set()
"""Path, size and time of change (ns) of files that were tried by this process."""


def require_bearable(path: Path) -> None:
    """CardError unless MuJoCo can compile the model in a file with the memory and the time that models need.

    What else is wrong with it is told where it is read.
    """
    path = path.resolve()
    if path.is_relative_to(OURS) or not path.is_file():
        return
    found = path.stat()
    if found.st_size > MAX_BYTES:
        raise CardError(f"{path}: {found.st_size} bytes; expected at most {MAX_BYTES}")
    key = (str(path), found.st_size, found.st_mtime_ns)
    if key in _borne:
        return
    try:
        confined.attempt("robo_rl.sim.models:trial", os.fsencode(path), seconds=SECONDS)
    except confined.Refused as error:
        raise CardError(f"{path}: MuJoCo can't bear it: {error}") from None
    _borne.add(key)


def named_files(path: Path) -> tuple[Path, ...]:
    """The files that a model names (meshes, textures, other models), those beside it or below, sorted.

    ``path`` is a file that passed ``require_bearable``. Others are not looked for: no ``..``, no other folders, and no
    meshes that MuJoCo can't read, with which nothing is drawn either.
    """
    require_bearable(path)
    folder, found, left = path.parent, set[Path](), [path]
    while left:
        try:
            root = ElementTree.parse(left.pop()).getroot()
        except ElementTree.ParseError:
            continue
        compilers = [dict(part.attrib) for part in root.iter("compiler")]
        places = {"", *(c[key] for c in compilers for key in ("meshdir", "texturedir", "assetdir") if key in c)}
        for part in root.iter():
            for key in ("file", "filename"):
                for place in places if key in part.attrib else ():
                    file = _inside(folder, Path(place, part.attrib[key]))
                    file = file or in_package(folder, part.attrib[key])
                    if file is None or file in found or file == path or file.suffix.lower() in UNREAD:
                        continue
                    found.add(file)
                    require_bearable(file)
                    left += [file] if part.tag == "include" else []
    return tuple(sorted(found))


def to_be_seen(path: Path) -> frozenset[Path]:
    """The meshes of a URDF that no step needs: those that only its ``<visual>`` names."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError:
        return frozenset()
    if root.tag != "robot":
        return frozenset()
    named = {
        kind: {
            file
            for shape in root.iter(kind)
            for mesh in shape.iter("mesh")
            if (
                file := _inside(path.parent, Path(mesh.get("filename", "")))
                or in_package(path.parent, mesh.get("filename", ""))
            )
        }
        for kind in ("visual", "collision")
    }
    return frozenset(named["visual"] - named["collision"])


def in_package(folder: Path, name: str) -> Path | None:
    """The file that a URDF in ``folder`` calls ``package://PACKAGE/FOLDERS/FILE``, or names by a path that leads out of
    there: in there by that path, or else by the longest end of it by which there is one."""
    parts = _elsewhere(name)
    found = (_inside(folder, Path(*parts[i:])) for i in range(len(parts)))
    return next((file for file in found if file), None)


def _elsewhere(name: str) -> tuple[str, ...]:
    """The parts of the path that a mesh in a ROS package, or outside of the model's folder, has; none of others."""
    _, scheme, rest = name.partition("://")
    path = Path(rest if scheme else name)
    if not (scheme or path.is_absolute() or ".." in path.parts):
        return ()
    return tuple(part for part in path.parts if part not in ("..", path.anchor))


def what_to_do(error: str, path: Path) -> str:
    """For who reads MuJoCo's ``error`` of the model in a file that another wrote."""
    told = path.read_bytes()[:MAX_BYTES]
    if path.suffix == ".xacro" or b"<xacro:" in told or b"${" in told:
        return f"; it is a xacro: expand it, `xacro {path.name} > expanded.urdf`, and name that file in the card"
    if "opening file" in error:
        return (
            "; expected meshes beside the model file or in a folder there, such as meshes/: package://ARM/meshes/A.stl "
            "is looked for there as ARM/meshes/A.stl, meshes/A.stl and A.stl. Copy them"
        )
    if "decoder" in error:
        return "; expected meshes as .stl, .obj or .msh: convert those that touch, and leave the others out"
    if "mjMINVAL" in error:
        return "; expected a mass and an inertia of each link that a joint moves: give it them, or make the joint fixed"
    return ""


def mend(spec: mujoco.MjSpec, path: Path) -> None:
    """Make a model that others wrote one that MuJoCo compiles: its meshes are found, and its inertias are of bodies.

    CardError for an inertia that no distribution of mass has.
    """
    _find_meshes(spec, path)
    if not spec.compiler.balanceinertia:
        for body in spec.bodies:
            if body.explicitinertial:
                _trim_inertia(body, path)


def _trim_inertia(body: Any, path: Path) -> None:
    """None of a body's principal moments of inertia may be greater than the sum of the others.

    Published URDFs break that by rounding, or by as much as 16 % (UFACTORY's xArm 6).
    The greatest is lowered to the sum.
    """
    xx, yy, zz, xy, xz, yz = full = np.array(body.fullinertia)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if not np.isfinite(full).all() or not full.any():
        return  # a diagonal one, of MJCF, or what MuJoCo refuses
    moments, axes = np.linalg.eigh(matrix)
    most = moments[0] + moments[1]
    if moments[2] <= most:
        return
    if moments[2] > (1.0 + LEEWAY) * most:
        raise CardError(
            f"{path}: body '{body.name}' has the principal moments of inertia {', '.join(f'{x:.4g}' for x in moments)} "
            "kg*m^2; expected none greater than the sum of the others, as of every distribution of mass. Correct it, "
            'or let MuJoCo take their mean: <compiler balanceinertia="true"/>, in a URDF within <mujoco>'
        )
    moments[2] = most * (1.0 - 1e-6)
    matrix = axes @ np.diag(moments) @ axes.T
    body.fullinertia = matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _find_meshes(spec: mujoco.MjSpec, path: Path) -> None:
    """Tell MuJoCo where meshes of ROS packages, and of other folders, are beside the model file ``path``.

    What is not there is not read from elsewhere: it would be missing in a copy of the model.
    """
    folder = path.parent.absolute()
    for mesh in spec.meshes:
        parts = _elsewhere(mesh.file)
        if not parts or ("://" not in mesh.file and _inside_of(folder, folder / spec.meshdir / mesh.file)):
            continue
        place = in_package(folder, mesh.file) or folder.joinpath(*parts)
        mesh.file = str(place if spec.meshdir else place.relative_to(folder))


def _inside_of(folder: Path, file: Path) -> bool:
    return Path(os.path.normpath(file)).is_relative_to(os.path.normpath(folder))


def _inside(folder: Path, part: Path) -> Path | None:
    """That file of a folder, if there is one and it really is in there."""
    file = folder / part
    inside = file.is_relative_to(folder) and ".." not in file.relative_to(folder).parts
    if inside and file.is_file() and file.resolve().is_relative_to(folder.resolve()):
        return file
    return None


def trial(path: bytes) -> bytes:
    """Read and compile a model: what a process that is confined does with a stranger's file."""
    file = os.fsdecode(path)
    warnings: list[str] = []
    mujoco.set_mju_user_warning(warnings.append)  # it would write them into a file, here
    with contextlib.suppress(ElementTree.ParseError):
        ElementTree.tostring(ElementTree.parse(file).getroot())  # as pictures of URDFs are read
    with contextlib.suppress(ValueError):  # a CardError is one; who reads the file for good is told
        spec = mujoco.MjSpec.from_file(file)
        mend(spec, Path(file))
        spec.compile()
    if any("NaN" in warning for warning in warnings):
        raise ValueError("a number is NaN; expected finite ones")
    return b""
