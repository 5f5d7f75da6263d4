"""Read the log of a session, also a damaged one: every step of which all messages are whole, and what is missing."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.contract import Contract, ContractError
from robo_rl.controllers.gate.codes import Problem, Reason, Source, State, explain
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.deploy.robot.logs import arrays as log_arrays
from robo_rl.deploy.robot.logs.cdr import Decoder
from robo_rl.deploy.robot.logs.logfile import METADATA as METADATA_NAME
from robo_rl.deploy.robot.logs.logfile import LogError, StepRecord, digest, element_names
from robo_rl.deploy.robot.logs.recovery import (
    CHANNEL,
    CHUNK,
    MESSAGE,
    METADATA,
    SCHEMA,
    Damage,
    Piece,
    record_text,
    record_texts,
    records,
    recover,
)
from robo_rl.files import require_file

MOST_BYTES = 1 << 36
EXPECTED = "expected a log (*.mcap), as --record of 'robo-rl run' and of 'robo-rl ros policy' writes it"

LEAST_MESSAGE, FREE_MESSAGES = 12, 20_000
"""A file may hold a message for every 12 of its bytes, and 20,000 more. A log whose values never change has 24 bytes,
compressed, for each message (measured). The time that reading takes grows with the number of messages."""
LONGEST_NUMBER, LONGEST_TEXT = 128, 1 << 20
"""A message may have 128 bytes for every number of the contract (a float64 and its name), and 1 MiB more."""
STEP_TOPICS = {"signals", "stamps", "sent", "gate"}
"""Without these a step is not one."""
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, IndexError, struct.error)
"""What decoders raise for bytes that are no message, or not the one that was expected."""


@dataclass
class Log:
    """A log that was read."""

    path: Path
    contract: Contract
    about: dict[str, str]
    steps: list[StepRecord] = field(default_factory=list)
    whole: bool = True
    """Whether the file has its end, and nothing is damaged; a session that was cut off has no end."""
    damage: list[Damage] = field(default_factory=list)
    """The parts of the file that can't be read."""
    gaps: list[int] = field(default_factory=list)
    """Places in ``steps`` before which some may be missing: step ``gaps[i]`` need not follow the one before it."""

    @property
    def missing(self) -> int:
        """Steps that were recorded and can't be read, by their numbers; none are known after the last."""
        numbers = [step.number for step in self.steps]
        first = numbers[0] - 1 if 0 in self.gaps and numbers and numbers[0] else 0
        return first + sum(max(0, numbers[i] - numbers[i - 1] - 1) for i in self.gaps if i)


def read_log(path: str | Path) -> Log:
    """Read a log: all that is whole in it."""
    path = Path(path)
    if path.is_dir():
        raise LogError(f"{path}: it is a folder; {EXPECTED}")
    if not path.is_file():
        raise LogError(f"{path}: the file does not exist; {EXPECTED}")
    try:
        require_file(path, MOST_BYTES)
    except ValueError as error:
        raise LogError(str(error)) from None
    found = recover(path, METADATA_NAME)
    reader = _Reader(path, list(found.damage))
    reader.prepare(found.pieces)
    if reader.contract is None:
        hint = f"; {reader.damage[0]}" if reader.damage else ""
        raise LogError(f"{path}: no contract in it; {EXPECTED}{hint}")
    hurt = sorted(damage.begin for damage in found.damage)
    for piece in found.pieces:
        if hurt and hurt[0] < piece.begin:
            reader.interrupted()
            hurt = [begin for begin in hurt if begin >= piece.begin]
        if piece.opcode == CHUNK:
            reader.read(piece)
    damage = sorted(reader.damage, key=lambda one: one.begin)
    return Log(path, reader.contract, reader.about, reader.steps, found.ended and not damage, damage, reader.gaps)


