"""Model files that others wrote, MJCF or URDF: another process finds out first whether MuJoCo can bear them.

A line of XML can ask for 10⁹ bodies, a height field of 40 GB, or a file that includes itself. Nothing is opened outside
of the model's own folder: a model that names such a file is refused before MuJoCo reads it.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

from robo_rl.files import sandbox as confined
from robo_rl.sim.robots.figures import CardError, label
from robo_rl.sim.robots.inertias import mend_inertias, require_sane_inertias

OURS = Path(__file__).resolve().parent
MAX_BYTES = 1 << 26
SECONDS = 7.0
OPENED = ("model", "attach", "flexcomp", "flex")
"""Elements by which a file brings others as it is read, or bodies that are not rigid."""
UNREAD = (".dae", ".glb", ".gltf", ".ply", ".fbx", ".3ds")
"""Meshes of a URDF's pictures."""
ADDED = ("joint", "geom", "site", "camera", "light", "pair", "equality", "tendon", "actuator")
"""Elements of a default class that are added to others' models."""
IDENTITY = ("classname", "name", "info", "plugin")
"""Fields of such an element that say which it is."""
SHORT_OF_MEMORY = ("alloc", "memory")
"""In what MuJoCo and its decoders of pictures and meshes say where there is too little."""
_borne: set[tuple[str, int, int]] = set()
"""Path, size and time of change (ns) of files that were tried by this process."""
_weighed: set[tuple[str, int, int]] = set()
"""The same of those whose inertias were looked at."""
_thin: dict[tuple[str, int, int], set[str]] = {}
"""The same, and the meshes in them that have no volume, so that MuJoCo finds neither mass nor hull of them."""
THIN = re.compile(r"mesh volume is too small: (\S+)|mesh '([^']+)' has coplanar vertices")


def require_bearable(path: Path) -> None:
    """CardError unless MuJoCo can compile the model in a file with the memory and the time that models need.

    What else is wrong with it is told where it is read.
    """
    path = path.resolve()
    if path.is_relative_to(OURS) or not path.is_file():
        return
    key = _key(path)
    if key[1] > MAX_BYTES:
        raise CardError(f"{path}: {key[1]} bytes; expected at most {MAX_BYTES}")
    if key in _borne:
        return
    try:
        confined.attempt("robo_rl.sim.models:trial", os.fsencode(path), seconds=SECONDS)
    except confined.Refused as error:
        raise CardError(f"{path}: MuJoCo can't bear it: {error}") from None
    _borne.add(key)


def read_model(path: Path, seen: bool = False) -> mujoco.MjSpec:
    """The model in a file, MJCF or URDF, before anything is compiled: its meshes are found, its inertias are of bodies.

    ``seen``: with the shapes of a URDF that only pictures need, and with textures. CardError in a sentence.
    """
    require_bearable(path)
    try:
        _weigh(path)
        return _read(path, seen)
    except CardError:
        raise
    except ValueError as error:
        said = " ".join(str(error).split())
        hint = what_to_do(said, path) or ("; expected MJCF or URDF" if "model type" in said else "")
        raise CardError(f"{path}: MuJoCo can't read it ({said}){hint}") from None


def _weigh(path: Path) -> None:
    """CardError for inertias that no bodies have, once for each file."""
    if (key := _key(path)) in _weighed:
        return
    for seen in (True, False):  # meshes of pictures may be missing
        model = _compiled(path, seen)
        if model is not None:
            require_sane_inertias(model, path)
            break
    _weighed.add(key)


def _compiled(path: Path, seen: bool) -> mujoco.MjModel | None:
    """What MuJoCo makes of a file without its thin meshes, which are noted as they are found.

    None where that is nothing: why, is told where it is compiled for good.
    """
    thin = _thin.setdefault(_key(path), set())
    while True:
        spec = _read(path, seen)
        spec.compiler.fusestatic = False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of texture coordinates
                return spec.compile()
        except ValueError as error:
            found = THIN.search(str(error))
            name = (found[1] or found[2]) if found else ""
            if not name or name in thin:
                return None
            thin.add(name)


def _key(path: Path) -> tuple[str, int, int]:
    found = path.resolve().stat()
    return str(path.resolve()), found.st_size, found.st_mtime_ns


