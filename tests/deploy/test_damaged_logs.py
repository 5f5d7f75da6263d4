"""Logs that were cut off, changed or zeroed anywhere give back every step of their whole chunks, and never a traceback.

Where chunks are is found by the general MCAP library in the undamaged file.
"""

from __future__ import annotations

import dataclasses
import io
import struct
import sys
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mcap", reason="mcap is missing: pip install 'robo-rl[train]'")

sys.path.append(str(Path(__file__).parent))
from seeing import PROVENANCE, seeing_policy

from robo_rl.contract import Contract, Network
from robo_rl.deploy.robot.logs.logfile import LogError, LogWriter, StepRecord
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.deploy.robot.logs.replay import replay
from robo_rl.sim.tasks.loading import load_task

STEPS = 250
FLYING = load_task("quadrotor-hover").spec.contract(PROVENANCE, Network((8,), "elu", False))
SEEING = seeing_policy().contract(PROVENANCE)


def session(contract: Contract, steps: int) -> list[StepRecord]:
    draw, made = np.random.default_rng(0), []
    signals = draw.normal(size=sum(s.size for s in contract.signals)).astype(np.float32)
    scan = sum(s.size for s in contract.signals if s.shape is None)
    for k in range(steps):
        signals = signals.copy()
        signals[:scan] += 0.1
        if k % 40 == 0:
            signals[scan:] = draw.normal(size=len(signals) - scan)
        command = draw.normal(size=sum(c.size for c in contract.commands)).astype(np.float32)
        stamps = tuple(10_000 * k for _ in contract.signals)
        wall = 1_700_000_000_000_000_000 + 10_000_000 * k
        memory = draw.normal(size=contract.initial_state.shape).astype(np.float32)
        proposed = None if k % 7 == 0 else command
        step = StepRecord(
            10_000 * k, wall, signals, stamps, memory, proposed, command, None, command, {}, f"sentence {k // 9}", k + 1
        )
        made.append(step)
    return made


def written(path: Path, contract: Contract, steps: list[StepRecord], digest: str = "0" * 64) -> Path:
    writer = LogWriter(path, contract, {"digest": digest, "wall": "1"})
    for step in steps:
        writer.write(step)
    writer.close()
    return path


@pytest.fixture(scope="module", params=["vectors", pytest.param("arrays", marks=pytest.mark.release)])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[StepRecord]]:
    contract = FLYING if request.param == "vectors" else SEEING
    steps = session(contract, STEPS)
    return written(tmp_path_factory.mktemp("log") / "log.mcap", contract, steps), steps


def chunks(path: Path) -> list[tuple[int, int, set[int]]]:
    """Begin and end of every chunk, and the numbers of the steps that have messages in it."""
    from mcap.data_stream import ReadDataStream
    from mcap.reader import make_reader
    from mcap.records import Message
    from mcap.stream_reader import Chunk, breakup_chunk

    found = []
    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
        assert summary is not None
        for index in summary.chunk_indexes:
            file.seek(index.chunk_start_offset + 9)
            chunk = Chunk.read(ReadDataStream(file))
            numbers = {r.sequence for r in breakup_chunk(chunk, True) if isinstance(r, Message) and r.sequence}
            found.append((index.chunk_start_offset, index.chunk_start_offset + index.chunk_length, numbers))
    return found


