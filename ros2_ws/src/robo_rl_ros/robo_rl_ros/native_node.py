"""The node in C++: built by what PyPI's wheels of ROS 2 have, and its parameters from a bundle.

    program = build_node()                                  # needs g++; 'robo-rl ros native FILE'
    library = compile_bundle(bundle)
    print(parameter_file(bundle.contract, library))         # 'robo-rl ros wires FILE'

The sources are in the package robo_rl_controller of the workspace. In a distribution ``colcon build`` compiles them,
and of this module only the parameters are used. The messages of robo_rl_msgs are those of 'robo-rl ros messages'; where
they were not built, the node is compiled without.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from robo_rl.contract import Contract
from robo_rl.deploy.build.c.generate import HERE as C_SOURCES
from robo_rl.deploy.build.c.native import compile_native
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.gate_topic import PACKAGE
from robo_rl.ros.interfaces import InterfaceError, definitions, folder
from robo_rl.ros.wiring import command_wires, signal_wires

SOURCES = Path(__file__).parent / "controller"
"""The package robo_rl_controller of the workspace: a link to it, whose files wheels contain."""
COMPILED = ("g++", "-std=c++17", "-O2", "-ffp-contract=off", "-pthread", "-c")
LIBRARIES = ("rcl", "rcl_lifecycle", "rcl_yaml_param_parser", "rcutils", "rmw", "rosidl_runtime_c",
             "rosidl_typesupport_c", "rosidl_typesupport_cpp", "lifecycle_msgs__rosidl_typesupport_c")  # fmt: skip
MESSAGES = ("diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "nav_msgs", "rosgraph_msgs", "sensor_msgs",
            "std_msgs", "std_srvs", "trajectory_msgs")  # fmt: skip
DATA = ("Struct", "Type", "PyExc_")
"""Parts of the names of Python's symbols that are data."""


class NativeNodeError(ValueError):
    """The node can't be built. The sentence says what is missing."""


def cache() -> Path:
    """The folder in which things are built."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "robo-rl" / "native"


def build_node() -> Path:
    """The program, built if it is not there yet."""
    sources = sorted((SOURCES / "src").glob("*.cpp")) + sorted((SOURCES / "node").glob("*.cpp"))
    headers = [*(SOURCES / "include").rglob("*.hpp"), *(SOURCES / "node").glob("*.hpp"), *C_SOURCES.glob("*.h")]
    prefix = Path(sys.prefix)
    if not sources:
        raise NativeNodeError(f"{SOURCES}: the package robo_rl_controller is not there; build it with colcon")
    if not (prefix / "include" / "rcl_lifecycle").is_dir():
        raise NativeNodeError(
            f"{prefix}/include has no rcl: pip install 'robo-rl[ros]', or, in a ROS distribution, build the package "
            "robo_rl_controller with colcon"
        )
    if shutil.which("g++") is None or shutil.which("nm") is None:
        raise NativeNodeError("the node is compiled: g++ is missing; apt install g++")
    about = f"{sys.version} {prefix} {COMPILED} {_messages()}"
    into = cache() / f"node-{_digest([*sources, *headers], about)}"
    if not into.is_dir():
        _whole(into, lambda at: compile_program(sources, at, into, "policy_node"))
    return into / "policy_node"


def compile_bundle(bundle: Bundle) -> Path:
    """The bundle's library for this computer, compiled if it is not there yet."""
    about = _digest([*C_SOURCES.rglob("*.[ch]"), *C_SOURCES.glob("*.py")], bundle.digest)
    into, name = cache() / f"bundle-{about}", f"{Path(bundle.path).name.partition('.')[0]}.so"
    if not into.is_dir():
        _whole(into, lambda at: compile_native(bundle, at / name))
    return into / name


def parameter_file(
    contract: Contract,
    library: Path | str = "",
    given: Mapping[str, str] | None = None,
    command_message: str = "",
    twist: str = "TwistStamped",
    constant: Sequence[str] = (),
) -> str:
    """Where the node has the signals and commands of a contract, as a file of parameters in YAML.

    ``given``, ``twist`` and ``command_message`` choose others than the usual ones, as for ``signal_wires`` and
    ``command_wires``; signals that are ``constant`` need none.
    """
    signals = [wire for wire in signal_wires(contract.signals, given, twist) if wire.name not in constant]
    lines = ["/**:", "  ros__parameters:"]
    lines += [f"    bundle: {json.dumps(str(library))}"] if library else []
    for name, wires in (("wires", signals), ("command_wires", command_wires(contract.commands, command_message))):
        lines += [f"    {name}:", *(f"      - {json.dumps(f'{wire.name}={wire}')}" for wire in wires)]
    return "\n".join(lines) + "\n"


