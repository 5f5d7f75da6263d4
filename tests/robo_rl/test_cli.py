"""The ``robo-rl`` command: help, exit codes, and errors that are one sentence."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from robo_rl.cli import COMMANDS, main


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as exit:
        main(list(words))
    return int(exit.value.code or 0)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "--help") == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert text.startswith(f"usage: robo-rl {name} ")
    if name not in ("ros", "work"):  # which speak to machines by ROS messages, and by the files of a run
        assert re.search("[Ww]ith --json", text), "it says which keys --json gives"


HELP = """
import sys
from robo_rl.cli import COMMANDS, main

for words in ([], *([name] for name in COMMANDS)):
    try:
        main([*words, "--help"])
    except SystemExit as end:
        assert end.code == 0
    slow = {"torch", "mujoco", "scipy", "matplotlib", "onnxruntime", "rclpy"} & set(sys.modules)
    assert not slow, f"robo-rl {' '.join(words)} --help imports {slow}"
"""


def test_help_imports_nothing_that_takes_long() -> None:
    subprocess.run([sys.executable, "-c", HELP], check=True, capture_output=True)


def test_help_names_every_command_and_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("--help", "-h", "help"):
        assert run(word) == 0
        text = capsys.readouterr().out
        for name in COMMANDS:
            assert re.search(rf"^  {name} +\w", text, re.MULTILINE)
        assert "robo-rl train quadrotor-hover" in text


def test_no_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    assert "usage: robo-rl COMMAND" in capsys.readouterr().out


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fly") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "robo-rl: 'fly' is not a command; robo-rl --help lists the commands\n"
    assert run("trian") == 2
    expected = "robo-rl: 'trian' is not a command; did you mean 'train'?\nrobo-rl --help lists the commands\n"
    assert capsys.readouterr().err == expected, "a sentence that a screen of help does not hide"


def test_an_unknown_option_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tasks", "--colour") == 2
    assert "--colour" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    main(["--version"])
    assert capsys.readouterr().out == f"robo-rl {version('robo-rl')}\n"


REFUSED = [
    (["train", "quadrotor-sleep"], "robo-rl train: task 'quadrotor-sleep' is not known; did you mean"),
    (["train", "quadrotor-hover", "--robot", "kite"], "robo-rl train: robot 'kite' is not known; expected one of"),
    (["train", "quadrotor-hover", "--seed", "-1"], "robo-rl train: seed is -1; expected 0 to"),
    (["train", "quadrotor-hover", "--device", "tpu"], "robo-rl train: device is 'tpu'; expected cpu or cuda"),
    (["resume", "nowhere"], "robo-rl resume: nowhere/run.json does not exist; expected the folder of a run"),
    (["evaluate", "nowhere"], "robo-rl evaluate: 'nowhere' is neither a run's folder nor"),
    (["evaluate", "nowhere.onnx"], "robo-rl evaluate: nowhere.onnx: there is no such file"),
    (
        ["evaluate", "classical"],
        "robo-rl evaluate: a classical controller belongs to a task; expected --task with its name",
    ),
    (
        ["evaluate", "classical", "--task", "quadrotor-hover", "--fixed", "magic", "1"],
        "robo-rl evaluate: fixed: 'magic' is not one of the task's ranges; expected one of [",
    ),
    (
        ["evaluate", "classical", "--task", "quadrotor-hover", "--episodes", "0"],
        "robo-rl evaluate: episodes is 0; expected at least one",
    ),
    (["export", "nowhere"], "robo-rl export: nowhere/run.json does not exist; expected the folder of a run"),
    (["inspect", "nowhere.onnx"], "robo-rl inspect: nowhere.onnx: there is no such file; expected a bundle"),
    (["verify", "nowhere.onnx"], "robo-rl verify: nowhere.onnx: there is no such file; expected a bundle"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_a_wrong_input_is_refused_in_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*words) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("exporting") or captured.out == ""
    assert captured.err.startswith(sentence)
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_damaged_bundle_is_refused_in_one_sentence(
    bundle_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged.onnx"
    data = bytearray(bundle_file.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    for command in ("inspect", "verify", "evaluate"):
        assert run(command, str(damaged)) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith(f"robo-rl {command}: {damaged}: the file was changed or damaged after export")
        assert captured.err.count("\n") == 1


def test_a_damaged_run_is_refused_in_one_sentence(
    trained_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "run"
    shutil.copytree(trained_run, damaged)
    checkpoint = damaged / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    for words in (["resume"], ["evaluate", "--episodes", "5"], ["export"]):
        assert run(words[0], str(damaged), *words[1:]) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"robo-rl {words[0]}: {checkpoint}: not a checkpoint of robo-rl (")
        assert err.count("\n") == 1


def process(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "robo_rl", *words], capture_output=True, text=True, timeout=300)


def test_as_a_process_it_exits_with_these_codes(tmp_path: Path) -> None:
    fine, refused, wrong = process("tasks"), process("inspect", str(tmp_path / "none.onnx")), process("fly")
    assert (fine.returncode, refused.returncode, wrong.returncode) == (0, 1, 2)
    assert "quadrotor-hover" in fine.stdout
    assert (refused.stdout, refused.stderr.count("\n")) == ("", 1)
    assert "Traceback" not in fine.stderr + refused.stderr + wrong.stderr


BLOCKED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Absent())
from robo_rl.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("words", [("robots", "crazyflie"), ("inspect", "zoo:quadrotor-hover")])
def test_a_terminal_that_knows_ascii_alone_shows_the_rest_as_question_marks(words: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "80"}
    command = [sys.executable, "-m", "robo_rl", *words]
    told = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert told.returncode == 0, told.stderr
    assert b"?" in told.stdout + told.stderr
    assert (told.stdout + told.stderr).isascii()


def test_a_missing_package_is_named_with_how_to_install_it() -> None:
    words = [sys.executable, "-c", BLOCKED, "torch", "train", "quadrotor-hover"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert found.returncode == 1
    assert found.stderr == "robo-rl train needs the package 'torch': pip install 'robo-rl[train]'\n"


def test_ctrl_c_in_a_command_that_saves_nothing_ends_it_without_a_traceback() -> None:
    words = [sys.executable, "-m", "robo_rl", "evaluate", "classical", "--task", "quadrotor-hover"]
    running = subprocess.Popen([*words, "--episodes", "50000"], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    first = running.stderr.readline()  # it has begun
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=300)
    assert first.startswith("evaluating")
    assert running.returncode == 130
    assert rest.endswith("robo-rl evaluate: stopped\n")
    assert "Traceback" not in rest


@pytest.mark.parametrize("buffered", [(), ("-u",)])
def test_a_reader_who_has_seen_enough_ends_a_command_quietly(buffered: tuple[str, ...]) -> None:
    ends, begins = os.pipe()
    os.close(ends)  # nobody reads
    told = subprocess.run(
        [sys.executable, *buffered, "-m", "robo_rl", "tasks"], stdout=begins, stderr=subprocess.PIPE, timeout=300
    )
    os.close(begins)
    assert (told.returncode, told.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_pipe_that_broke_elsewhere_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(json: bool = False) -> int:
        raise BrokenPipeError("the pipe to a helper broke")

    monkeypatch.setattr("robo_rl.commands.training.tasks.main", broken)
    assert run("tasks") == 1
    assert capsys.readouterr().err == "robo-rl tasks: the pipe to a helper broke\n"


@pytest.mark.parametrize("words", [["play", "zoo:quadrotor-hover"], ["ros", "panel"]])
@pytest.mark.parametrize("port", ["99999", "-3", "1" + "0" * 400])
def test_a_port_that_cannot_be_is_refused_in_a_sentence(
    words: list[str], port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main([*words, "--port", port])
    assert exit.value.code == 1
    assert "; expected 1 to 65535, or 0 for any free one" in capsys.readouterr().err


@pytest.mark.parametrize("error", [
    MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 74 GiB"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 80000000000 bytes"),
])  # fmt: skip
def test_too_little_memory_is_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*words: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("tyro.cli", refuse)
    with pytest.raises(SystemExit) as ended:
        main(["zoo"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("robo-rl zoo: there is not enough memory (")