def _read(path: Path, seen: bool = False) -> mujoco.MjSpec:
    root = _parsed(path)
    _require_own(path, path, root, [path])
    if root.tag != "robot":
        spec = mujoco.MjSpec.from_file(str(path))
    else:
        _require_leaders(root, path)
        changed = _leave_one_material(root) | _fill_limits(root, path)
        if seen:
            _keep_visuals(root)
        if changed or seen:
            spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, "unicode"))
            spec.modelfiledir = str(path.parent)
        else:
            spec = mujoco.MjSpec.from_file(str(path))
        if spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO:
            spec.compiler.inertiafromgeom = False  # a link of a URDF without <inertial> has no mass
    _reset_defaults(spec)
    _replace_slashes(spec)
    _find_meshes(spec, path)
    _drop_textures(spec, path, seen)
    _drop_thin_meshes(spec, _thin.get(_key(path), set()))
    mend_inertias(spec, path)
    _keep_inertias(spec)
    return spec


def _reset_defaults(spec: mujoco.MjSpec) -> None:
    """What is added to the robot (motors, ground, objects, sensors' sites) has nothing of the file's default classes.

    All that is in the file has got them when it was read.
    """
    other = mujoco.MjSpec()  # which lives as long as its defaults are read
    plain = other.default
    classes = {ours.name: ours for ours in (spec.default, *(body.classname for body in spec.bodies))}
    for ours in classes.values():
        for part in ADDED:
            source, target = getattr(plain, part), getattr(ours, part)
            for name, field in vars(type(source)).items():
                if isinstance(field, property) and field.fset and name not in IDENTITY:
                    setattr(target, name, getattr(source, name))


def _keep_inertias(spec: mujoco.MjSpec) -> None:
    """Where the compiler's settings change masses or inertias, give bodies what they make of them, and none of a task's
    objects: settotalmass, bounds, shapes that count."""
    ours, plain = spec.compiler, mujoco.MjSpec().compiler
    always = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    numbers = ("settotalmass", "boundmass", "boundinertia")
    same = all(getattr(ours, name) == getattr(plain, name) for name in numbers) and ours.inertiafromgeom != always
    if same and (ours.inertiagrouprange == plain.inertiagrouprange).all():
        return
    other = spec.copy()
    other.compiler.fusestatic = False
    model = other.compile()
    for body, number in zip(spec.bodies[1:], range(1, model.nbody), strict=True):
        body.mass, body.explicitinertial = float(model.body_mass[number]), bool(model.body_mass[number])
        body.fullinertia, body.inertia = np.full(6, np.nan), model.body_inertia[number]
        body.ipos, body.iquat = model.body_ipos[number], model.body_iquat[number]
        body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
        for shape in body.geoms if not body.mass else ():
            shape.mass, shape.density = 0.0, 0.0
    for name in (*numbers, "inertiafromgeom", "inertiagrouprange"):
        setattr(ours, name, getattr(plain, name))


def _parsed(path: Path) -> ElementTree.Element:
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, UnicodeError, LookupError) as error:
        raise CardError(
            f"{path}: MuJoCo can't read it: not XML ({error}){what_to_do('', path) or '; expected MJCF or URDF'}"
        ) from None
    if root.tag == "sdf":
        raise CardError(
            f"{path}: it is SDF, a model of Gazebo's; expected MJCF or URDF: the URDF that it was made from, or a "
            "conversion. Multirotors, cars and bases on wheels need none: robo-rl new NAME --like crazyflie"
        )
    return root


def _require_own(model: Path, file: Path, root: ElementTree.Element, open_now: list[Path]) -> None:
    """CardError where a model, or a file that it includes, brings others from outside of the model's folder."""
    for part in root.iter():
        if root.tag != "robot" and part.tag in OPENED:
            raise CardError(
                f"{file}: <{part.tag} name='{part.get('name', '')}'> is not read; expected rigid bodies in this file, "
                "or in others that it <include>s"
            )
        if part.tag != "include" or root.tag == "robot":
            continue
        told = part.get("file", "")
        place = os.path.relpath(Path(file.parent, told), model.parent)
        found = None if Path(told).is_absolute() else _inside(model.parent, Path(place))
        if found is None:
            raise CardError(
                f"{file}: <include file='{told}'> is not a file in {model.parent} or below; expected one beside the "
                "model, which travels with it: copy it there"
            )
        if found in open_now or found.stat().st_size > MAX_BYTES:
            raise CardError(f"{file}: <include file='{told}'> includes itself, or is above {MAX_BYTES} bytes")
        _require_own(model, found, _parsed(found), [*open_now, found])