def _messages() -> Path | None:
    """Where robo_rl_msgs were built; None: they were not."""
    try:
        built = folder(PACKAGE, definitions(PACKAGE))
    except InterfaceError:
        return None
    return built if built.is_dir() else None


def _whole(into: Path, make: Callable[[Path], object]) -> None:
    """A folder that is made whole or not at all."""
    into.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=into.parent))
    try:
        make(made)
        if not into.is_dir():
            made.rename(into)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _digest(files: Sequence[Path], about: str) -> str:
    found = hashlib.sha256(about.encode())
    for file in sorted(files):
        found.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def compile_program(sources: Sequence[Path], at: Path, into: Path, name: str) -> Path:
    """Compile a program on rcl in the folder ``at``, for use in ``into``, where it may be moved. NativeNodeError if the
    compiler refuses it.
    """
    prefix, messages = Path(sys.prefix), _messages()
    include = [f"-I{SOURCES / 'include'}", f"-I{SOURCES / 'node'}", f"-I{C_SOURCES}"]
    include += [word for path in (prefix / "include").iterdir() if path.is_dir() for word in ("-isystem", str(path))]
    include += ["-isystem", str(messages)] if messages else []
    objects = [at / f"{source.stem}.o" for source in sources]
    commands = [
        [*COMPILED, *include, str(source), "-o", str(made)] for source, made in zip(sources, objects, strict=True)
    ]
    _run(commands, os.cpu_count() or 1)
    of_python = [*(prefix / "lib").glob("lib*__rosidl_generator_py.so"), *(messages.glob("*.so") if messages else ())]
    stand_ins = _python_symbols(at, of_python)
    wheels = sorted((prefix / "lib").glob("python3*/site-packages/ros_*.libs"))
    # DT_RPATH counts for the libraries' own dependencies, and for dlopen; DT_RUNPATH does not
    built = [messages] if messages else []
    where = [f"-Wl,--disable-new-dtags,-rpath,{path}" for path in (into, *built, prefix / "lib", *wheels)]
    where += [f"-Wl,-rpath-link,{path}" for path in (prefix / "lib", *wheels)]
    linked = [f"-l{name}" for name in (*LIBRARIES, *(f"{name}__rosidl_typesupport_cpp" for name in MESSAGES))]
    linked += [f"-L{messages}", f"-l{PACKAGE}__rosidl_typesupport_fastrtps_c"] if messages else []
    link = ["g++", "-o", at / name, *objects, "-Wl,--no-as-needed", stand_ins, "-Wl,--as-needed"]
    _run([[*map(str, link), f"-L{prefix / 'lib'}", *where, *linked, "-ldl", "-pthread"]], 1)
    for made in objects:
        made.unlink()
    return at / name


def _python_symbols(at: Path, libraries: Sequence[Path]) -> Path:
    """A library of the names of Python's interpreter that ``libraries`` of messages ask for, though no message in C++
    ever calls them: rcl's own needs those of messages in Python.
    """
    found = subprocess.run(
        ["nm", "-D", "--undefined-only", *map(str, libraries)], capture_output=True, text=True, check=True
    ).stdout
    names = sorted(set(re.findall(r" U (_?Py\w+)", found)))
    data = [name for name in names if any(part in name for part in DATA)]
    lines = ["#include <stdlib.h>", *(f"char {name}[256];" for name in data)]
    lines += [f"void {name}(void) {{ abort(); }}" for name in names if name not in data]
    source, library = at / "python_symbols.c", at / "libpython_symbols.so"
    source.write_text("\n".join(lines) + "\n")
    _run([["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", str(source), "-o",
           str(library)]], 1)  # fmt: skip
    return library


def _run(commands: Sequence[Sequence[str]], at_once: int) -> None:
    """Run compilers, some ``at_once``. NativeNodeError with what the first one to fail has told."""
    waiting: list[Sequence[str]] = list(commands)
    running: list[subprocess.Popen[str]] = []
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(subprocess.Popen(waiting.pop(0), stderr=subprocess.PIPE, text=True))
        process = running.pop(0)
        _, error = process.communicate()
        if process.returncode:
            for other in running:
                other.kill()
                other.wait()
            raise NativeNodeError(f"the node does not compile:\n{error[:2000]}")
