"""Steps for a learner: what one process writes another reads meanwhile, and nothing that was not written whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.step_log import Flag, Sizes, StepLogError, StepReader, StepWriter, files
from robo_rl.zoo import located


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Bundle.read(located("zoo:quadrotor-hover")).contract


def write(folder: Path, contract: Contract, count: int) -> Path:
    """A file of so many frames, whose numbers tell which frame they are of."""
    writer, sizes = StepWriter(folder, contract, pytest.fail), Sizes.of(contract)
    for k in range(count):
        signals, memory, command = (np.full(size, k, np.float32) for size in sizes)
        writer.add(k, 1000 * k, Flag.OPERATOR if k % 2 else Flag.NONE, "abcdefgh12", signals, memory, command)
    writer.close()
    return writer.path


def test_what_was_written_is_read_as_it_grows(tmp_path: Path, contract: Contract) -> None:
    whole = write(tmp_path, contract, 10).read_bytes()
    part = tmp_path / "part.log"
    size = Sizes.of(contract).frame.itemsize
    start, found = len(whole) - 10 * size, []
    reader = None
    for end in (7, start - 1, start, start + 1, start + 3 * size, start + 3 * size + 5, len(whole)):
        part.write_bytes(whole[:end])  # as another process sees a file that is being written
        reader = reader or StepReader(part, contract)
        found.append(reader.new())
    assert [len(frames) for frames in found] == [0, 0, 0, 0, 3, 0, 7]
    frames = np.concatenate(found)
    assert frames["number"].tolist() == list(range(10))
    assert (frames["signals"] == np.arange(10)[:, None]).all()
    assert frames["flags"].tolist() == [0, 1] * 5
    assert frames["policy"][0] == b"abcdefgh"


@pytest.mark.parametrize("what", ["a bit", "a frame left out", "two frames changed places"])
def test_frames_before_damage_are_good_and_none_after_it(tmp_path: Path, contract: Contract, what: str) -> None:
    path, size = write(tmp_path, contract, 10), Sizes.of(contract).frame.itemsize
    data = bytearray(path.read_bytes())
    fifth = len(data) - 5 * size
    if what == "a bit":
        data[fifth + 40] ^= 1
    elif what == "a frame left out":
        del data[fifth : fifth + size]
    else:
        data[fifth : fifth + 2 * size] = data[fifth + size : fifth + 2 * size] + data[fifth : fifth + size]
    path.write_bytes(data)
    reader = StepReader(path, contract)
    assert reader.new()["number"].tolist() == list(range(5))
    assert f"damaged at byte {fifth}" in reader.damage
    assert len(reader.new()) == 0


def test_files_of_others_are_refused_in_a_sentence(tmp_path: Path, contract: Contract) -> None:
    path = write(tmp_path, contract, 1)
    other = Bundle.read(located("zoo:go2-flat")).contract
    with pytest.raises(StepLogError, match="recorded under another contract"):
        StepReader(path, other).new()
    for data in (b"\x80\x04pickle", b"robo-rl steps 1\n" + 2000 * b"{", b"robo-rl steps 1\n[1]\n"):
        path.write_bytes(data)
        with pytest.raises(StepLogError, match=r"steps-000001.log: .*expected|longer than"):
            StepReader(path, contract).new()


def test_a_killed_robot_leaves_whole_frames_and_the_next_one_writes_another_file(
    tmp_path: Path, contract: Contract
) -> None:
    words = [sys.executable, __file__, str(tmp_path)]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
        while not files(tmp_path) or files(tmp_path)[0].stat().st_size < 100_000:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    frames = StepReader(files(tmp_path)[0], contract).new()
    assert len(frames) > 100
    assert frames["number"].tolist() == list(range(len(frames)))
    assert write(tmp_path, contract, 1).name == "steps-000002.log"


if __name__ == "__main__":
    write(Path(sys.argv[1]), Bundle.read(located("zoo:quadrotor-hover")).contract, 10**9)