class _Reader:
    """Puts steps together from the messages of whole chunks."""

    def __init__(self, path: Path, damage: list[Damage]) -> None:
        self.path, self.damage = path, damage
        self.contract: Contract | None = None
        self.about: dict[str, str] = {}
        self.steps: list[StepRecord] = []
        self.gaps: list[int] = []
        self._allowed = 2 * (FREE_MESSAGES + path.stat().st_size // LEAST_MESSAGE)
        """Records that may follow; each is looked at twice."""
        self._topics: dict[int, tuple[str, str]] = {}
        """Topic and message type by channel."""
        self._decoder = Decoder()
        self._pending: dict[str, Any] = {}
        """Messages of the step that is not complete yet."""
        self._of = (0, 0)
        """Time and number of that step."""
        self._sentence = ""
        self._arrays: dict[str, np.ndarray] = {}
        """The newest values of signals with a shape."""
        self._new: set[str] = set()
        """Those of them that were read since something was lost."""
        self._lost = False

    @functools.cached_property
    def _config(self) -> GateConfig:
        assert self.contract is not None
        return GateConfig.from_contract(self.contract)

    @functools.cached_property
    def _longest(self) -> int:
        """Bytes of a message."""
        assert self.contract is not None
        channels = (*self.contract.signals, *self.contract.commands)
        numbers = sum(channel.size for channel in channels) + len(self.contract.initial_state)
        return LONGEST_TEXT + LONGEST_NUMBER * numbers

    def prepare(self, pieces: list[Piece]) -> None:
        """Find what all chunks need, wherever it is whole."""
        for piece in pieces:
            if piece.opcode == METADATA:
                try:
                    self._use(record_texts(piece.data, record_text(piece.data, 0)[1]))
                except UNREADABLE as error:
                    self.damage.append(Damage(piece.begin, piece.end, f"metadata that can't be read ({error})"))
        for piece in pieces:
            if piece.opcode == CHUNK:
                self._define(piece)

    def _use(self, about: dict[str, str]) -> None:
        if "sha256" not in about:  # of an earlier release
            self.about = self.about or about
            return
        if about["sha256"] != digest(about):
            raise ValueError("its digest is another")
        self.about = {key: value for key, value in about.items() if key not in ("contract", "topics", "sha256")}
        self._contract_is(about["contract"])
        for number, (topic, kind) in json.loads(about["topics"]).items():
            self._topics[int(number)] = topic, kind

    def _contract_is(self, text: str) -> None:
        if self.contract is None:
            try:
                self.contract = Contract.from_json(text, f"{self.path}: /policy/contract")
            except ContractError as error:
                raise LogError(str(error)) from None

    def _records(self, piece: Piece) -> Iterator[tuple[int, memoryview]]:
        """Those of a chunk, while there are not more than a log of that size has; the rest counts as damaged."""
        for record in records(piece.data):
            if self._allowed <= 0:
                self.damage.append(Damage(piece.begin, piece.end, "damaged: more messages than a log of that size has"))
                return
            self._allowed -= 1
            yield record

    def _define(self, piece: Piece) -> None:
        """Channels that a chunk declares; and the contract, which is the first message of a log."""
        kinds: dict[int, str] = {}
        for opcode, data in self._records(piece):
            try:
                if opcode == SCHEMA:
                    (number,) = struct.unpack_from("<H", data)
                    kinds[number] = record_text(data, 2)[0]
                elif opcode == CHANNEL:
                    number, schema = struct.unpack_from("<HH", data)
                    if schema in kinds:
                        self._topics.setdefault(number, (record_text(data, 4)[0], kinds[schema]))
                elif self.contract is None and opcode == MESSAGE:
                    (number,) = struct.unpack_from("<H", data)
                    if self._topics.get(number, ("", ""))[0] == "/policy/contract":
                        self._contract_is(self._decoder.decode(number, self._topics[number][1], bytes(data[22:])).data)
            except UNREADABLE as error:
                self._unreadable(piece, error)
                if isinstance(error, LogError):
                    raise
                return

    def _unreadable(self, piece: Piece, error: Exception) -> None:
        self.damage.append(Damage(piece.begin, piece.end, f"a chunk with a message that can't be read ({error})"))
        self.interrupted()

    def interrupted(self) -> None:
        """Something before the next message may be lost."""
        self._lost, self._new = True, set()

    def read(self, piece: Piece) -> None:
        """The messages of a chunk."""
        for opcode, data in self._records(piece):
            if opcode != MESSAGE:
                continue
            try:
                number, sequence, time = struct.unpack_from("<HIQ", data)
                topic, kind = self._topics[number]
                if len(data) > self._longest:
                    raise ValueError(f"{topic} has {len(data)} bytes; expected at most {self._longest}")
                message = self._decoder.decode(number, kind, bytes(data[22:]))
                self._message(topic.removeprefix("/policy/"), message, time, sequence)
            except UNREADABLE as error:
                self._unreadable(piece, error)
                return

    def _message(self, name: str, message: Any, time: int, number: int) -> None:
        assert self.contract is not None
        if name == "decisions":
            self._sentence = message.data
        if name in ("decisions", "contract"):
            return
        if (time, number) != self._of:
            self._lost = self._lost or bool(self._pending)
            self._pending, self._of = {}, (time, number)
        if name.startswith("signal/"):
            signal = self.contract.signal(name.removeprefix("signal/"))
            values = log_arrays.decode(signal, message)
            if values.size != signal.size:
                raise ValueError(f"signal '{signal.name}' has {values.size} numbers; expected {signal.size}")
            self._arrays[signal.name] = self._pending[name] = values
            self._new.add(signal.name)
        elif name == "memory":  # the last of every step
            pending, self._pending = self._pending, {}
            if _complete(pending):
                self._add(pending, message, time, number)
            else:
                self._lost = True
        else:
            self._pending[name] = message

    def _add(self, pending: Mapping[str, Any], memory: Any, time: int, number: int) -> None:
        """One more step, unless it holds an array that may be lost: that is until it is written again."""
        assert self.contract is not None
        follows = bool(self.steps) and 0 < self.steps[-1].number == number - 1
        gap = self._lost and not follows
        shaped = {signal.name for signal in self.contract.signals if signal.shape is not None}
        if not shaped <= (self._new if gap else self._arrays.keys()):
            self._lost = True
            return
        self.steps.append(
            _step(self.contract, self._config, time, pending, self._arrays, memory, number, self._sentence)
        )
        if gap:
            self.gaps.append(len(self.steps) - 1)
        self._lost = False


def _complete(pending: Mapping[str, Any]) -> bool:
    """Whether no message of a step is missing."""
    if not pending.keys() >= STEP_TOPICS:
        return False
    gate = dict(zip(pending["gate"].name, pending["gate"].position, strict=True))
    there = {f"has_{name}": name in pending for name in ("proposed", "command", "fallback")}
    arrays = sum(name.startswith("signal/") for name in pending)
    return all(gate.get(name, found) == found for name, found in there.items()) and (
        gate.get("arrays", arrays) == arrays  # an earlier release didn't tell
    )


def _step(
    contract: Contract, config: GateConfig, wall: int, pending: Mapping[str, Any], arrays: Mapping[str, np.ndarray],
    memory: Any, number: int, sentence: str,
) -> StepRecord:  # fmt: skip
    commands = len(element_names(contract.commands))

    def array(name: str) -> np.ndarray | None:
        if name not in pending:
            return None
        values = _float32(pending[name].position)
        if len(values) != commands:
            raise ValueError(f"/policy/{name} has {len(values)} numbers; expected {commands}")
        return values

    sent = array("sent")
    assert sent is not None
    stamps = tuple(_whole("stamps", x) for x in pending["stamps"].position)
    if len(stamps) != len(contract.signals):
        raise ValueError(f"/policy/stamps has {len(stamps)} numbers; expected {len(contract.signals)}")
    gate = _gate(config, pending["gate"])
    return StepRecord(
        time=int(gate["time"]),
        wall=wall,
        signals=_signals(contract, pending["signals"], arrays),
        stamps=stamps,
        memory=_float32(memory.data),
        proposed=array("proposed"),
        command=array("command"),
        fallback=array("fallback"),
        sent=sent,
        gate=gate,
        sentence=sentence,
        number=number,
    )


def _gate(config: GateConfig, message: Any) -> dict[str, float]:
    """The gate's inputs and answer in a step. ValueError or KeyError: a field is missing, or its value unknown."""
    gate = dict(zip(message.name, (float(x) for x in message.position), strict=True))
    for name in ("time", "operator_stamp", "requests", "events", "intact", "policy"):
        _whole(f"gate {name}", gate.get(name, 0.0) if name == "policy" else gate[name])
    State(_whole("gate state", gate["state"]))
    Source(_whole("gate source", gate["source"]))
    numbers = [_whole(f"gate {name}", gate[name]) for name in ("reason", "channel", "element")]
    problem = Problem(Reason(numbers[0]), *numbers[1:])
    if problem.reason != Reason.NONE:
        explain(config, problem)  # the signal or command, and the element, are the contract's
    return gate


def _whole(what: str, value: float) -> int:
    """A whole number of 64 bits, as times and codes are."""
    if not abs(value) < 1 << 63 or value != int(value):
        raise ValueError(f"{what} is {value:g}; expected a whole number of 64 bits")
    return int(value)


def _signals(contract: Contract, message: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """(N,) all signals of a step, from its message of vectors and the newest arrays."""
    vectors, start = _float32(message.position), 0
    expected = sum(signal.size for signal in contract.signals if signal.shape is None)
    if len(vectors) != expected:
        raise ValueError(f"/policy/signals has {len(vectors)} numbers; expected {expected}")
    parts = []
    for signal in contract.signals:
        if signal.shape is not None:
            parts.append(arrays[signal.name])
        else:
            parts.append(vectors[start : start + signal.size])
            start += signal.size
    return np.concatenate(parts)


def _float32(values: Any) -> np.ndarray:
    with np.errstate(over="ignore"):  # of a stranger; ours were float32
        return np.array(values, np.float32)
