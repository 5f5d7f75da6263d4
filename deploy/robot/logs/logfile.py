"""The log of a session: one MCAP file with ROS 2 messages, that ROS tools and Foxglove open.

Numbers with names travel as ``sensor_msgs/JointState``, the one standard message that has names, values and a stamp.
Per control step there are

    /policy/signals, /policy/stamps          what the policy saw, and when each signal was measured (µs)
    /policy/signal/NAME                      a signal with a shape (robo_rl.deploy.robot.logs.arrays), whenever it is
    another one
    /policy/memory                           the policy's memory before the step
    /policy/proposed, /policy/command        what it proposed, and what was given to the gate (blended)
    /policy/fallback, /policy/sent           what the controller proposed, and what was sent, unless the mode forbade it
    /policy/gate                             time, state, source, reason and all else that the gate was told and said

and, when something changes, ``/policy/decisions`` with a sentence. The contract is the first message.

Chunks are small and written through, so that a file without its end still has all but the last half second. They are
not smaller since the writer keeps a kilobyte about each until the end. What all chunks need (the contract, which topic
has which number, the values of signals with a shape) is written again now and then, so that damage anywhere loses the
chunks that it hits and no others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.contract import Contract, Signal
from robo_rl.controllers.gate.codes import State
from robo_rl.controllers.gate.safety import Inputs, Output
from robo_rl.deploy.robot.logs import arrays as log_arrays
from robo_rl.deploy.robot.logs.cdr import (
    ARRAY,
    DEFINITIONS,
    JOINT_STATE,
    STRING,
    NamedNumbers,
    array_bytes,
    string_bytes,
)

CHUNK_BYTES = 3 << 15
METADATA = "robo_rl"
REPEATED, ARRAYS_REPEATED = 1000, 100
"""Steps after which what all chunks need is written again: the contract, and signals with a shape."""
GATE_FIELDS = (
    "time", "state", "source", "reason", "channel", "element", "events", "requests", "operator_stamp", "intact",
    "has_command", "has_fallback", "has_proposed", "arrays", "mode", "authority", "inference", "policy",
)  # fmt: skip
BLEND, LIVE = 2, 3
"""The last two rungs of the ladder, on which commands are sent; on the last one the policy has all authority."""
COUNTED = ("time", "has_command", "has_fallback", "has_proposed", "arrays")
"""Those of them that the writer finds by itself."""


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
    """What the gate let through; see ``commanded``."""
    gate: Mapping[str, float]
    """By the names in ``GATE_FIELDS`` that are not told by other fields."""
    sentence: str = ""
    number: int = 0
    """Of the step, counted by the process that controls the robot; the sequence number of its messages."""

    @property
    def commanded(self) -> bool:
        """Whether the robot was told ``sent``, to move: by an ACTIVE gate, on a rung of the ladder that sends."""
        return self.gate.get("state") == State.ACTIVE and self.gate.get("mode", LIVE) >= BLEND

    @classmethod
    def of(
        cls, given: Inputs, output: Output, memory: np.ndarray, proposed: np.ndarray | None, wall: int,
        time: int | None = None, mode: int = LIVE, authority: float = 1.0, inference: float = 0.0, policy: int = 0,
        sentence: str = "", number: int = 0,
    ) -> StepRecord:  # fmt: skip
        """What a gate was given and answered. ``time``: if it is not that of the inputs.

        ``memory`` (S,) is the policy's before the step, ``proposed`` (M,) its own command, ``mode`` the rung of the
        ladder, ``authority`` the policy's part, ``inference`` how long it took (s), ``policy`` which one it was.
        """
        problem = output.problem
        return cls(
            given.time if time is None else time, wall, given.signals, tuple(given.stamps), memory, proposed,
            given.command, given.fallback, output.command,
            {
                "state": output.state, "source": output.source, "reason": problem.reason, "channel": problem.channel,
                "element": problem.element, "events": output.events, "requests": given.requests,
                "operator_stamp": given.operator_stamp, "intact": given.bundle_intact, "mode": mode,
                "authority": authority, "inference": inference, "policy": policy,
            },
            sentence, number,
        )  # fmt: skip


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


class LogWriter:
    """Writes a log. ``close`` ends it; without that it can still be read."""

    def __init__(self, path: Path, contract: Contract, about: Mapping[str, str]) -> None:
        from mcap.writer import Writer

        self._file = path.open("xb")
        self._writer = Writer(self._file, chunk_size=CHUNK_BYTES)
        self._writer.start(profile="ros2", library="robo-rl")
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
        kinds = {"contract": STRING, "decisions": STRING, "memory": ARRAY, **dict.fromkeys(self._numbers, JOINT_STATE)}
        kinds |= {f"signal/{signal.name}": log_arrays.kind_of(signal) for signal, _ in self._arrays}
        schemas = {
            kind: self._writer.register_schema(kind, "ros2msg", text.encode()) for kind, text in DEFINITIONS.items()
        }
        self._channels = {
            name: self._writer.register_channel(f"/policy/{name}", "cdr", schemas[kind]) for name, kind in kinds.items()
        }
        self._about = _sealed(about, contract, {f"/policy/{name}": i for name, i in self._channels.items()}, kinds)
        self._writer.add_metadata(METADATA, self._about)
        self._last, self._steps = "", 0
        self._write("contract", int(about["wall"]), string_bytes(contract.to_json()))

    def _write(self, name: str, ns: int, data: bytes, number: int = 0) -> None:
        self._writer.add_message(self._channels[name], log_time=ns, publish_time=ns, sequence=number, data=data)

    def write(self, step: StepRecord) -> None:
        """One more step."""
        self._steps += 1
        if self._steps % REPEATED == 0:
            self._writer.add_metadata(METADATA, self._about)
        if self._steps % ARRAYS_REPEATED == 0:
            self._written.clear()
        gate = dict(
            step.gate,
            time=step.time,
            has_command=step.command is not None,
            has_fallback=step.fallback is not None,
            has_proposed=step.proposed is not None,
            arrays=sum([self._write_array(step, signal, step.signals[span]) for signal, span in self._arrays]),
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
        for name, values in arrays.items():
            if values is not None:
                self._write(name, step.wall, self._numbers[name].encode(step.wall, values), step.number)
        if step.sentence != self._last:
            self._last = step.sentence
            self._write("decisions", step.wall, string_bytes(step.sentence or "nothing is wrong"))
        self._write("memory", step.wall, array_bytes(step.memory), step.number)
        self._file.flush()  # whole chunks only: most steps leave nothing to flush

    def _write_array(self, step: StepRecord, signal: Signal, values: np.ndarray) -> bool:
        """Write a signal with a shape if it is another than before; tells whether."""
        data = np.asarray(values, "<f4").tobytes()
        if self._written.get(signal.name) == data:
            return False
        self._written[signal.name] = data
        message = log_arrays.encode(signal, step.wall, values)
        self._write(f"signal/{signal.name}", step.wall, message, step.number)
        return True

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.add_metadata(METADATA, self._about)
        self._writer.finish()
        self._file.close()


def _sealed(
    about: Mapping[str, str], contract: Contract, channels: Mapping[str, int], kinds: Mapping[str, str]
) -> dict[str, str]:
    """``about`` with what all chunks need, and the digest of that: metadata has no checksum of its own."""
    topics = {str(number): [topic, kinds[topic.removeprefix("/policy/")]] for topic, number in channels.items()}
    sealed = {**about, "contract": contract.to_json(), "topics": json.dumps(topics)}
    return {**sealed, "sha256": digest(sealed)}


def digest(about: Mapping[str, str]) -> str:
    """SHA-256 of what a log says about itself, as hexadecimal digits."""
    told = {key: value for key, value in about.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
