"""Packages of messages where no distribution has them: built from their definitions by rosidl's wheels, in seconds.

    build_all()                     # needs gcc; 'robo-rl ros messages'
    importable("robo_rl_msgs")      # from a distribution, or from there

rosidl's generators write C and C++, which are compiled into one library per type support, and Python. A process finds
the libraries by their names once they are loaded. In a distribution ``colcon build`` does this, and none of it is used.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

TF2 = {"msg/TFMessage.msg": "geometry_msgs/TransformStamped[] transforms\n"}
"""tf2_msgs/TFMessage (geometry2, Jazzy); its services and action are not needed."""
SOURCES = Path(__file__).parent / "definitions"
"""The package robo_rl_msgs of the workspace: a link to it, whose files wheels contain."""
USED = ("nav_msgs", "std_msgs", "builtin_interfaces", "action_msgs", "unique_identifier_msgs", "service_msgs",
        "geometry_msgs")  # fmt: skip
"""Packages whose messages definitions may use."""
KINDS = ("rosidl_generator_c", "rosidl_generator_py", "rosidl_typesupport_fastrtps_c", "rosidl_typesupport_c",
         "rosidl_typesupport_introspection_c")  # fmt: skip
SUPPORTS = ["rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c"]
COMPILED = ("gcc", "-O0", "-w", "-fPIC", "-c")
PACKAGES = ("robo_rl_msgs", "tf2_msgs")


class InterfaceError(ValueError):
    """A package of messages can't be built. The sentence says what is missing."""


def definitions(package: str) -> dict[str, str]:
    """The definitions of one of ``PACKAGES``, by their paths in it, such as "msg/TFMessage.msg"."""
    if package == "tf2_msgs":
        return TF2
    kinds = ("msg", "srv")
    found = {f"{kind}/{file.name}": file.read_text() for kind in kinds for file in (SOURCES / kind).glob(f"*.{kind}")}
    if not found:
        raise InterfaceError(f"{SOURCES}: no messages of '{package}' in it; build them with colcon")
    return found


def importable(package: str) -> bool:
    """Whether ``package`` can be imported: from a distribution, or because it was built for this Python."""
    found = importlib.util.find_spec(package)
    if found is not None:  # in a build, the libraries are beside the package: sys.path led there, nobody loaded them
        beside = Path(found.origin).parent.parent if found.origin else None
        return _load(package, beside) if beside and _libraries(package, beside) else True
    try:
        given = definitions(package)
    except InterfaceError:
        return False
    return _load(package, folder(package, given))


def folder(package: str, given: Mapping[str, str]) -> Path:
    """Where a package is built, by its definitions and this Python: another of either is built anew."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "robo-rl" / "interfaces"
    about = [sys.version, sys.prefix, *(f"{name}\n{text}" for name, text in sorted(given.items()))]
    digest = hashlib.sha256("\0".join(about).encode()).hexdigest()
    return cache / f"{package}-{digest[:16]}"


def build_all() -> list[tuple[str, Path]]:
    """Build those of ``PACKAGES`` that this Python can't import yet; where they are, by name."""
    made = []
    for package in PACKAGES:
        if not importable(package):
            given = definitions(package)
            made.append((package, build(package, given, folder(package, given))))
    return made


def build(package: str, given: Mapping[str, str], into: Path) -> Path:
    """Build a package of ``given`` definitions in the folder ``into``, whole or not at all; returns it."""
    if into.is_dir():
        return into
    if shutil.which("gcc") is None or shutil.which("g++") is None:
        raise InterfaceError("messages are compiled: gcc and g++ are missing; apt install g++")
    try:
        import rosidl_generator_c  # noqa: F401
    except ImportError:
        raise InterfaceError(
            "rosidl's generators are missing: pip install 'robo-rl[ros]', or use colcon build"
        ) from None
    into.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=into.parent))
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the adapter tells every file that it reads
            _make(package, given, made)
        with contextlib.suppress(OSError):  # another process was faster
            made.rename(into)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return into


def _load(package: str, built: Path) -> bool:
    """Let this process import a package that was built."""
    libraries = _libraries(package, built)
    if not libraries:
        return False
    for library in libraries:
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)  # this process finds it by its name from now on
    if str(built) not in sys.path:
        sys.path.append(str(built))
    importlib.invalidate_caches()
    return importlib.util.find_spec(package) is not None