def _require_leaders(root: ElementTree.Element, path: Path) -> None:
    """CardError for a joint of a URDF that follows one that is not there, or does not move: MuJoCo lets it hang."""
    moving = [
        joint.get("name") for joint in root.findall("joint") if joint.get("type") not in ("fixed", "floating", "planar")
    ]
    for joint in root.findall("joint"):
        for follows in joint.findall("mimic"):
            name, leader = joint.get("name", ""), follows.get("joint", "")
            if leader not in moving or leader == name:
                raise CardError(
                    f"{path}: joint '{name}' has <mimic joint='{leader}'>; expected another joint of this file that "
                    f"turns or slides, one of {[other for other in moving if other != name]}"
                )


def _leave_one_material(root: ElementTree.Element) -> bool:
    """Of the materials of a URDF's <visual>, of which it may have one, the last; whether there were more."""
    several = [(shape, shape.findall("material")) for shape in root.iter("visual")]
    for shape, materials in several:
        for material in materials[:-1]:
            shape.remove(material)
    return any(len(materials) > 1 for _, materials in several)


def _fill_limits(root: ElementTree.Element, path: Path) -> bool:
    """The stop that a URDF's <limit> leaves out is 0 (wiki.ros.org/urdf/XML/joint); MuJoCo would drop both of them.

    CardError where the lower one is above the upper one, which MuJoCo takes for none.
    """
    changed = False
    for joint in root.iter("joint"):
        for limit in joint.findall("limit"):
            told = {end: limit.get(end) for end in ("lower", "upper")}
            if not any(told.values()) or joint.get("type") not in ("revolute", "prismatic"):
                continue
            for end, text in told.items():
                changed |= text is None
                limit.set(end, text or "0")
            try:
                wrong = float(limit.get("lower", 0)) > float(limit.get("upper", 0))
            except ValueError:
                continue  # MuJoCo says what is wrong with it
            if wrong:
                raise CardError(
                    f"{path}: joint '{joint.get('name', '')}' has <limit lower='{limit.get('lower')}' "
                    f"upper='{limit.get('upper')}'>; expected the lower one first"
                )
    return changed


def _keep_visuals(root: ElementTree.Element) -> None:
    settings = root.find("mujoco")
    settings = ElementTree.SubElement(root, "mujoco") if settings is None else settings
    compiler = settings.find("compiler")
    compiler = ElementTree.SubElement(settings, "compiler") if compiler is None else compiler
    compiler.set("discardvisual", "false")


def _replace_slashes(spec: mujoco.MjSpec) -> None:
    """Names as of dm_control, left/waist, are those that signals and topics can have: left.waist."""
    for parts in (spec.bodies, spec.joints, spec.geoms, spec.sites):
        for part in parts:
            if "/" in part.name:
                part.name = label(part.name)
    for parts, fields in (
        (spec.equalities, ("name1", "name2")),
        (spec.excludes, ("bodyname1", "bodyname2")),
        (spec.pairs, ("geomname1", "geomname2")),
    ):
        for part in parts:
            for field in fields:
                if "/" in getattr(part, field):
                    setattr(part, field, label(getattr(part, field)))


def _drop_textures(spec: mujoco.MjSpec, path: Path, seen: bool) -> None:
    """Pictures of textures, which no step needs and no bundle brings, and skins."""
    dropped = set()
    for texture in list(spec.textures):
        files = [file for file in (texture.file, *texture.cubefiles) if file]
        there = [_inside(path.parent, Path(texture.compiler.texturedir, file)) for file in files]
        if files and not (seen and all(there)):
            dropped.add(texture.name)
            spec.delete(texture)
    for material in spec.materials:
        for role, name in enumerate(material.textures):
            if name in dropped:
                material.textures[role] = ""
    for skin in list(spec.skins):
        spec.delete(skin)


def _drop_thin_meshes(spec: mujoco.MjSpec, thin: set[str]) -> None:
    """Shapes of meshes without volume, such as a sticker's, of bodies whose mass the file tells."""
    for body in spec.bodies:
        for shape in list(body.geoms):
            if shape.meshname in thin and body.explicitinertial:
                spec.delete(shape)
    used = {shape.meshname for shape in spec.geoms}
    for mesh in list(spec.meshes):
        if mesh.name in thin and mesh.name not in used:
            spec.delete(mesh)


