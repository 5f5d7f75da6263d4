"""What is wrong is told in one sentence on standard error, with exit code 1, before anything is computed or written."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from robo_rl.cli import main

ROOT = Path(__file__).parents[1]

REFUSALS = {
    "train nosuch": "task 'nosuch' is not known; expected one of",
    "train quadrotor-hover --seed -1": "seed is -1; expected 0 to 1048575",
    "train quadrotor-hover --episodes -5": "--episodes is -5; expected 0 or more",
    "train quadrotor-hover --checkpoint-seconds -1": "--checkpoint-seconds is -1; expected a positive number",
    "train quadrotor-hover --runs /proc/nosuch": "/proc/nosuch: No such file or directory",
    "train quadrotor-hover --ranges missing.toml": "missing.toml: the file does not exist",
    "train quadrotor-hover --robot go2": "robot 'go2' is of the kind 'legged'; expected 'multirotor'",
    "train quadrotor-hover --begin-from nosuch": "nosuch/run.json does not exist; expected the folder of a run",
    "train quadrotor-hover --robot nosuch.toml": "there is no such file; expected the path of a card, *.toml",
    "train go2-flat --apg.updates 3": "--apg.updates is given, but the algorithm is ppo; expected --ppo.… or",
    "train quadrotor-hover --ppo.updates=3": "--ppo.updates is given, but the algorithm is apg; expected --apg.… or",
    "train go2-flat --robot biped/card.toml": "biped has 2 feet; expected four legs of three joints each",
    "train go2-recover --robot biped/card.toml": "biped has 2 feet; expected four legs of three joints each",
    "resume nosuch": "nosuch/run.json does not exist; expected the folder of a run",
    "evaluate nosuch": "'nosuch' is neither a run's folder nor a .onnx file",
    "evaluate classical": "a classical controller belongs to a task; expected --task",
    "evaluate zoo:nosuch": "'nosuch' is not one of the zoo's policies",
    "evaluate zoo:quadrotor-hover --ground": "--ground is for tasks on rough ground; 'quadrotor-hover' is not one",
    "evaluate zoo:quadrotor-hover --against zoo:go2-flat": "reads the signal 'joint_position' (12,); the task",
    "evaluate zoo:quadrotor-hover --task go2-flat": "robot 'crazyflie' is of the kind 'multirotor'; expected 'legged'",
    "evaluate zoo:quadrotor-hover --fixed wind nan": "fixed: wind is nan; expected a finite number",
    "evaluate zoo:quadrotor-hover --seconds 0": "seconds is 0; expected 0.02 to 3600",
    "play zoo:quadrotor-hover --video nosuch/x.mp4": "the folder 'nosuch' does not exist: make it first",
    "play zoo:quadrotor-hover --video x.avi": "--video is 'x.avi'; expected a name that ends in .mp4 or .gif",
    "play zoo:quadrotor-hover --switch zoo:go2-flat": "reads the signal 'joint_position' (12,); the task",
    "play zoo:quadrotor-hover --port 99999": "--port is 99999; expected 1 to 65535",
    "robots crazyflie --picture nosuch/x.png": "the folder 'nosuch' does not exist: make it first",
    "robots nosuch": "robot 'nosuch' is not known; expected one of",
    "export zoo:quadrotor-hover": "is exported already; say with --out where to write it",
    "inspect biped/card.toml": "no digest in it; expected a whole bundle",
    "inspect biped": "biped: it is a folder; expected a bundle (*.onnx), as 'robo-rl export' writes it of a run",
    "ros policy nosuch.onnx": "nosuch.onnx: there is no such file; expected a bundle",
    "new dog --urdf nosuch.urdf": "nosuch.urdf: there is no such file; expected an MJCF or URDF file",
    "sysid biped": "biped: it is a folder; expected a log (*.mcap), as --record",
    "verify nosuch.onnx": "nosuch.onnx: there is no such file; expected a bundle",
    "verify zoo:quadrotor-hover --episodes 0": "--episodes is 0; expected at least 1",
    "verify zoo:quadrotor-hover --task inside": "its task is not from a user's own file; leave --task out",
    "report": "report needs the folder of a run or an .onnx file",
    "report zoo:quadrotor-hover --out nosuch/x.html": "the folder 'nosuch' does not exist: make it first",
    "report zoo:quadrotor-hover zoo:go2-flat": "is of task and robot ('go2-flat', 'go2'); expected ('quadrotor-hover'",
    "transfer zoo:quadrotor-hover --engines nosuch": "--engines: 'nosuch' is not one of",
    "transfer zoo:quadrotor-hover --plot x.pdf": "--plot is 'x.pdf'; expected a name that ends in .png or .svg",
    "firmware zoo:quadrotor-hover --fly -3": "--fly is -3; expected 0 or more",
    "firmware zoo:quadrotor-hover --clock-mhz 0": "--clock-mhz is 0; expected a positive number",
    "firmware zoo:quadrotor-hover --precision int8 --budget -1": "--budget is -1; expected a positive number",
    "compress zoo:quadrotor-hover --layers 0": "--layers is 0; expected at least 1",
    "compress zoo:quadrotor-hover --flash big": "flash is 'big'; expected bytes, like 8192 or 8k",
    "record zoo:quadrotor-hover --out x.mcap --seconds 0": "--seconds is 0; expected 1 to 3600",
    "replay a.mcap b.mcap c.mcap policy.onnx": "4 files, 3 of them sessions; expected one session (*.mcap) and one",
    "replay a.mcap b.mcap": "2 files, 2 of them sessions; expected one session (*.mcap) and one bundle",
    "sysid nosuch.mcap": "nosuch.mcap: the file does not exist; expected a log",
    "distill nosuch": "nosuch/run.json does not exist; expected the folder of a run",
    "sign nosuch.onnx --key nosuch": "nosuch.onnx: there is no such file; expected a bundle",
    "doctor nosuch.onnx": "nosuch.onnx: there is no such file; expected a bundle",
    "bench --task nosuch": "task 'nosuch' is not known; expected one of",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a robot on two legs."""
    shutil.copytree(ROOT / "examples" / "own_quadruped", tmp_path / "biped")
    card = tmp_path / "biped" / "card.toml"
    text = card.read_text()
    (feet,) = re.findall(r"^feet = .*$", text, re.M)
    card.write_text(text.replace(feet, 'feet = ["LF_foot", "RF_foot"]'))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", REFUSALS)
def test_is_refused_in_one_sentence(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(SystemExit) as done:
        main(shlex.split(line))
    out, err = capsys.readouterr()
    (sentence,) = err.splitlines()
    assert sentence.startswith(f"robo-rl {line.split()[0]}: ")
    assert REFUSALS[line] in sentence
    assert done.value.code == 1
    assert out == ""
    assert sorted(folder.rglob("*")) == before


def test_meshes_that_are_elsewhere_are_left_out_of_a_picture(folder: Path) -> None:
    model = folder / "biped" / "quadruped.urdf"
    hull = '<geometry><mesh filename="package://dog/meshes/trunk.dae"/></geometry>'
    parts = f"<visual>{hull}</visual><collision>{hull}</collision></link>"
    model.write_text(model.read_text().replace("</link>", parts, 1))
    with pytest.raises(SystemExit) as done:
        main(["robots", "biped/card.toml", "--picture", "dog.png"])
    assert done.value.code == 0
    assert (folder / "dog.png").stat().st_size > 1000