def damages(data: bytes) -> dict[str, tuple[bytes, int, int]]:
    """Damaged copies, with the first and the last byte that differ from the original."""
    draw, size, made = np.random.default_rng(1), len(data), dict[str, tuple[bytes, int, int]]()
    for cut in {*range(0, 40, 5), *np.linspace(60, size - 1, 30).astype(int).tolist(), *range(size - 50, size, 3)}:
        made[f"cut at {cut}"] = data[:cut], cut, size
    for at in {*range(0, 120, 3), *draw.integers(0, size, 60).tolist(), *range(size - 60, size, 4)}:
        changed = bytearray(data)
        changed[at] ^= 1 << int(draw.integers(8))
        made[f"bit flipped at {at}"] = bytes(changed), at, at + 1
    for length in (16, 512, 4096, 65536):
        for at in draw.integers(0, size, 12).tolist()[:8]:
            end = min(at + length, size)
            made[f"zeros from {at} to {end}"] = data[:at] + bytes(end - at) + data[end:], at, end
    made["a block taken out"] = data[: size // 3] + data[size // 3 + 1000 :], size // 3, size // 3 + 1000
    made["a block put in"] = data[: size // 2] + bytes(range(256)) * 5 + data[size // 2 :], size // 2, size // 2 + 1
    return made


def same(found: StepRecord, step: StepRecord) -> bool:
    arrays = ("signals", "memory", "proposed", "command", "fallback", "sent")
    pairs = [(getattr(found, name), getattr(step, name)) for name in arrays]
    alike = all((a is None and b is None) or a.tobytes() == b.tobytes() for a, b in pairs)
    return alike and (found.time, found.wall, found.stamps) == (step.time, step.wall, step.stamps)


def test_every_step_of_every_whole_chunk_is_read_whatever_else_is_damaged(
    whole: tuple[Path, list[StepRecord]], tmp_path: Path
) -> None:
    source, steps = whole
    where, path, data = chunks(source), tmp_path / "damaged.mcap", source.read_bytes()
    assert len(where) > 4
    repeats = max(b - a for a, b in pairwise([0, *range(99, STEPS, 100), STEPS]))
    unreadable, tried = [], damages(data)
    for name, (changed, first, last) in tried.items():
        path.write_bytes(changed)
        try:
            log = read_log(path)
        except LogError:
            unreadable.append(name)
            assert first < where[0][1], f"{name}: only the first chunk and what is before it may be needed"
            assert name.startswith("cut"), "all that chunks need is written twice"
            continue
        lost = {number for begin, end, numbers in where if begin < last and end > first for number in numbers}
        expected = {step.number for step in steps} - lost
        found = {step.number: step for step in log.steps}
        assert all(same(step, steps[number - 1]) for number, step in found.items()), name
        if log.contract == FLYING:
            assert found.keys() >= expected, name
        else:  # an array that was lost comes again
            late = {number for number in expected if lost and max(lost) < number <= max(lost) + repeats}
            assert expected - late <= found.keys(), name
        assert log.whole is (not log.damage)
        if len(found) < STEPS or name.startswith("cut"):
            assert log.damage, name
        between = set(range(min(found, default=1), max(found, default=0))) - found.keys()
        assert log.missing >= len(between), name
    print(f"{len(tried)} damaged logs, {len(unreadable)} without any whole chunk")
    assert len(unreadable) < len(tried) / 4


def test_a_replay_passes_over_what_is_missing(bundle_file: Path, tmp_path: Path) -> None:
    from robo_rl.deploy.build.verify import task_of
    from robo_rl.deploy.emulate.simulated import record
    from robo_rl.deploy.robot.bundle import Bundle

    bundle, source = Bundle.read(bundle_file), tmp_path / "log.mcap"
    record(task_of(bundle.contract), bundle, source, 4.0, 0, {})
    middle = chunks(source)[len(chunks(source)) // 2]
    data = bytearray(source.read_bytes())
    data[middle[0] + 200] ^= 1
    damaged = tmp_path / "damaged.mcap"
    damaged.write_bytes(data)
    found = replay(damaged, bundle_file)
    assert found.policy is None
    assert found.gate is None
    assert found.missing == len(middle[2])
    assert found.steps == 400 - found.missing
    assert 0 < found.gate_compared == min(middle[2]) - 1
    assert "damaged" in found.damage[0]


def test_steps_of_another_policy_keep_its_memory_of_another_size(tmp_path: Path) -> None:
    """Policies of one robot take turns; the contract in the log is the first one's."""
    others = [dataclasses.replace(step, memory=np.ones(3), gate={"policy": 1}) for step in session(FLYING, 20)]
    log = read_log(written(tmp_path / "log.mcap", FLYING, others))
    assert log.whole
    assert [step.memory.tolist() for step in log.steps] == 20 * [[1.0, 1.0, 1.0]]


def test_a_memory_that_is_not_that_of_the_policy_is_told_by_step(bundle_file: Path, tmp_path: Path) -> None:
    from robo_rl.deploy.robot.bundle import Bundle

    bundle = Bundle.read(bundle_file)
    steps = [dataclasses.replace(step, memory=np.ones(3)) for step in session(bundle.contract, 20)]
    path = written(tmp_path / "log.mcap", bundle.contract, steps, bundle.digest)
    with pytest.raises(LogError, match=r"log\.mcap: step 2 has 3 numbers of memory; expected \d+, those of its policy"):
        replay(path, bundle_file)


def test_a_log_without_steps_is_no_success(bundle_file: Path, tmp_path: Path) -> None:
    empty = written(tmp_path / "empty.mcap", FLYING, [])
    with pytest.raises(LogError, match="no step in it"):
        replay(empty, bundle_file)
    (tmp_path / "nothing.mcap").write_bytes(b"")
    with pytest.raises(LogError, match="the file is empty"):
        read_log(tmp_path / "nothing.mcap")


def chunk_of(content: bytes, size: int | None = None) -> bytes:
    """A whole chunk record with these decompressed bytes."""
    import zstandard

    packed = zstandard.ZstdCompressor().compress(content)
    body = struct.pack("<QQQII", 0, 0, len(content) if size is None else size, zlib.crc32(content), 4) + b"zstd"
    body += struct.pack("<Q", len(packed)) + packed
    return struct.pack("<BQ", 6, len(body)) + body


def test_a_chunk_that_would_fill_the_memory_is_not_decompressed(tmp_path: Path) -> None:
    source = written(tmp_path / "log.mcap", FLYING, session(FLYING, 20))
    data, first = source.read_bytes(), chunks(source)[0][0]
    path = tmp_path / "bomb.mcap"
    for bomb in (40 * chunk_of(bytes(1 << 25)), chunk_of(bytes(1 << 27)), chunk_of(bytes(1 << 27), size=100)):
        path.write_bytes(data[:first] + bomb + data[first:])
        log = read_log(path)
        assert not log.whole
        assert any("damaged" in damage.what for damage in log.damage)


def test_messages_of_a_stranger_are_read_or_refused_in_a_sentence(tmp_path: Path) -> None:
    """Changed bytes under a right checksum: no error but LogError, and what is read fits the contract."""
    from mcap.data_stream import ReadDataStream
    from mcap.stream_reader import Chunk, get_chunk_data_stream

    source = written(tmp_path / "log.mcap", FLYING, session(FLYING, 12))
    begin, end, _ = chunks(source)[0]
    data, draw, path = source.read_bytes(), np.random.default_rng(3), tmp_path / "changed.mcap"
    chunk = Chunk.read(ReadDataStream(io.BytesIO(data[begin + 9 : end])))
    stream, size = get_chunk_data_stream(chunk)
    content = stream.read(size)
    for _ in range(400):
        changed = bytearray(content)
        for at in draw.integers(0, size, 1 + draw.integers(12)):
            changed[at] = draw.choice([0, 1, 127, 255, int(draw.integers(256))])
        path.write_bytes(data[:begin] + chunk_of(bytes(changed)) + data[end:])
        try:
            log = read_log(path)
        except LogError:
            continue
        for step in log.steps:
            assert step.signals.shape == (sum(s.size for s in log.contract.signals),)
            assert len(step.stamps) == len(log.contract.signals)