def _libraries(package: str, built: Path) -> list[Path]:
    """Those of a package that was built; none where one is missing."""
    libraries = [built / f"lib{package}__{support}.so" for support in SUPPORTS]
    return libraries if all(library.is_file() for library in libraries) else []


def _make(package: str, given: Mapping[str, str], at: Path) -> None:
    """Generate and compile, in the folder ``at``."""
    prefix = Path(sys.prefix)
    os.environ.setdefault("AMENT_PREFIX_PATH", str(prefix))
    sources = _generated(package, given, at, str(prefix / "share"))
    include = [at, at / "introspection", prefix / "include", *(p for p in (prefix / "include").iterdir() if p.is_dir())]
    import numpy as np

    include += [Path(sysconfig.get_path("include")), Path(np.get_include())]
    flags = [f"-I{path}" for path in include]
    objects = [at / f"{number}.o" for number in range(len(sources))]
    compiling = [
        subprocess.Popen([*COMPILED, *flags, source, "-o", made], stderr=subprocess.PIPE)
        for source, made in zip(sources, objects, strict=True)
    ]
    for process in compiling:
        _, error = process.communicate()
        if process.returncode:
            raise InterfaceError(f"messages of '{package}' do not compile: {error.decode(errors='replace')[:500]}")
    linked = [f"-l:lib{used}__{kind}.so" for used in USED for kind in KINDS]
    linked += [f"-l:lib{name}.so" for name in (*KINDS[2:], "rosidl_runtime_c", "fastcdr", "rcutils")]
    where = [f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}"]
    for support in SUPPORTS:
        name = f"lib{package}__{support}.so"
        command: list[str | Path] = [
            "g++",
            "-shared",
            f"-Wl,-soname,{name}",
            "-o",
            at / name,
            *objects,
            *where,
            *linked,
        ]
        subprocess.run(command, check=True)
    extension = f"{package}_s__rosidl_typesupport_c{sysconfig.get_config_var('EXT_SUFFIX')}"
    shutil.copy(at / name, at / package / extension)
    (at / package / "__init__.py").touch()
    for made in objects:
        made.unlink()


def _generated(package: str, given: Mapping[str, str], at: Path, share: str) -> list[Path]:
    """C and C++ of the definitions. The generators are called one by one: their command line finds each twice."""
    from rosidl_adapter.action import convert_action_to_idl
    from rosidl_adapter.msg import convert_msg_to_idl
    from rosidl_adapter.srv import convert_srv_to_idl
    from rosidl_generator_c.cli import GenerateC
    from rosidl_generator_py.cli import GeneratePython
    from rosidl_generator_type_description.cli import HashTypeDescription
    from rosidl_typesupport_c.cli import GenerateCTypesupport
    from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport
    from rosidl_typesupport_introspection_c.cli import GenerateIntrospectionCTypesupport

    convert = {"msg": convert_msg_to_idl, "srv": convert_srv_to_idl, "action": convert_action_to_idl}
    made, apart = at / package, at / "introspection" / package
    apart.mkdir(parents=True)
    (made / "msg").mkdir(parents=True)
    files = []
    for name, text in sorted(given.items()):
        source = at / "given" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        (made / source.parent.name).mkdir(exist_ok=True)
        convert[source.suffix[1:]](at / "given", package, source.relative_to(at / "given"), made / source.parent.name)
        files.append(f"{made}:{source.parent.name}/{source.stem}.idl")
    hashes = HashTypeDescription("").generate_type_hashes(package, files, [share], made)
    GenerateC("").generate(package, files, [share], made, hashes)
    GeneratePython("", typesupport_implementations=["rosidl_typesupport_c"]).generate(package, files, [share], made)
    GenerateCTypesupport("", typesupport_implementations=SUPPORTS).generate(package, files, [share], made)
    GenerateFastRTPSCTypesupport("").generate(package, files, [share], made)
    GenerateIntrospectionCTypesupport("").generate(package, files, [share], apart)
    return [file for where in (made, apart) for end in ("*.c", "*.cpp") for file in sorted(where.rglob(end))]
