"""Progress on a real terminal and off it, and results for machines."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robo_rl import console
from robo_rl.console import Progress, give, say


def everything_on(terminal: int) -> str:
    """What was written to a terminal whose other end is closed."""
    data = b""
    try:
        while part := os.read(terminal, 1 << 16):
            data += part
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(terminal)
    return data.decode()


def test_on_a_terminal_progress_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with Progress("training", 4) as progress:
            for done in range(1, 5):
                progress.update(done, f"reward {done / 4:.2f}")
    shown = everything_on(ours)
    assert "training" in shown
    assert "4/4 reward 1.00" in shown
    assert "━" in shown


def test_off_a_terminal_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.0)
    with Progress("flying", 2) as progress:
        progress.update(1, "half")
        progress.update(2)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["flying: 1/2 half, about 0 s left", "flying: 2/2, about 0 s left"]
    assert captured.out == ""


def test_a_log_has_at_most_ten_lines_of_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.0)
    with Progress("flying", 1007, begun=7) as progress:
        for done in range(7, 1008):
            progress.update(done)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("flying: 107/1007")
    assert lines[-1].startswith("flying: 1007/1007")


def test_a_command_of_several_parts_has_ten_lines_in_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.0)
    with console.few_lines():
        for part in ("simulating", "drawing", "writing", "checking", "packing"):
            with Progress(part, 1000) as progress:
                for done in range(1001):
                    progress.update(done)
    titles = [line.split(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert [titles.count(part) for part in ("simulating", "drawing", "writing", "checking")] == [6, 3, 1, 0]
    with Progress("flying", 1000) as progress:
        for done in range(1001):
            progress.update(done)
    assert len(capsys.readouterr().err.splitlines()) == 10, "outside of a command each has its own"


def test_what_is_quickly_done_shows_no_progress_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("flying", 1000) as progress:
        for done in range(1000):
            progress.update(done)
    assert capsys.readouterr().err == ""


def test_a_failure_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with pytest.raises(RuntimeError, match="gone"), Progress("training", 4):
            raise RuntimeError("gone")
    shown = everything_on(ours)
    assert "\x1b[?25h" in shown, "the cursor is visible again"


def test_text_for_people_goes_out_of_the_way_of_text_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    say("hello")
    assert capsys.readouterr() == ("hello\n", "")
    say("hello", as_json=True)
    assert capsys.readouterr() == ("", "hello\n")
    give({"x": 1}, as_json=False)
    assert capsys.readouterr() == ("", "")


def test_what_takes_long_is_told_once_and_what_is_soon_done_never(capsys: pytest.CaptureFixture[str]) -> None:
    told, end = "", time.monotonic() + 60.0
    with console.told_if_long("Compiling", seconds=0.01):
        while not told and time.monotonic() < end:
            time.sleep(0.01)
            told = capsys.readouterr().out
    assert told == "Compiling\n"
    with console.told_if_long("Compiling", seconds=3600.0):
        pass
    assert capsys.readouterr().out == ""


def test_a_result_is_strict_json_with_null_for_what_is_not_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    give({"a": float("nan"), "b": [1.5, float("inf"), {"c": -float("inf")}], "d": (None, True, "x", 3)}, as_json=True)
    line = capsys.readouterr().out
    assert json.loads(line, parse_constant=pytest.fail) == {
        "a": None,
        "b": [1.5, None, {"c": None}],
        "d": [None, True, "x", 3],
    }


def test_wall_time_counts_from_the_start_of_the_process(tmp_path: Path) -> None:
    code = "import time; a = time.monotonic(); from robo_rl.cli import console; print(console.STARTED - a)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 <= float(found.stdout) < 10


def test_the_time_that_is_left_counts_from_where_a_training_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """90 of 100 were done before the break; one more took a second: nine seconds are left, not a tenth of one."""
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.0)
    now = iter([100.0, 101.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(now))
    with Progress("training", 100, begun=90) as progress:
        progress.update(91)
    assert capsys.readouterr().err == "training: 91/100, about 9 s left\n"


def test_on_a_terminal_metrics_are_a_table_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with Progress("training", 4, begun=1) as progress:
            progress.update(2)
            progress.show({"reward": 0.5, "reward/foot_slip": -0.125, "episode/failure": 0.25, "failure/[red]tilts": 1})
            progress.update(4)
    shown = everything_on(ours)
    for text in ("reward terms", "foot slip", "-0.125", "25.0%", "[red]tilts", "100.0%", "4/4"):
        assert text in shown
