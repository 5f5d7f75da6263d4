"""``robo-rl new``: a project that works from the start, for every robot that it can begin with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from robo_rl.commands.own_robots.new import main
from robo_rl.sim.robots import robot_names
from robo_rl.sim.tasks.checking import check
from robo_rl.sim.tasks.loading import load_task
from tests.suite import representatives

BASES = {
    "multirotor": "quadrotor-hover", "legged": "go2-flat", "arm": "arm-reach", "car": "car-race",
    "mobile_base": "diff-nav", "mobile_manipulator": "mobile-place", "omni_base": "omni-nav", "motor": "pmsm-current",
    "two_arms": "arms-reach",
}  # fmt: skip


OFTEN = ("crazyflie", "go2", "so101", "f1tenth", "turtlebot4", "turtlebot3_manipulation", "rosbot_xl", "gearmotor_37d",
         "bi_so101")  # fmt: skip
"""One of each kind; the others before a release."""


@pytest.mark.parametrize("like", representatives(robot_names(), OFTEN))
def test_card_and_task_of_the_project_fit_together(
    like: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tmp_path / "my_robot", like, json=True) == 0
    made = json.loads(capsys.readouterr().out)
    task = load_task(made["task"])
    check(task)
    assert task.spec.robot.name == "my_robot"
    others = {"g1": "g1-walk", "g1_29": "g1-walk", "gearmotor_37d": "dc-speed", "ec45_flat": "bldc-speed"}
    theirs = load_task(others.get(like) or BASES[task.spec.robot.kind], like)
    assert task.spec.robot.facts().actuators == theirs.spec.robot.facts().actuators
    assert {Path(file).name for file in made["files"]} >= {"my_robot.toml", "my_robot_task.py", "README.md"}


def test_ci_of_the_project_installs_what_its_test_needs_and_runs_it(tmp_path: Path) -> None:
    main(tmp_path / "my_robot")
    workflow = yaml.safe_load((tmp_path / "my_robot/.github/workflows/test.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    assert steps == ['pip install "robo-rl[train] @ ${{ vars.ROBO_RL }}" pytest', "pytest"]
    assert "runs/" in (tmp_path / "my_robot/.gitignore").read_text().split()


@pytest.mark.slow
def test_the_project_s_own_tests_pass(tmp_path: Path) -> None:
    main(tmp_path / "my_robot")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "my_robot")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.parametrize(
    ("name", "like", "sentence"),
    [
        ("My-Robot", "crazyflie", "the name is 'My-Robot'; expected small letters, digits and _"),
        ("go2", "go2", "the name is 'go2'; expected small letters, digits and _, and none of"),
        ("here", "crazyflie", "here exists; expected the name of a new folder"),
        ("mine", "nosuch", "--like is 'nosuch'; expected one of"),
    ],
)
def test_what_can_not_be_made_is_refused(name: str, like: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(ValueError, match=sentence):
        main(tmp_path / name, like)
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
