"""Sweeps: what a file describes is trained, each job as the command line would, whatever ends in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robo_rl.cli import main
from robo_rl.sweeps import sweep, sweep_file

FEW = """
task = "quadrotor-hover"
seeds = {seeds}
[options]
episodes = 20
"apg.updates" = {updates}
"""


def file(folder: Path, seeds: object = 2, updates: int = 3, more: str = "") -> Path:
    path = folder / "few.toml"
    path.write_text(FEW.format(seeds=seeds, updates=updates) + more)
    return path


def digests(folder: Path) -> dict[str, str]:
    """By run, of all that are done."""
    return {
        path.parent.name: json.loads(path.read_text())["policy_digest"] for path in sorted(folder.glob("*/done.json"))
    }


def robo_rl(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "robo_rl", *words], stdout=subprocess.DEVNULL)


def test_a_file_is_all_combinations_of_its_lists_each_with_a_name_of_its_own(tmp_path: Path) -> None:
    more = '[vary]\n"apg.learning-rate" = [0.001, 0.003]\n"apg.hidden" = [[32, 32], [64, 64], [8]]\n'
    jobs = sweep_file.plan(file(tmp_path, seeds="[3, 5]", more=more))
    assert len(jobs) == len({job.name for job in jobs}) == 2 * 2 * 3
    words = jobs[-1].words(tmp_path)
    assert words[:2] == ["train", "quadrotor-hover"]
    assert words[words.index("--seed") + 1] == "5"
    assert words[words.index("--apg.hidden") + 1] == "8"
    assert words[words.index("--apg.learning-rate") + 1] == "0.003"
    assert jobs == sweep_file.plan(tmp_path / "few.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seeds = 3", "task is None; expected a task's name"),
        ('task = "quadrotor-hover"\nseeds = 0', "seeds is 0; expected a number of seeds"),
        ('task = "quadrotor-hover"\nseeds = [1, 1]', "expected a number of seeds, or a list of different ones"),
        ('task = "quadrotor-hover"\nsteps = 3', "expected some of"),
        ('task = "quadrotor-hover"\n[options]\nseed = 3', "seed is seed; expected an option of train"),
        ('task = "quadrotor-hover"\n[options]\nepisodes = "--json"', "options.episodes is --json; expected"),
        ('task = "quadrotor-hover"\n[vary]\nepisodes = 3', "vary.episodes is 3; expected a list of values"),
        ('task = "quadrotor-hover"\nseeds = 200000', "expected a number of seeds"),
        ('task = "quadrotor-hoover"', "quadrotor-hoover"),
        ('task = "quadrotor-hover', "not TOML"),
    ],
)
def test_a_file_that_makes_no_sweep_is_refused_by_field(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "few.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match="(?s)" + said):
        sweep_file.plan(path)


def test_a_folder_is_of_one_sweep(tmp_path: Path) -> None:
    sweep.create(tmp_path / "out", sweep_file.plan(file(tmp_path)))
    sweep.create(tmp_path / "out", sweep_file.plan(file(tmp_path)))
    with pytest.raises(ValueError, match="is of other jobs"):
        sweep.create(tmp_path / "out", sweep_file.plan(file(tmp_path, seeds=3)))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"jobs": 3}', '{"jobs": [{}]}', '{"jobs": [{"name": "../x"}]}', '{"jobs": [null]}']
)
def test_a_damaged_sweep_is_refused_by_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / sweep.FILE).write_text(text)
    with pytest.raises(ValueError, match=r"sweep\.json.*expected a file written by"):
        sweep.work(tmp_path, 0, lambda words: 0)
    assert [path.name for path in tmp_path.iterdir()] == [sweep.FILE]


def test_a_job_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    sweep.create(tmp_path, sweep_file.plan(file(tmp_path)))
    with pytest.raises(ValueError, match="index is 2; expected 0 to 1"):
        sweep.work(tmp_path, 2, lambda words: 0)


def test_a_truncated_done_file_is_refused_by_name(tmp_path: Path) -> None:
    from robo_rl.learn.runs.folder import Run, RunError

    run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 0, {"hidden": [8]})
    run.done_file.write_text('{"success": 0.9')
    with pytest.raises(RunError, match=r"done\.json.*expected a file written by"):
        run.done()


def test_a_job_whose_run_another_process_has_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from robo_rl.files import held

    jobs = sweep_file.plan(file(tmp_path))
    sweep.create(tmp_path / "out", jobs)
    lease = tmp_path / "out" / "leases" / jobs[0].name
    lease.mkdir(parents=True)
    monkeypatch.setattr(sweep, "PATIENCE", 0.0)
    with held(lease):
        assert sweep.work(tmp_path / "out", 0, lambda words: 0) == sweep.BUSY


@pytest.mark.slow
def test_jobs_are_the_policies_of_the_command_line_and_done_ones_are_not_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["sweep", str(file(tmp_path)), "--out", str(out), "--slots", "2", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["jobs"], told["done"], told["failed"]) == (2, 2, [])
    found = digests(out)
    assert len(set(found.values())) == 2
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/done.json")}
    with pytest.raises(SystemExit):
        main(words)
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("*/done.json")}
    alone = ["train", "quadrotor-hover", "--seed", "1", "--episodes", "0", "--apg.updates", "3"]
    assert robo_rl(*alone, "--runs", str(tmp_path / "alone")).wait() == 0
    (digest,) = digests(tmp_path / "alone").values()
    assert [value for name, value in found.items() if "seed1" in name] == [digest]


@pytest.mark.slow
def test_a_sweep_whose_driver_is_killed_goes_on_and_leaves_no_process(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["sweep", str(file(tmp_path, updates=60)), "--out", str(out), "--slots", "2"]
    driver = robo_rl(*words)
    end = time.monotonic() + 300
    while not list(out.glob("*/run.json")) and time.monotonic() < end:
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    while _workers(out) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _workers(out)
    interrupted = {path.parent.name for path in out.glob("*/run.json")}
    assert interrupted
    assert robo_rl(*words).wait() == 0
    found = digests(out)
    assert len(found) == 2
    log = "".join(path.read_text() for path in (out / "logs").iterdir())
    assert log.count("Traceback") == 0
    name = sorted(interrupted)[0]
    seed = name.partition("seed")[2][0]
    alone = ["train", "quadrotor-hover", "--seed", seed, "--episodes", "0", "--apg.updates", "60"]
    assert robo_rl(*alone, "--runs", str(tmp_path / "alone")).wait() == 0
    assert list(digests(tmp_path / "alone").values()) == [found[name]]


@pytest.mark.slow
def test_an_engine_s_job_that_is_refused_fails_the_sweep_in_a_sentence(tmp_path: Path) -> None:
    path = file(tmp_path, seeds=1, more='"apg.no-such-option" = 3\n')
    assert robo_rl("sweep", str(path), "--out", str(tmp_path / "out")).wait() == 1
    assert "no-such-option" in (tmp_path / "out/logs/0.log").read_text()


def _workers(folder: Path) -> list[str]:
    """Processes that work on the sweep."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"work" in words and os.fsencode(folder.resolve()) in words:
            found.append(process.name)
    return found
