"""A full disk says so and leaves nothing half written; one process at a time works on a run. All real."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from robo_rl.cli import main
from robo_rl.deploy.build.export import export
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import JointMounting, RobotFile, write_robot_file
from robo_rl.files import LOCK, HeldError, WriteError, held, is_held, open_own, write
from robo_rl.learn import new_learner
from robo_rl.learn.config import ApgConfig
from robo_rl.learn.runs import checkpoint, training
from robo_rl.learn.runs.folder import Run

SMALL = ["--apg.updates", "300", "--apg.environments", "8", "--apg.horizon", "4", "--apg.hidden", "8"]
ROOM = 1 << 20
APG = dataclasses.asdict(ApgConfig(updates=4, environments=8, horizon=4, hidden=(8,)))
RUN_MODULE = "runpy.run_module('robo_rl', run_name='__main__', alter_sys=True)"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("a small file system can't be mounted here; only root may")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> Path:
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return path


def files(disk: Path) -> set[str]:
    return {path.name for path in disk.rglob("*") if path.is_file()}


PLANTED = {
    "a link": lambda place, other: place.symlink_to(other), "a pipe": lambda place, other: os.mkfifo(place),
    "a folder": lambda place, other: place.mkdir(), "a device": lambda place, other: place.symlink_to("/dev/full"),
}  # fmt: skip
"""What somebody may leave in a run's folder, where a file of ours will be."""


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_in_the_place_of_a_run_s_file_is_neither_followed_nor_waited_for(
    what: str, tmp_path: Path
) -> None:
    other, run = tmp_path / "other", tmp_path / "run"
    other.write_text("somebody's")
    run.mkdir()
    for name in (LOCK, "metrics.jsonl", "config.json.partial"):
        PLANTED[what](run / name, other)
    with pytest.raises(ValueError, match=r"lock: .*expected a file"), held(run):
        raise AssertionError("it is held")
    assert not is_held(run)
    with pytest.raises(ValueError, match=r"metrics.jsonl: .*expected a file"):
        open_own(run / "metrics.jsonl", "ab")
    if what == "a folder":
        with pytest.raises(OSError, match="partial"):
            write(run / "config.json", "{}")
    else:
        write(run / "config.json", "{}")
        assert (run / "config.json").read_text() == "{}"
        assert not (run / "config.json").is_symlink()
    assert other.read_text() == "somebody's"


def test_a_full_disk_is_a_sentence_and_leaves_the_old_file(small_disk: Path) -> None:
    path = small_disk / "a"
    write(path, "old")
    with pytest.raises(WriteError, match=r"/a can't be written: No space left on device; nothing was changed; make"):
        write(path, bytes(2 * ROOM))
    assert path.read_text() == "old"
    assert files(small_disk) == {"a"}
    checkpoint.save(path, {"x": torch.ones(3)}, {"k": 1})
    with pytest.raises(WriteError, match="No space left on device"):
        checkpoint.save(path, {"x": torch.ones(ROOM)}, {"k": 2})
    assert checkpoint.load(path)[1] == {"k": 1}
    assert files(small_disk) == {"a"}


def test_a_file_over_the_limit_of_its_size_is_a_sentence(tmp_path: Path) -> None:
    """Also where nobody may mount a disk."""
    code = f"""
import resource, sys
from pathlib import Path
from robo_rl.files import WriteError, write
resource.setrlimit(resource.RLIMIT_FSIZE, ({ROOM}, {ROOM}))
try:
    write(Path(sys.argv[1]), bytes({2 * ROOM}))
except WriteError as error:
    print(error)
"""
    path = tmp_path / "a"
    told = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    assert f"{path} can't be written: File too large; nothing was changed" in told
    assert files(tmp_path) == set()


def test_an_export_to_a_full_disk_leaves_no_file(small_disk: Path, trained_run: Path) -> None:
    filler = fill(small_disk)
    policy, provenance = Run.open(trained_run).policy()
    with pytest.raises(WriteError, match=r"policy\.onnx can't be written: No space left on device"):
        export(policy, provenance, small_disk / "policy.onnx")
    assert files(small_disk) == {filler.name}


