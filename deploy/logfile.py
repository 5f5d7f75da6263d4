"""The log of a session: one MCAP file with ROS 2 messages, that ROS tools and Foxglove open.

Numbers with names travel as ``sensor_msgs/JointState``, the one standard message that has names, values and a stamp.
Per control step there are

    /policy/signals, /policy/stamps          what the policy saw, and when each signal was measured (µs)
    /policy/signal/NAME                      a signal with a shape (deploy.log_arrays), whenever it is another one
    /policy/memory                           the policy's memory before the step
    /policy/proposed, /policy/command        what it proposed, and what was given to the gate (blended)
    /policy/fallback, /policy/sent           what the controller proposed, and what was sent
    /policy/gate                             time, state, source, reason and all else that the gate was told and said

and, when something changes, ``/policy/decisions`` with a sentence. The contract is the first message.

Chunks are small and written through, so that a file without its end still has all but the last half second. They are
not smaller since the writer keeps a kilobyte about each until the end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deploy import log_arrays
from robo_rl.contract import Contract, Signal

CHUNK_BYTES = 3 << 15
METADATA = "robo_rl"
GATE_FIELDS = (
    "time", "state", "source", "reason", "channel", "element", "events", "requests", "operator_stamp", "intact",
    "has_command", "has_fallback", "has_proposed", "mode", "authority", "inference", "policy",
)  # fmt: skip
JOINT_STATE, ARRAY, STRING = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String"
_LINE = "=" * 80
DEFINITIONS = {
    STRING: "string data",
    JOINT_STATE: f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{_LINE}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{_LINE}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
""",
    ARRAY: f"""std_msgs/MultiArrayLayout layout
float64[] data
{_LINE}
MSG: std_msgs/MultiArrayLayout
std_msgs/MultiArrayDimension[] dim
uint32 data_offset
{_LINE}
MSG: std_msgs/MultiArrayDimension
string label
uint32 size
uint32 stride
""",
    **log_arrays.DEFINITIONS,
}
"""The message types of a log, as rosidl defines them."""


class LogError(ValueError):
    """A log can't be read, or has not what is needed. The message names the file."""


@dataclass(frozen=True)
class StepRecord:
    """One control step. Arrays are float32 in the contract's order; times in µs of the control loop's clock."""

    time: int
    wall: int
    """ns since 1970, for the log's time line."""
    signals: np.ndarray
    stamps: tuple[int, ...]
    memory: np.ndarray
    proposed: np.ndarray | None
    command: np.ndarray | None
    fallback: np.ndarray | None
    sent: np.ndarray
    gate: Mapping[str, float]
    """By the names in ``GATE_FIELDS`` that are not told by other fields."""
    sentence: str = ""
    number: int = 0
    """Of the step, counted by the process that controls the robot; the sequence number of its messages."""


def element_names(channels: Sequence[Any]) -> list[str]:
    """``position/x`` and so on, for signals or commands; ``scan/17`` for places of signals with a shape."""
    return [f"{channel.name}/{label}" for channel in channels for label in channel.labels]


def spans(contract: Contract) -> dict[str, slice]:
    """Where each signal lies in the flat array of all signals."""
    ends = np.cumsum([0, *(signal.size for signal in contract.signals)]).tolist()
    return {signal.name: slice(ends[i], ends[i + 1]) for i, signal in enumerate(contract.signals)}


def _vectors(contract: Contract) -> list[Signal]:
    """The signals that share a topic: those without a shape."""
    return [signal for signal in contract.signals if signal.shape is None]


class NamedNumbers:
    """Bytes of JointState messages whose names never change: only stamp and values are written anew.

    The general encoder takes 0.3 ms per message, which is a quarter of a core for a log at 100 Hz.
    """

    def __init__(self, names: Sequence[str]) -> None:
        body = struct.pack("<I", 1) + b"\0"  # the empty frame_id
        body += bytes(-(8 + len(body)) % 4) + struct.pack("<I", len(names))
        for name in names:
            text = name.encode() + b"\0"
            body += bytes(-(8 + len(body)) % 4) + struct.pack("<I", len(text)) + text
        body += bytes(-(8 + len(body)) % 4) + struct.pack("<I", len(names))
        if names:
            body += bytes(-(8 + len(body)) % 8)
        self._middle, self._count = body, len(names)

    def encode(self, ns: int, values: np.ndarray) -> bytes:
        """CDR, little endian, of a message stamped ``ns`` with as many values as names."""
        if len(values) != self._count:
            raise ValueError(f"{len(values)} values; expected {self._count}, one per name")
        seconds, rest = divmod(ns, 1_000_000_000)
        head = b"\0\1\0\0" + struct.pack("<iI", seconds, rest)
        return head + self._middle + np.asarray(values, "<f8").tobytes() + bytes(8)


