"""What colcon, ament and the launch system read of the workspace fits together. No ROS is needed."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "ros2_ws/src"
PACKAGES = sorted(path.parent for path in SOURCES.glob("*/setup.py"))
"""Those of Python; tests/ros/test_messages.py has that of messages."""
NAMES = [path.name for path in PACKAGES]
OURS = {"robo_rl", "robo_rl_ros"}
FROM_PYPI = {"numpy", "torch", "scipy", "onnxruntime"}
"""Imports that rosdep has no keys for."""
GENERATORS = "rosidl_"
"""Imports of this beginning are used only where there is no distribution, whose colcon has them."""


def imports(files: list[Path]) -> set[str]:
    """Packages of others, without the standard library, that files import anywhere."""
    import sys

    found: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"__future__"}


def setup_call(package: Path) -> dict[str, ast.expr]:
    tree = ast.parse((package / "setup.py").read_text())
    (call,) = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "setup"]
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_manifest_and_setup_agree(package: Path):
    manifest, call = ET.parse(package / "package.xml").getroot(), setup_call(package)
    assert manifest.get("format") == "3"
    assert manifest.findtext("name") == package.name
    assert manifest.findtext("version") == ast.literal_eval(call["version"])
    assert manifest.findtext("license") == ast.literal_eval(call["license"])
    assert manifest.findtext("export/build_type") == "ament_python"
    assert (package / "resource" / package.name).is_file()


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_whatever_is_imported_is_a_dependency_in_the_manifest(package: Path):
    declared = {one.text for one in ET.parse(package / "package.xml").getroot().findall("exec_depend")}
    files = [*(package / package.name).glob("*.py"), *(package / "launch").glob("*.py")]
    needed = {name for name in imports(files) - OURS - FROM_PYPI if not name.startswith(GENERATORS)}
    assert needed <= declared | {package.name}


def test_every_entry_point_is_a_function_that_exists():
    points = ast.literal_eval(setup_call(SOURCES / "robo_rl_ros")["entry_points"])["console_scripts"]
    assert {point.split(" = ")[0] for point in points} >= {"policy_node", "twin_node"}
    for point in points:
        module, function = point.split(" = ")[1].split(":")
        tree = ast.parse(
            (
                SOURCES / "robo_rl_ros" / f"{module.replace('robo_rl.ros', 'robo_rl_ros').replace('.', '/')}.py"
            ).read_text()
        )
        assert function in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def constants(tree: ast.Module, function: str) -> set[str]:
    """The first arguments of all calls of ``function`` that are written as texts."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == function and n.args]
    return {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}


@pytest.mark.parametrize("file", sorted((SOURCES / "robo_rl_bringup/launch").glob("*.launch.py")), ids=lambda f: f.name)
def test_a_launch_file_starts_entry_points_and_describes_every_argument(file: Path):
    tree = ast.parse(file.read_text())
    points = ast.literal_eval(setup_call(SOURCES / "robo_rl_ros")["entry_points"])["console_scripts"]
    calls = [{k.arg: k.value for k in node.keywords} for node in ast.walk(tree) if isinstance(node, ast.Call)]
    nodes = [call for call in calls if "executable" in call]
    ours = [call for call in nodes if ast.literal_eval(call["package"]) == "robo_rl_ros"]
    started = {ast.literal_eval(call["executable"]) for call in ours}
    assert started <= {point.split(" = ")[0] for point in points}
    (told,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ARGUMENTS"
    ]
    assert constants(tree, "LaunchConfiguration") <= set(told) | constants(tree, "DeclareLaunchArgument")
    assert all(text for _, text in told.values())
    assert "generate_launch_description" in [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]


@pytest.mark.parametrize("file", sorted((SOURCES / "robo_rl_bringup/launch").glob("*.launch.py")), ids=lambda f: f.name)
def test_the_launch_system_reads_a_launch_file(file: Path):
    pytest.importorskip("launch_ros", reason="ROS's launch system is missing: make test ROS_WHEELS=FOLDER")
    from launch.actions import DeclareLaunchArgument

    read = runpy.run_path(str(file))
    entities = read["generate_launch_description"]().entities
    assert {one.name for one in entities if isinstance(one, DeclareLaunchArgument)} >= set(read["ARGUMENTS"])


IMAGES = sorted((ROOT / "docker").glob("*.Dockerfile"))
DISTRIBUTIONS = ("humble", "jazzy", "kilted")


def instructions(file: Path) -> list[str]:
    """Those of a Dockerfile, each in one line, without comments."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    return [one for one in "\n".join(lines).replace("\\\n", " ").splitlines() if one]


@pytest.mark.parametrize("file", IMAGES, ids=lambda file: file.name)
def test_one_dockerfile_is_for_every_distribution_and_copies_what_is_there(file: Path):
    found = instructions(file)
    assert found[:2] == ["ARG DISTRIBUTION=jazzy", "FROM ros:${DISTRIBUTION}-ros-base"]
    assert not [one for one in found[2:] if any(name in one for name in DISTRIBUTIONS) and "if [" not in one]
    for copy in (one.split()[1:-1] for one in found if one.startswith("COPY ")):
        assert all((ROOT / path).exists() for path in copy), copy
    entry = (ROOT / "docker/entrypoint.sh").read_text()
    assert "$ROS_DISTRO" in entry
    assert not any(name in entry for name in DISTRIBUTIONS)


def test_the_image_of_the_cpp_has_all_that_the_core_is_compiled_from(tmp_path: Path):
    if shutil.which("g++") is None:
        pytest.skip("there is no g++; install it with: apt-get install g++")
    for _, *paths, to in (line.split() for line in instructions(ROOT / "docker/cpp.Dockerfile") if "COPY" in line):
        for path in paths:
            target = tmp_path / to[1:] / ("" if (ROOT / path).is_dir() or not to.endswith("/") else Path(path).name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / path).is_dir():
                shutil.copytree(ROOT / path, target)
            else:
                shutil.copy(ROOT / path, target)
    package = tmp_path / "robo-rl/ros2_ws/src/robo_rl_controller"
    shared = package / "../../../deploy/build/c"  # as in its CMakeLists.txt
    words = ["g++", "-std=c++17", "-fsyntax-only", "-I", package / "include", "-I", shared]
    subprocess.run([*words, *package.glob("src/*.cpp")], check=True)


def test_what_the_image_of_a_robots_computer_copies_and_installs_is_there():
    text = (ROOT / "docker/robot.Dockerfile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (extra,) = re.findall(r"'/robo-rl\[(\w+)\]'", text)
    assert not [need for need in extras[extra] if need.startswith(("torch", "mujoco", "ros-"))]
    for path in re.findall(r"(?<!/opt)/robo-rl/([\w./]+)", text):
        assert (ROOT / path).exists(), path
