"""A kind of robots is one folder in each package that knows of it: without those, all else works as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from robo_rl.contract.kinds import of_kind

ROOT = Path(__file__).parents[1]
KIND, ROBOT = "omni_base", "rosbot_xl"
PACKAGES = ("robo_rl", "sim", "controllers", "deploy", "ros2_ws/src/robo_rl_ros/robo_rl_ros")
REST = """
import robo_rl
from robo_rl import zoo
from robo_rl.controllers import fallback
from robo_rl.evaluate.benchmark import peer_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.report import kind_report
from robo_rl.ros.twins import make_twin
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots import card_types, load_robot, robot_names
from robo_rl.sim.tasks.beginning import beginning
from robo_rl.sim.tasks.loading import load_task, task_names

print(robo_rl.__file__)
print(*card_types())
print(*robot_names())
print(*task_names())
for name in ("turtlebot4", "f1tenth"):
    card = load_robot(name)
    assert load_task(beginning(card).task.name, name).spec.robot.name == name
    kind_report(card.kind), peer_of(card.kind)
assert fallback(Bundle.read(zoo.located("zoo:car-race")).contract) is not None
make_twin("diff-nav")
env = VecEnv(load_task("mobile-place"), 2, compiled=False)
env.step({name: value.expand(2, -1) for name, value in env.functions.idle.items()})
"""


def without_the_kind(folder: Path) -> Path:
    """A copy of the product's code without the folders of a kind, and without its robot."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "zoo")
        shutil.copytree(ROOT / package, folder / package, symlinks=True, ignore=ignored)
    (folder / "robo_rl" / "zoo").symlink_to(ROOT / "robo_rl" / "zoo")
    removed = [path for path in folder.rglob("*") if path.is_dir() and path.name in (KIND, ROBOT)]
    for path in removed:
        shutil.rmtree(path)
    assert len(removed) == 6
    return folder


def test_nothing_depends_on_the_folders_of_a_kind(tmp_path: Path) -> None:
    """The proof that a kind is added by its folders alone: what is left without them has not been told of it."""
    copy = without_the_kind(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", REST], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where, kinds, robots, tasks = (line.split() for line in done.stdout.splitlines()[:4])
    assert where == [str(copy / "robo_rl" / "__init__.py")]
    assert KIND not in kinds
    assert ROBOT not in robots
    assert "mobile_base" in kinds
    assert "turtlebot4" in robots
    assert "omni-nav" not in tasks
    assert "diff-nav" in tasks


def test_no_other_code_names_the_kind() -> None:
    """But ``former_names``, which is history."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if KIND not in path.parts]
    assert [path.name for path in files if KIND in path.read_text()] == ["former_names.py"]


def test_only_a_folder_is_found_by_its_name() -> None:
    """A contract's kind is a stranger's text: it leads to no other module."""
    assert of_kind("robo_rl.controllers", "multirotor").FALLBACK is not None
    for kind in ("mppi", "gate.safety", "", "..sim", "__init__"):
        assert of_kind("robo_rl.controllers", kind) is None