def _array_bytes(values: np.ndarray) -> bytes:
    """A Float64MultiArray without dimensions."""
    head = b"\0\1\0\0" + struct.pack("<III", 0, 0, len(values))
    return head + (bytes(4) if len(values) else b"") + np.asarray(values, "<f8").tobytes()


def _string_bytes(text: str) -> bytes:
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + struct.pack("<I", len(data)) + data


class LogWriter:
    """Writes a log. ``close`` ends it; without that it can still be read."""

    def __init__(self, path: Path, contract: Contract, about: Mapping[str, str]) -> None:
        from mcap.writer import Writer

        self._file = path.open("xb")
        self._writer = Writer(self._file, chunk_size=CHUNK_BYTES)
        self._writer.start(profile="ros2", library="robo-rl")
        self._schemas = {
            kind: self._writer.register_schema(kind, "ros2msg", text.encode()) for kind, text in DEFINITIONS.items()
        }
        self._channels: dict[str, int] = {}
        signals, commands = element_names(_vectors(contract)), element_names(contract.commands)
        where = spans(contract)
        self._vectors = np.concatenate(
            [np.zeros(0, int), *(np.arange(where[s.name].start, where[s.name].stop) for s in _vectors(contract))]
        )
        self._arrays = [(signal, where[signal.name]) for signal in contract.signals if signal.shape is not None]
        self._written: dict[str, bytes] = {}
        """The last values of signals with a shape."""
        self._numbers = {
            "signals": NamedNumbers(signals),
            "stamps": NamedNumbers([signal.name for signal in contract.signals]),
            **{name: NamedNumbers(commands) for name in ("proposed", "command", "fallback", "sent")},
            "gate": NamedNumbers(GATE_FIELDS),
        }
        self._writer.add_metadata(METADATA, dict(about))
        self._last = ""
        self._write("contract", STRING, int(about["wall"]), _string_bytes(contract.to_json()))

    def _write(self, name: str, kind: str, ns: int, data: bytes, number: int = 0) -> None:
        if name not in self._channels:
            self._channels[name] = self._writer.register_channel(f"/policy/{name}", "cdr", self._schemas[kind])
        self._writer.add_message(self._channels[name], log_time=ns, publish_time=ns, sequence=number, data=data)

    def write(self, step: StepRecord) -> None:
        """One more step."""
        gate = dict(
            step.gate,
            time=step.time,
            has_command=step.command is not None,
            has_fallback=step.fallback is not None,
            has_proposed=step.proposed is not None,
        )
        arrays = {
            "signals": step.signals[self._vectors],
            "stamps": np.array(step.stamps, float),
            "proposed": step.proposed,
            "command": step.command,
            "fallback": step.fallback,
            "sent": step.sent,
            "gate": np.array([gate.get(name, 0) for name in GATE_FIELDS], float),
        }
        for signal, span in self._arrays:
            self._write_array(step, signal, step.signals[span])
        for name, values in arrays.items():
            if values is not None:
                self._write(name, JOINT_STATE, step.wall, self._numbers[name].encode(step.wall, values), step.number)
        if step.sentence != self._last:
            self._last = step.sentence
            self._write("decisions", STRING, step.wall, _string_bytes(step.sentence or "nothing is wrong"))
        self._write("memory", ARRAY, step.wall, _array_bytes(step.memory), step.number)
        self._file.flush()  # whole chunks only: most steps leave nothing to flush

    def _write_array(self, step: StepRecord, signal: Signal, values: np.ndarray) -> None:
        data = np.asarray(values, "<f4").tobytes()
        if self._written.get(signal.name) != data:
            self._written[signal.name] = data
            message = log_arrays.encode(signal, step.wall, values)
            self._write(f"signal/{signal.name}", log_arrays.kind_of(signal), step.wall, message, step.number)

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.finish()
        self._file.close()


