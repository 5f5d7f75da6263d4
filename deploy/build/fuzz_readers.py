"""Fuzz the readers of files from elsewhere: contracts, graphs and logs. Guided by the lines that an input reaches.

    pip install 'robo-rl[bench]'
    python -m robo_rl.deploy.build.fuzz_readers log FOLDER -max_total_time=60

What follows the folder, in which inputs are kept, is for libFuzzer. ``benchmarks/fuzz.py`` runs all of them, and those
of the C. A reader may refuse an input with its own error; what it accepts must be what the file says.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from robo_rl.contract import Contract, ContractError
from robo_rl.deploy.build.c.fuzzing import Fuzzed, feed
from robo_rl.deploy.robot.bundle.onnx_file import GraphError, metadata
from robo_rl.deploy.robot.logs.recovery import CHUNK, HEAD, MAGIC, METADATA
from robo_rl.files import interpreter
from robo_rl.zoo import located, names

INSTRUMENTED = (
    "robo_rl.contract",
    "robo_rl.deploy.robot.logs",
    "robo_rl.deploy.robot.bundle",
    "mcap",
    "mcap_ros2",
)
"""Modules whose lines count, by the beginning of their names."""
OPTIONS = ("-rss_limit_mb=2048", "-timeout=60", "-len_control=0")


def check_contract(data: bytes) -> bool:
    """A contract is refused (False), or written again it reads the same."""
    try:
        contract = Contract.from_json(data)
    except ContractError:
        return False
    again = Contract.from_json(contract.to_json())
    assert again == contract
    assert again.digest == contract.digest
    return True


def check_graph(data: bytes) -> bool:
    """A graph is refused (False), or onnx reads the same metadata of the same bytes."""
    import onnx

    try:
        found = metadata(data)
    except GraphError:
        return False
    model = onnx.load_model_from_string(data)
    assert found == {entry.key: entry.value for entry in model.metadata_props}
    return True


def check_log(data: bytes) -> bool:
    """What is whole in a log is read; False if there is nothing.

    The first byte tells whether the rest is a file, or records to be put into one. Checksums that are right get an
    input further than chance does.
    """
    from robo_rl.deploy.robot.logs.logfile import LogError
    from robo_rl.deploy.robot.logs.reader import read_log

    with tempfile.NamedTemporaryFile(suffix=".mcap") as file:
        file.write(data[1:] if data[:1] == b"\0" else packed(data[1:]))
        file.flush()
        try:
            log = read_log(file.name)
        except LogError:
            return False
        assert all(step.number >= 0 for step in log.steps)
        assert log.missing >= 0
        assert all(0 <= damage.begin <= damage.end for damage in log.damage)
        return True


def packed(records: bytes) -> bytes:
    """A log whose chunk has these records, and whose metadata records are those among them."""
    head = struct.pack("<QQQIIQ", 0, 0, len(records), zlib.crc32(records), 0, len(records))
    chunk = struct.pack("<BQ", CHUNK, len(head) + len(records)) + head + records
    return MAGIC + b"".join(_metadata(records)) + chunk


def _metadata(records: bytes) -> Iterator[bytes]:
    at = 0
    while at + HEAD <= len(records):
        opcode, length = struct.unpack_from("<BQ", records, at)
        if opcode == METADATA:
            yield records[at : at + HEAD + length]
        at += HEAD + length


def contract_seeds() -> list[bytes]:
    """The contracts of the zoo."""
    from robo_rl.deploy.robot.bundle import Bundle

    return [Bundle.read(located(f"zoo:{name}")).contract.to_json().encode() for name in names()]


def graph_seeds() -> list[bytes]:
    """The zoo's smallest graphs."""
    return sorted((located(f"zoo:{name}").read_bytes() for name in names()), key=len)[:2]


def log_seeds() -> list[bytes]:
    """Short logs of each of the zoo's policies: the file, and its records."""
    import numpy as np

    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.logs.logfile import METADATA as NAME
    from robo_rl.deploy.robot.logs.logfile import LogWriter, StepRecord
    from robo_rl.deploy.robot.logs.recovery import recover

    made = []
    for name in ("quadrotor-hover", "go2-flat"):
        contract = Bundle.read(located(f"zoo:{name}")).contract
        (signals, command) = (
            np.zeros(sum(one.size for one in of), np.float32) for of in (contract.signals, contract.commands)
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.mcap"
            writer = LogWriter(path, contract, {"digest": "0" * 64, "wall": "1"})
            for k in range(3):
                stamps = (10_000 * k,) * len(contract.signals)
                writer.write(
                    StepRecord(
                        10_000 * k, 10_000_000 * (k + 1), signals, stamps, contract.initial_state, command, command,
                        None, command, {}, "ACTIVE", k + 1,
                    )
                )  # fmt: skip
            writer.close()
            pieces = recover(path, NAME).pieces
            made.append(b"\0" + path.read_bytes())
            whole = [
                struct.pack("<BQ", piece.opcode, len(piece.data)) + piece.data
                if piece.opcode == METADATA
                else piece.data
                for piece in pieces
            ]
            made.append(b"\1" + b"".join(whole))
    return made


TARGETS: dict[str, tuple[Callable[[bytes], bool], Callable[[], list[bytes]]]] = {
    "contract": (check_contract, contract_seeds),
    "graph": (check_graph, graph_seeds),
    "log": (check_log, log_seeds),
}
"""What is done with an input, and the inputs to begin with."""


def run(what: str, corpus: Path, seconds: int) -> Fuzzed:
    """Feed a target for ``seconds`` of wall clock, in a process of its own. Raises Finding."""
    return feed(interpreter.module(__name__, what), corpus, seconds)


def main(what: str, folder: str, *options: str) -> None:
    """Run one target. Exits with another code than 0 at the first finding."""
    import atheris

    with atheris.instrument_imports(include=list(INSTRUMENTED), enable_loader_override=False):
        for name in [module for module in sys.modules if module.startswith(INSTRUMENTED)]:
            del sys.modules[name]
        import robo_rl.deploy.build.fuzz_readers as instrumented
    check, seeds = instrumented.TARGETS[what]
    corpus = Path(folder)
    corpus.mkdir(parents=True, exist_ok=True)
    for k, seed in enumerate(seeds()):
        (corpus / f"seed{k}").write_bytes(seed)
    longest = max(len(seed) for seed in seeds()) * 2
    atheris.Setup([f"fuzz {what}", *OPTIONS, f"-max_len={longest}", *options, folder], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
