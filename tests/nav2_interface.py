"""nav2_msgs/action/FollowPath, made with rosidl's generators as a distribution makes it: PyPI has no nav2_msgs.

The fields are those that Nav2 documents for Jazzy (docs.ros.org/en/jazzy/p/nav2_msgs). C and C++ of the generators are
compiled into one library; it takes three seconds.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

PACKAGE, NAME = "nav2_msgs", "FollowPath"
FOLLOW_PATH = """\
nav_msgs/Path path
string controller_id
string goal_checker_id
string progress_checker_id
---
uint16 NONE=0
uint16 UNKNOWN=100
uint16 INVALID_CONTROLLER=101
uint16 TF_ERROR=102
uint16 INVALID_PATH=103
uint16 PATIENCE_EXCEEDED=104
uint16 FAILED_TO_MAKE_PROGRESS=105
uint16 NO_VALID_CONTROL=106
uint16 CONTROLLER_TIMED_OUT=107
std_msgs/Empty result
uint16 error_code
string error_msg
---
float32 distance_to_goal
float32 speed
"""
USED = ("nav_msgs", "std_msgs", "builtin_interfaces", "action_msgs", "unique_identifier_msgs", "service_msgs",
        "geometry_msgs")  # fmt: skip
KINDS = ("rosidl_generator_c", "rosidl_generator_py", "rosidl_typesupport_fastrtps_c", "rosidl_typesupport_c",
         "rosidl_typesupport_introspection_c")  # fmt: skip
SUPPORTS = ["rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c"]
COMPILED = ("gcc", "-O0", "-w", "-fPIC", "-c")


def make(folder: Path) -> dict[str, str]:
    """The package in ``folder``, for this process, too; returns what others need in their environment."""
    prefix = Path(sys.prefix)
    os.environ.setdefault("AMENT_PREFIX_PATH", str(prefix))
    package = folder / PACKAGE
    apart = folder / "introspection" / PACKAGE
    sources = _generated(folder, package, apart, str(prefix / "share"))
    include = [folder, folder / "introspection", prefix / "include", *(prefix / "include").iterdir()]
    include += [Path(sysconfig.get_path("include")), Path(np.get_include())]
    flags = [f"-I{path}" for path in include]
    objects = []
    for number, source in enumerate(sources):
        objects.append(folder / f"{number}.o")
        subprocess.run([*COMPILED, *flags, source, "-o", objects[-1]], check=True)
    linked = [f"-l:lib{used}__{kind}.so" for used in USED for kind in KINDS]
    linked += [f"-l:lib{name}.so" for name in (*KINDS[2:], "rosidl_runtime_c", "fastcdr", "rcutils")]
    where = [f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}"]
    for support in SUPPORTS:
        name = f"lib{PACKAGE}__{support}.so"
        named = f"-Wl,-soname,{name}"
        subprocess.run(["g++", "-shared", named, "-o", folder / name, *objects, *where, *linked], check=True)
        ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)  # this process finds it by its name from now on
    extension = f"{PACKAGE}_s__rosidl_typesupport_c{sysconfig.get_config_var('EXT_SUFFIX')}"
    shutil.copy(folder / name, package / extension)
    (package / "__init__.py").touch()
    known = [path for path in (os.environ.get("LD_LIBRARY_PATH"),) if path]
    return {"LD_LIBRARY_PATH": os.pathsep.join([str(folder), *known])}


def _generated(folder: Path, package: Path, apart: Path, share: str) -> list[Path]:
    """C and C++ of the action. The generators are called one by one: their command line finds each of them twice."""
    from rosidl_adapter.action import convert_action_to_idl
    from rosidl_generator_c.cli import GenerateC
    from rosidl_generator_py.cli import GeneratePython
    from rosidl_generator_type_description.cli import HashTypeDescription
    from rosidl_typesupport_c.cli import GenerateCTypesupport
    from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport
    from rosidl_typesupport_introspection_c.cli import GenerateIntrospectionCTypesupport

    given = folder / "given" / "action" / f"{NAME}.action"
    for made in (given.parent, package / "action", package / "msg", apart):
        made.mkdir(parents=True)
    given.write_text(FOLLOW_PATH)
    convert_action_to_idl(given.parents[1], PACKAGE, given.relative_to(given.parents[1]), package / "action")
    files = [f"{package}:action/{NAME}.idl"]
    hashes = HashTypeDescription("").generate_type_hashes(PACKAGE, files, [share], package)
    GenerateC("").generate(PACKAGE, files, [share], package, hashes)
    GeneratePython("", typesupport_implementations=["rosidl_typesupport_c"]).generate(PACKAGE, files, [share], package)
    GenerateCTypesupport("", typesupport_implementations=SUPPORTS).generate(PACKAGE, files, [share], package)
    GenerateFastRTPSCTypesupport("").generate(PACKAGE, files, [share], package)
    GenerateIntrospectionCTypesupport("").generate(PACKAGE, files, [share], apart)
    return [file for at in (package, apart) for end in ("*.c", "*.cpp") for file in sorted(at.rglob(end))]