def named_files(path: Path) -> tuple[Path, ...]:
    """The files that a model names (meshes, height fields, other models), those beside it or below, sorted.

    ``path`` is a file that passed ``require_bearable``. Others are not looked for: no ``..``, no other folders, and no
    meshes that MuJoCo can't read, with which nothing is drawn either. Textures stay behind, too.
    """
    require_bearable(path)
    folder, found, left = path.parent, set[Path](), [path]
    while left:
        model = left.pop()
        try:
            root = ElementTree.parse(model).getroot()
        except ElementTree.ParseError:
            continue
        compilers = [dict(part.attrib) for part in root.iter("compiler")]
        places = {"", *(c[key] for c in compilers for key in ("meshdir", "texturedir", "assetdir") if key in c)}
        places = {*places, *(() if model == path else (str(model.parent.relative_to(folder)),))}
        for part in root.iter():
            for key in ("file", "filename"):
                for place in places if key in part.attrib and part.tag not in ("texture", "skin") else ():
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
    told = re.sub(rb"<!--.*?-->", b"", path.read_bytes()[:MAX_BYTES], flags=re.DOTALL)  # an expanded one keeps comments
    if path.suffix == ".xacro" or b"<xacro:" in told or b"${" in told:
        return f"; it is a xacro: expand it, `xacro {path.name} > expanded.urdf`, and name that file in the card"
    touching = re.search(r"opening file '[^']*(\.\w+)'", error)
    if touching and touching[1].lower() in UNREAD:
        return (
            f"; a mesh in {touching[1]} is what touches (<collision>), and only .stl, .obj and .msh are read: convert "
            "it, or put boxes, spheres or cylinders in its place. Those of <visual> alone may be of any kind"
        )
    if "ASCII" in error:
        return "; expected binary .stl files: convert those in ASCII, or save them as .obj"
    if "opening file" in error:
        return (
            "; expected meshes beside the model file or in a folder there, such as meshes/: package://ARM/meshes/A.stl "
            "is looked for there as ARM/meshes/A.stl, meshes/A.stl and A.stl. Copy them"
        )
    if "decoder" in error:
        return "; expected meshes as .stl, .obj or .msh: convert those that touch, and leave the others out"
    if "eigenvalues" in error:
        return "; expected an inertia that a body has, whose principal moments are positive: correct the link's"
    if "mjMINVAL" in error:
        return "; expected a mass and an inertia of each link that a joint moves: give it them, or make the joint fixed"
    return ""


def _find_meshes(spec: mujoco.MjSpec, path: Path) -> None:
    """Tell MuJoCo where meshes of ROS packages, and of other folders, are beside the model file ``path``.

    What is not there is not read from elsewhere: it would be missing in a copy of the model.
    """
    folder = path.parent.absolute()
    for part in (*spec.meshes, *spec.hfields):
        if not part.file:
            continue
        parts, place = _elsewhere(part.file), folder / part.compiler.meshdir / part.file
        if "://" not in part.file and _inside_of(folder, place):
            own = _inside(folder, Path(part.file))
            if place.is_file() or own is None:
                _require_real(folder, place, part, path)
            else:
                part.file = str(own)  # a URDF's path counts from its own folder, whatever the compiler's meshdir
            continue
        found = in_package(folder, part.file) or in_package(folder, str(place))
        if found is None and not parts:
            raise CardError(
                f"{path}: the file '{part.file}' of '{part.name}' is in {place.parent}, by the compiler's meshdir "
                f"'{part.compiler.meshdir}'; expected it in {folder} or below, which travels with the model: copy it"
            )
        found = found or folder.joinpath(*parts)
        _require_real(folder, found, part, path)
        part.file = str(found if part.compiler.meshdir else found.relative_to(folder))


def _require_real(folder: Path, place: Path, part: Any, path: Path) -> None:
    """CardError where a file inside of a folder is a link to one outside."""
    if place.exists() and not place.resolve().is_relative_to(folder.resolve()):
        raise CardError(
            f"{path}: the file '{part.file}' of '{part.name}' is a link to {place.resolve()}; expected a file in "
            f"{folder} or below, which travels with the model: copy it"
        )


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
    for seen in (False, True):  # as it is simulated, and with what only pictures need
        try:
            _read(Path(file), seen).compile()
        except ValueError as error:  # a CardError is one; who reads the file for good is told, who has more memory
            if any(word in str(error).lower() for word in SHORT_OF_MEMORY):
                raise
    if any("NaN" in warning for warning in warnings):
        raise ValueError("a number is NaN; expected finite ones")
    return b""
