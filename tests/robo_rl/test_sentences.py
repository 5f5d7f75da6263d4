"""What commands say: nothing that lies, nothing that is cut off, and what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_rl import zoo
from robo_rl.cli import COMMANDS, GROUPS, USAGE, main
from robo_rl.commands.looking.transfer import verdicts
from robo_rl.console import say_next
from robo_rl.evaluate.evaluation import outcome
from robo_rl.evaluate.transfer import Transfer, kept
from robo_rl.files.suggestions import did_you_mean, expected_one_of
from robo_rl.metrics_table import lines
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import included_tasks, load_task, task_names


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as exit:
        main(list(words))
    return int(exit.value.code or 0)


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("trian", COMMANDS, "train"),
        ("eval", COMMANDS, "evaluate"),
        ("Train", COMMANDS, "train"),
        ("quadrotor-hovr", task_names(), "quadrotor-hover"),
        ("hover", task_names(), "quadrotor-hover"),
        ("go2", task_names(), "go2-flat"),
    ],
)
def test_a_name_that_is_nearly_right_is_suggested(word: str, known: list[str], meant: str) -> None:
    assert did_you_mean(word, known) == f"; did you mean '{meant}'?"


def test_the_suggestion_comes_before_the_list() -> None:
    assert expected_one_of("b", ["a1", "c1"]) == "; expected one of ['a1', 'c1']"
    assert expected_one_of("trian", ["train", "why"]) == "; did you mean 'train'? Expected one of ['train', 'why']"


@pytest.mark.parametrize("word", ["fly", "xyzzy", "", "a"])
def test_a_name_that_is_like_none_is_not_guessed(word: str) -> None:
    assert did_you_mean(word, COMMANDS) == ""


@pytest.mark.parametrize(
    ("words", "code", "meant"),
    [
        (["evalute"], 2, "evaluate"),
        (["train", "quadrotor-hver"], 1, "quadrotor-hover"),
        (["train", "quadrotor-hover", "--robot", "crazyfly"], 1, "crazyflie"),
        (["train", "quadrotor-hover", "--bounds", "dely:0:1"], 1, "delay"),
        (["evaluate", "zoo:quadrotor-hovr"], 1, "quadrotor-hover"),
        (["evaluate", "classical", "--task", "quadrotor-hover", "--fixed", "masss", "1"], 1, "mass"),
    ],
)
def test_commands_suggest_commands_tasks_robots_and_ranges(
    words: list[str],
    code: int,
    meant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*words) == code
    assert f"did you mean '{meant}'?" in capsys.readouterr().err


def test_help_groups_commands_in_the_order_of_a_users_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    places = [text.index(f"\n{title}:\n") for title in ("train", "look", "export", "run", "robots", "many runs")]
    assert places == sorted(places)
    assert sum(map(len, GROUPS.values())) == len(COMMANDS)


SUMMARY = {
    "episodes": 500, "success": 1.0, "success_low": 0.992, "success_high": 1.0,
    "yaw_rate_error_mean_rad_s": 0.2, "linear_velocity_error_mean_m_s": 0.54, "tool_position_error_mean_m": 0.01,
}  # fmt: skip


def test_a_walk_that_stands_is_not_said_to_succeed() -> None:
    said = outcome(load_task("go2-flat"), SUMMARY, seed=3, held_out=True)
    assert said.startswith("yaw rate error 0.200 rad/s, linear velocity error 0.540 m/s; no fall: 100.0% of 500 ")
    assert "held-out episodes of seed 3 (99.2% to 100.0%)" in said
    assert "succeed" not in said


def test_a_task_that_knows_success_is_said_to_succeed() -> None:
    assert outcome(load_task("arm-reach"), SUMMARY).startswith("100.0% of 500 episodes succeed (99.2% to 100.0%), tool")


def test_zoo_has_whole_lines_and_tells_success_from_survival(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo") == 0
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line != line.rstrip(" ,")]
    tasks = included_tasks()
    for name in zoo.names():
        task = next(tasks[one] for one in sorted(tasks, key=len, reverse=True) if name.startswith(one))
        knows = task.succeeded is not Task.succeeded
        assert (name not in zoo.ENDLESS) == knows, name
        reached = lines[lines.index(f"zoo:{name}") + 1 :]
        line = next(line for line in reached if " episodes " in line)
        assert line.endswith("succeed" if knows else "without failure")
    assert max(len(line) for line in lines if not line.startswith(" " * 4 + "train") and line[:12].strip()) <= 80


def test_transfer_tells_the_worst_and_no_more_than_was_there() -> None:
    """A success that is 103 % of the training simulator's is a success, and 0 % beyond training is told as that."""
    home = {"success": 0.97, "success_low": 0.95, "success_high": 0.99}
    better = {"success": 1.0, "success_low": 0.97, "success_high": 1.0}
    none = {"success": 0.0, "success_low": 0.0, "success_high": 0.05}
    engines = [{"engine": "bullet", "summary": "", **better, **kept(home, better)}]
    found = Transfer((), home, engines, {"mass": [{"value": 2.4, **none, **kept(home, none)}]})
    lines = verdicts(found, 0.95)
    assert lines == [
        "other simulators: lowest success 100.0%, in bullet, against 97.0% in the training simulator; asked for 95% of "
        "it",
        "beyond training: lowest success 0.0%, at mass 2.4",
    ]
    worse = [{"engine": "bullet", "summary": "", **none, **kept(home, none)}]
    assert verdicts(Transfer((), home, worse, {}), 0.95)[0].startswith("FAILED: other simulators: lowest success 0.0%")


def test_a_finished_run_says_how_to_train_on(trained_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("resume", str(trained_run)) == 0
    said = capsys.readouterr().out
    assert f"robo-rl train quadrotor-hover --algorithm apg --begin-from {trained_run} --apg.updates" in said


def test_the_list_of_runs_has_titles(trained_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("runs", str(trained_run)) == 0
    first, row, *_ = capsys.readouterr().out.splitlines()
    assert first.split() == ["run", "algorithm", "seed", "state", "update", "success", "simulated", "trained"]
    assert first.index("state") == row.index("done")


def test_the_list_of_commands_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, USAGE.splitlines())) <= 80
    assert all(f"\n  {name:<12} " in USAGE for name in COMMANDS)


def test_a_missing_word_is_called_by_its_name_and_not_by_its_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export") == 2
    shown = capsys.readouterr().err
    assert "RUN" in shown
    assert "PATH" not in shown


def test_metrics_have_their_units() -> None:
    metrics = {"error/velocity_error": 0.25, "error/hit": 0.02, "episode/length_s": 4.84, "episode/count": 3.0}
    assert lines(metrics, {"velocity_error": "m/s", "hit": "1"}) == [
        "errors at the end of the update: velocity error 0.25 m/s, hit 0.02",
        "episodes: length 4.84 s, count 3",
    ]


def test_hints_are_one_to_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_next(["robo-rl play a", "robo-rl report a"])
    assert capsys.readouterr().out == "Next:  robo-rl play a\n       robo-rl report a\n"
