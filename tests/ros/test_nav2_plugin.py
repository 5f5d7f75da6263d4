"""The plug-in of Nav2 makes the same of a path as the FollowPath server, and its description fits. Without ROS."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.path import AHEAD, SIZE
from robo_rl.ros.path_following import FollowedPath, PathError, Pose, Rules

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ros2_ws/src/robo_rl_controller"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reads a radius, points and poses; prints what the C++ makes of them."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++; install it with: apt-get install g++")
    made = tmp_path_factory.mktemp("path") / "path"
    sources = [PACKAGE / "nav2/followed_path.cpp", ROOT / "tests/ros/cpp/followed_path.cpp"]
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    subprocess.run(["g++", *strict, *sources, "-o", made], check=True)
    return made


def told(program: Path, radius: float, points: np.ndarray, poses: np.ndarray) -> list[str]:
    numbers = [radius, len(points), *points.ravel(), len(poses), *poses.ravel()]
    text = " ".join(float(number).hex() for number in numbers)
    return subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def wandering(generator: np.random.Generator) -> np.ndarray:
    """A path whose turns are of any size, some of them back."""
    turns = generator.normal(scale=0.3, size=60) + (generator.random(60) < 0.06) * np.pi
    steps = generator.uniform(0.0, 0.12, 60)[:, None]
    heading = np.cumsum(turns)
    return np.cumsum(steps * np.stack([np.cos(heading), np.sin(heading)], -1), 0)


@pytest.mark.parametrize("seed", range(12))
def test_points_ahead_are_those_of_the_server(program: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)
    points, radius = wandering(generator), generator.uniform(0.05, 0.3)
    places = points[np.linspace(0, 59, 80).astype(int)] + generator.normal(scale=0.03, size=(80, 2))
    poses = np.concatenate([places, generator.uniform(-4, 4, (80, 1))], 1)
    path = FollowedPath(points, Pose(*poses[0]), radius / SIZE * np.array(AHEAD), radius / SIZE, Rules())
    for line, pose in zip(told(program, radius, points, poses), poses, strict=True):
        left, *ahead = map(float, line.split())
        progress = path.update(Pose(*pose))
        np.testing.assert_allclose(left, progress.left, atol=1e-9)
        np.testing.assert_allclose(ahead, progress.ahead.ravel(), atol=1e-5)


LINE = np.stack([np.linspace(0, 2, 21), np.zeros(21)], -1)
ODD = LINE.copy()
ODD[3, 1] = np.nan


@pytest.mark.parametrize(
    ("points", "pose"),
    [(LINE[:0], (0, 0)), (ODD, (0, 0)), (LINE * 30, (0, 0)), (LINE, (0, 1.5)), (np.tile(LINE, (1000, 1)), (0, 0))],
    ids=["empty", "nan", "jumps", "far", "many"],
)
def test_what_is_no_path_is_refused_in_the_same_sentence(program: Path, points: np.ndarray, pose: tuple) -> None:
    with pytest.raises(PathError) as refused:
        FollowedPath(points, Pose(*pose, 0.0), np.array(AHEAD), 1.0, Rules())
    (line,) = told(program, SIZE, points, np.array([[*pose, 0.0]]))
    assert (
        line.partition(" is ")[0].partition(" are ")[0] == str(refused.value).partition(" is ")[0].partition(" are ")[0]
    )


def test_the_description_names_the_class_and_its_library() -> None:
    library = ET.parse(PACKAGE / "nav2_plugins.xml").getroot()
    (plugin,) = library.findall("class")
    exported = f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
    assert exported in (PACKAGE / "nav2/path_controller.cpp").read_text()
    made = (PACKAGE / "CMakeLists.txt").read_text()
    assert re.search(rf"add_library\({library.get('path')} SHARED nav2/path_controller.cpp", made)
    assert "pluginlib_export_plugin_description_file(nav2_core nav2_plugins.xml)" in made