def test_c_for_a_full_disk_is_refused_with_its_folder(
    small_disk: Path, bundle_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(small_disk)
    with pytest.raises(SystemExit) as done:
        main(["firmware", str(bundle_file), "--out", str(small_disk / "c")])
    assert done.value.code == 1
    told = capsys.readouterr().err
    assert re.search(r"/c can't be written: No space left on device; the files that are there are not whole", told)


def test_the_calibration_of_an_arm_outlives_a_full_disk(small_disk: Path) -> None:
    """What ``doctor`` writes over what it wrote before, on a robot's computer."""
    joints = {f"joint_{k}": JointMounting(-1, 0.1 * k) for k in range(6)}
    path = small_disk / "arm.toml"
    write_robot_file(path, RobotFile(joints))
    before = path.read_text()
    fill(small_disk)
    with pytest.raises(WriteError, match=r"arm\.toml can't be written: No space left on device; nothing was changed"):
        write_robot_file(path, RobotFile({f"other_{k}": JointMounting() for k in range(300)}))
    assert path.read_text() == before


def test_a_training_on_a_full_disk_stops_in_a_sentence_and_goes_on_when_there_is_room(
    small_disk: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "robo_rl", "train", "quadrotor-hover", "--episodes", "0", "--json", *SMALL]
    # -B: Python keeps byte code that was cut off where files may not grow (python/cpython#126606)
    limit = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); {RUN_MODULE}"
    limited = [sys.executable, "-B", "-c", limit, *words[3:], "--runs", str(small_disk), "--checkpoint-seconds", "1000"]
    done = subprocess.run(limited, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (run,) = (path for path in small_disk.iterdir() if path.is_dir())
    assert f"{run} can't be written: File too large; the training stopped, and 'robo-rl resume' goes on" in done.stderr
    assert all(json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()[:-1])
    again = [*words[:3], "resume", str(run), "--episodes", "0", "--json"]
    done = subprocess.run(again, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines] == sorted({line["update"] for line in lines})
    assert lines[-1]["update"] == 300


def test_a_recording_on_a_full_disk_says_so_and_can_be_read_up_to_there(small_disk: Path, bundle_file: Path) -> None:
    from robo_rl.deploy.build.verify import task_of
    from robo_rl.deploy.emulate.simulated import record
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.logs.reader import read_log

    filler = fill(small_disk)
    os.truncate(filler, ROOM - 200_000)
    bundle, path = Bundle.read(bundle_file), small_disk / "log.mcap"
    with pytest.raises(WriteError, match=r"No space left on device; the recording ends there"):
        record(task_of(bundle.contract), bundle, path, 20.0, 0, {})
    log = read_log(path)
    assert 50 < len(log.steps) < 2000
    assert [step.number for step in log.steps] == list(range(1, len(log.steps) + 1))


def test_a_run_that_another_process_trains_is_refused_with_its_name(trained_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained_run, tmp_path / "run")
    code = """
import sys
from pathlib import Path
from robo_rl.files import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    told = rf"is being trained by process {holder.pid} on .*, since 20.*; wait until"
    with pytest.raises(HeldError, match=told), held(run):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait(timeout=60)
    with held(run):
        pass


@pytest.mark.parametrize("checkpointed", [False, True])
def test_two_processes_never_resume_one_run(
    checkpointed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path, "quadrotor-hover", None, "apg", 3, APG)
    if checkpointed:
        with held(run.folder):
            learner = new_learner(run, run.new_policy())
            training.save(run, learner)
    with held(run.folder), pytest.raises(SystemExit) as exit:
        main(["resume", str(run.folder), "--episodes", "0"])
    assert exit.value.code == 1
    assert f"is being trained by process {os.getpid()} on" in capsys.readouterr().err


def test_a_run_that_was_killed_before_its_first_checkpoint_is_resumed_from_its_beginning(tmp_path: Path) -> None:
    runs = [Run.create(tmp_path, "quadrotor-hover", None, "apg", 3, APG) for _ in range(2)]
    tensors = []
    for run in runs:
        with pytest.raises(SystemExit) as exit:
            main(["resume", str(run.folder), "--episodes", "0"])
        assert exit.value.code == 0
        found, numbers = checkpoint.load(run.checkpoint_file)
        assert numbers["finished"]
        tensors.append(found)
    assert all(torch.equal(value, tensors[1][name]) for name, value in tensors[0].items())
