"""The wheel, in a fresh environment without torch: what a robot's computer and a first look need."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "mujoco", "scipy", "matplotlib", "onnx", "gymnasium", "viser", "bokeh")
RUN = """
import os
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in os.environ["ABSENT"].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from robo_rl.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what git has, by the setuptools that are here."""
    pytest.importorskip("setuptools", minversion="77", reason="needs setuptools: pip install 'setuptools>=77,<80'")
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs a clone")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_symlink():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / name).symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file() and name.split("/")[0] not in ("tests", "docs", "benchmarks"):
            copy = folder / "source" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
    words = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
    made = subprocess.run(
        [sys.executable, "-m", *words, str(folder / "source")], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel is installed, alone."""
    folder = tmp_path_factory.mktemp("site")
    words = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run([sys.executable, "-m", *words], check=True)
    return folder


def run(place: Path, folder: Path, *words: str, but: str = "") -> subprocess.CompletedProcess[str]:
    """A command of the installed package, where nothing heavy is installed ``but`` this."""
    absent = " ".join(name for name in HEAVY if name != but)
    environment = {**os.environ, "PYTHONPATH": str(place), "ABSENT": absent}
    return subprocess.run(
        [sys.executable, "-c", RUN, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_wheel_has_what_is_needed_and_no_pages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"robo_rl"}
    packages = ["sim", "controllers", "robo_rl", "deploy", "ros2_ws/src/robo_rl_ros/robo_rl_ros"]
    listed = subprocess.run(["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True)
    pages = re.compile(r"deploy/build/c/fuzz/.*")
    had = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file() and not pages.fullmatch(name)}
    had = {name.replace("ros2_ws/src/robo_rl_ros/robo_rl_ros/", "ros/") for name in had}
    had = {name if name.startswith("robo_rl/") else f"robo_rl/{name}" for name in had}
    assert not had - set(names), "pyproject.toml: package-data lacks them"
    assert wheel.stat().st_size < 20 << 20


@pytest.mark.slow
def test_zoo_and_inspect_need_nothing_heavy(place: Path, tmp_path: Path) -> None:
    listed = run(place, tmp_path, "zoo", "--json")
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout)["policies"]
    assert "position error" in listed.stderr
    shown = run(place, tmp_path, "inspect", "zoo:quadrotor-hover")
    assert shown.returncode == 0, shown.stderr
    assert "rotor_speed" in shown.stdout


@pytest.mark.slow
def test_tasks_and_robots_are_listed_without_what_simulates_them(place: Path, tmp_path: Path) -> None:
    for words in (["tasks"], ["robots"], ["robots", "panda", "go2"]):
        told = run(place, tmp_path, *words, "--json")
        assert told.returncode == 0, told.stderr
        here = subprocess.run([sys.executable, "-m", "robo_rl", *words, "--json"], capture_output=True, cwd=ROOT)
        assert json.loads(told.stdout) == json.loads(here.stdout)


@pytest.mark.slow
def test_firmware_needs_the_extra_firmware_alone(place: Path, tmp_path: Path) -> None:
    made = run(place, tmp_path, "firmware", "zoo:quadrotor-hover", "--out", "c", but="onnx")
    assert made.returncode == 0, made.stderr
    assert list((tmp_path / "c").rglob("*.c"))
    extras = re.findall(r"^firmware = (.*)$", (ROOT / "pyproject.toml").read_text(), re.M)
    assert extras == ['["onnx>=1.17"]']


@pytest.mark.slow
def test_the_wheel_tells_who_made_it_and_shows_the_readme(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    told = email.message_from_bytes(archive.read(name))
    assert told["Description-Content-Type"] == "text/markdown"
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Author"]
    assert len(told.get_all("Classifier", [])) > 5
    assert told.get_payload().startswith("# robo-rl")


@pytest.mark.slow
def test_what_needs_more_says_how_to_get_it(place: Path, tmp_path: Path) -> None:
    refused = run(place, tmp_path, "train", "quadrotor-hover")
    assert refused.returncode == 1
    (sentence,) = refused.stderr.splitlines()
    assert sentence.startswith("robo-rl train needs the package '")
    assert sentence.endswith("pip install 'robo-rl[train]'")
