"""What is written for a robot's computer is what systemd and udev take."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.cli import main
from robo_rl.deploy.robot import service

WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_characters="\x7f"), max_size=20)


def unquoted(line: str) -> list[str]:
    """As systemd.syntax and systemd.service say: quotes, C escapes, %% and $$."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)]


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_words_come_out_of_a_unit_as_they_went_in(words: list[str]) -> None:
    assert unquoted(" ".join(map(service.quoted, words))) == words


@pytest.mark.parametrize("word", ["a\nExecStart=/bin/sh", "a\0", "\x1b"])
def test_a_word_with_control_characters_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="characters that a unit can't hold"):
        service.quoted(word)
    with pytest.raises(ValueError, match="characters that a unit can't hold"):
        service.unit("a", ["/bin/true"], "root", word, {})


def test_the_unit_runs_the_node_and_never_starts_it_again_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    out = tmp_path / "out"
    given = ["ros", "install", "zoo:arm-place-so101", "--namespace", "left", "--record", "logs", "--out", str(out)]
    parameters = ["driver:=so101", "port:=/dev/robo-rl-so101", "calibration:=arm.json"]
    with pytest.raises(SystemExit) as ended:
        main([*given, "--parameter", *parameters])
    assert ended.value.code != 0
    assert f"parameter calibration: there is no file {tmp_path / 'work' / 'arm.json'}" in capsys.readouterr().err
    assert not out.exists()
    (tmp_path / "work" / "arm.json").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        main([*given, "--parameter", *parameters])
    assert ended.value.code == 0
    name = "robo-rl-left-arm-place"
    assert {file.name for file in out.iterdir()} == {f"{name}.service", f"{name}-limits.conf", f"99-{name}.rules"}
    lines = (out / f"{name}.service").read_text().splitlines()
    (command,) = [unquoted(line.partition("=")[2]) for line in lines if line.startswith("ExecStart=")]
    assert command[:6] == [sys.executable, "-P", "-m", "robo_rl", "ros", "policy"]
    assert Path(command[6]).is_file()
    assert command[command.index("--parameter") + 1 :] == [
        *parameters[:2], f"calibration:={tmp_path / 'work' / 'arm.json'}",
    ]  # fmt: skip
    assert command[command.index("--record") + 1] == str(tmp_path / "work" / "logs")
    assert "Restart=no" in lines
    assert 'Environment="ROS_DOMAIN_ID=7"' in lines
    rule = (out / f"99-{name}.rules").read_text()
    assert 'ATTRS{idVendor}=="1a86", ATTRS{idProduct}=="55d3", SYMLINK+="robo-rl-so101"' in rule
    printed = capsys.readouterr().out
    assert f"enable --now {name}" in printed
    for file in out.iterdir():
        assert str(file) in printed


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd: apt-get install systemd")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "robo_rl", "ros", "policy", 'a "strange" $name %n.onnx']
    file = tmp_path / "robo-rl-test.service"
    file.write_text(service.unit("robo-rl-test", command, "root", "/tmp", {"PYTHONPATH": "/a b:/c"}))
    done = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "robo-rl-test" in line]
    assert not said


def test_what_is_no_units_name_is_refused(tmp_path: Path) -> None:
    for name in ("", "a b", "../x", "A", "x" * 40):
        with pytest.raises(ValueError, match="is no unit's"):
            service.install(tmp_path, name, "", [])