@dataclass
class Log:
    """A log that was read."""

    path: Path
    contract: Contract
    about: dict[str, str]
    steps: list[StepRecord] = field(default_factory=list)
    whole: bool = True
    """Whether the file has its end; a session that was cut off has not."""


def read_log(path: str | Path) -> Log:
    """Read a log, to where it was cut off if it was."""
    path = Path(path)
    if not path.is_file():
        raise LogError(f"{path}: there is no such file; expected a log, as policy_node records it")
    log: Log | None = None
    pending: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    """The newest values of signals with a shape."""
    about: dict[str, str] = {}
    whole = True
    for topic, time, message, number in _messages(path, about):
        if topic is None:
            whole = False
            break
        name = topic.removeprefix("/policy/")
        if name == "contract":
            log = Log(path, Contract.from_json(message.data, f"{path}: /policy/contract"), about)
        elif name == "decisions":
            pending["sentence"] = message.data
        elif name == "memory":  # the last of every step
            if log is not None and {"signals", "stamps", "sent", "gate"} <= set(pending):
                memory = np.array(message.data, np.float32)
                log.steps.append(
                    _step(time, pending, _signals(log.contract, pending["signals"], arrays), memory, number)
                )
            pending = {"sentence": pending.get("sentence", "")}
        elif name.startswith("signal/"):
            if log is not None:
                signal = log.contract.signal(name.removeprefix("signal/"))
                arrays[signal.name] = log_arrays.decode(signal, message)
        else:
            pending[name] = message
    if log is None:
        raise LogError(f"{path}: no contract in it; expected a log, as policy_node records it")
    log.whole = whole
    return log


def _messages(path: Path, about: dict[str, str]) -> Iterator[tuple[str | None, int, Any, int]]:
    """Topic, time in ns, decoded message and number of each; a topic None at the end of a file that was cut off."""
    from mcap.exceptions import McapError
    from mcap.records import Channel, Message, Metadata, Schema
    from mcap.stream_reader import StreamReader
    from mcap_ros2.decoder import DecoderFactory

    schemas, channels, decoders, factory = {}, {}, {}, DecoderFactory()
    with path.open("rb") as file:
        try:
            for record in StreamReader(file).records:
                if isinstance(record, Schema):
                    schemas[record.id] = record
                elif isinstance(record, Channel):
                    channels[record.id] = record
                    decoders[record.id] = factory.decoder_for("cdr", schemas[record.schema_id])
                elif isinstance(record, Metadata) and record.name == METADATA:
                    about.update(record.metadata)
                elif isinstance(record, Message):
                    decode = decoders[record.channel_id]
                    assert decode is not None
                    yield channels[record.channel_id].topic, record.log_time, decode(record.data), record.sequence
        except (McapError, EOFError, struct.error):
            yield None, 0, None, 0


def _signals(contract: Contract, message: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """(N,) all signals of a step, from its message of vectors and the newest arrays."""
    vectors, start, parts = np.array(message.position, np.float32), 0, []
    for signal in contract.signals:
        if signal.shape is not None:
            parts.append(arrays.get(signal.name, np.zeros(signal.size, np.float32)))
        else:
            parts.append(vectors[start : start + signal.size])
            start += signal.size
    return np.concatenate(parts)


def _step(wall: int, pending: Mapping[str, Any], signals: np.ndarray, memory: np.ndarray, number: int) -> StepRecord:
    gate = dict(zip(pending["gate"].name, (float(x) for x in pending["gate"].position), strict=True))

    def array(name: str) -> np.ndarray | None:
        return np.array(pending[name].position, np.float32) if name in pending else None

    sent = array("sent")
    assert sent is not None
    return StepRecord(
        time=int(gate["time"]),
        wall=wall,
        signals=signals,
        stamps=tuple(int(x) for x in pending["stamps"].position),
        memory=memory,
        proposed=array("proposed"),
        command=array("command"),
        fallback=array("fallback"),
        sent=sent,
        gate=gate,
        sentence=pending.get("sentence", ""),
        number=number,
    )
