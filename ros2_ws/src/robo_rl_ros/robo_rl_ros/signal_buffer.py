"""The newest sample of every signal, fed by messages and emptied by the control loop.

Times become µs of the control loop's clock here: a header's stamp tells how old a sample already was on arrival. A
message without a header counts from its arrival. Nothing of ROS is imported.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.ros.frames import Frames
from robo_rl.ros.joint_messages import JOINT_STATE, JointCollector
from robo_rl.ros.leaps import LeapCheck
from robo_rl.ros.reading import MEASURED, TF, MessageError, read, stamp_ns
from robo_rl.ros.wiring import Wire

SKEW = 1000
"""µs: clocks of two computers, synchronised over a network, may differ by this much. A stamp that lies less than
this in the future counts as now."""
POSITION = "position"
"""The signal that is the robot's own position."""
FOREIGN = 10**12
"""µs: a stamp that is off by more than this (12 days) is of another clock."""
OTHER_CLOCK = (
    "its stamps are {:.0f} s old: zero, or of another clock. With simulated time (/clock), such as a twin's, start the "
    "node with --use-sim-time"
)
AHEAD_CLOCK = (
    "its stamps are {:.0f} s in the future: of another clock. Where this node has simulated time (/clock), start the "
    "one that sends them with use_sim_time as well"
)
SMOOTHING = 0.05
"""Weight of the newest interval between messages in the mean that diagnostics show."""


@dataclass
class Arrivals:
    """How the messages of one topic come in. Times in s."""

    count: int = 0
    last: float = -1.0
    interval: float = float("nan")
    age: float = float("nan")
    complaint: str = ""
    """Why the last message was not used; "" if it was."""

    def note(self, now: float, age: float) -> None:
        """One more message, ``age`` old on arrival."""
        if self.last >= 0:
            passed = now - self.last
            self.interval = passed if self.count < 2 else self.interval + SMOOTHING * (passed - self.interval)
        self.count, self.last, self.age = self.count + 1, now, age


class SignalBuffer:
    """Samples by signal. ``changed`` is notified when one arrives."""

    def __init__(self, contract: Contract, wires: Sequence[Wire]) -> None:
        self.contract = contract
        self.changed = threading.Condition()
        self.samples: dict[str, tuple[np.ndarray, int]] = {}
        self.operator_stamp = -1
        sensed = [signal for signal in contract.signals if signal.source == "sensor"]
        told = {signal.age_of for signal in contract.signals}
        self._sensed = frozenset(signal.name for signal in sensed)
        self._awaited = frozenset(s.name for s in sensed if s.period is None and s.name not in told)
        self._missing = set(self._awaited)
        self._periods = {s.name: round(1e6 * s.period) for s in sensed if s.period is not None and s.name not in told}
        """µs between measurements of slow sensors."""
        self._due = dict.fromkeys(self._periods, 0)
        """µs, from when on the next one is awaited."""
        self._half = round(5e5 * contract.control_period)
        self._now = 0
        """µs, when the last message came."""
        self.wires: dict[tuple[str, str], list[Wire]] = {}
        """By topic and type: one subscription each."""
        for wire in wires:
            self.wires.setdefault((wire.topic, wire.kind), []).append(wire)
        self.frames = Frames(drives=any(s.name == POSITION for s in sensed))
        self._views = {wire.name: wire.view(self.frames) for wire in wires}
        world = {s.name for s in contract.signals if s.frame.rpartition(" to ")[2] == "world"}
        self._in_world = frozenset(world)
        self._foreign: dict[tuple[str, str], Any] = {}
        """The newest messages of the operator in another frame than the robot's position, by topic and type."""
        self._frame_ids: dict[str, str] = {}
        """Of the newest message, by signal in the world."""
        self._channels = {wire.name: wire.measured(contract.signal(wire.name)) for wire in wires}
        self._joints = {
            w.name: JointCollector(w, self._channels[w.name], self._views[w.name])
            for w in wires
            if w.kind == JOINT_STATE
        }
        self._leaps = {
            w.name: LeapCheck(contract, contract.signal(w.name)) for w in wires if w.kind == TF and w.field == POSITION
        }
        self._told: dict[str, int | None] = {}
        """ns of ROS time, of what tf told last, by signal."""
        own = [w.frame for w in wires if w.name == POSITION and w.kind == TF]
        self.frames.world = own[0] if own else ""
        self._patience = round(5e5 * contract.safety.signal_timeout)
        """µs: half of the age at which a signal is a fault."""
        self.arrivals = {key: Arrivals() for key in self.wires}
        self._noisy = frozenset(s.name for s in contract.signals if s.source == "sensor" and s.noise)
        self._measured: dict[str, tuple[float, ...]] = {}

    @property
    def fresh(self) -> bool:
        """Whether every sensor signal was updated since the last ``take``.

        Slow ones count only once their period is up, and those that may be absent not at all.
        """
        return not self._missing and all(self._now < due for due in self._due.values())

    def put(self, key: tuple[str, str], message: Any, now: int, ros_ns: int) -> None:
        """A message arrived on the topic and type ``key``, at ``now`` µs and ``ros_ns`` ns of ROS time."""
        arrivals, header = self.arrivals[key], stamp_ns(message)
        age = 0 if header is None else (ros_ns - header) // 1000
        stamp = now - (age if age < -SKEW else max(0, age))
        arrivals.note(now * 1e-6, age * 1e-6)
        stamps: dict[str, int] = {}
        try:
            if key[1] == TF:
                values = self._poses(key, message, now, ros_ns, stamps)
            else:
                values = self._values(key, message, stamp, stamps)
        except (MessageError, TypeError, ValueError, OverflowError) as error:
            arrivals.complaint = str(error)[:300]
            return
        repeated = {wire.name for wire in self.wires[key] if wire.name in values and self._repeats(wire, message)}
        told = [f"'{name}' repeats bit for bit in the robot's frame" for name in sorted(repeated)]
        told += self._lacking(key, message, values, now)
        if abs(age) > FOREIGN:
            told.append((OTHER_CLOCK if age > 0 else AHEAD_CLOCK).format(abs(age) * 1e-6))
        arrivals.complaint = "; ".join(told)
        for name in repeated:
            del values[name]  # so it grows old
        with self.changed:
            self._note_frames(key, values, message)
            for name, value in values.items():
                self.samples[name] = (value, stamps.get(name, stamp))
            if not self._sensed.issuperset(values):
                self.operator_stamp = now
            self._missing.difference_update(values)
            self._now = now
            for name in self._periods.keys() & values.keys():
                self._due[name] = now + self._periods[name] - self._half
            self.changed.notify()

    def _values(self, key: tuple[str, str], message: Any, stamp: int, stamps: dict[str, int]) -> dict[str, np.ndarray]:
        """Of the signals that the message completes; ``stamps`` gets those of signals from several messages."""
        values = {}
        for wire in self.wires[key]:
            if (joints := self._joints.get(wire.name)) is None:
                view = self._views[wire.name]
                values[wire.name] = read(wire.kind, wire.field, message, self._channels[wire.name], view)
            elif (found := joints.read(message, stamp)) is not None:
                values[wire.name], stamps[wire.name] = found
        return values

    def _poses(
        self, key: tuple[str, str], message: Any, now: int, ros_ns: int, stamps: dict[str, int]
    ) -> dict[str, np.ndarray]:
        """What tf tells anew: of the time of the oldest part of the way between the frames. One that does not move, or
        is not told any more, grows old.
        """
        values: dict[str, np.ndarray] = {}
        for wire in self.wires[key]:
            value = read(wire.kind, wire.field, message, self._channels[wire.name], self._views[wire.name])
            told = self.frames.stamp(wire.frame, wire.child)
            age = 0 if told is None else (ros_ns - told) // 1000
            stamp = now - (age if age < -SKEW else max(0, age))
            if told is not None and told == self._told.get(wire.name):
                continue
            self._told[wire.name] = told
            leap = self._leaps[wire.name].refusal(value, stamp, now) if wire.name in self._leaps else ""
            if leap:
                raise MessageError(leap)
            values[wire.name], stamps[wire.name] = value, stamp
        return values

    def _lacking(self, key: tuple[str, str], message: Any, values: Mapping[str, np.ndarray], now: int) -> list[str]:
        """Joints that come in no message, once their signal is as old as half of what it may be."""
        late = [w.name for w in self.wires[key] if w.name in self._joints and w.name not in values]
        old = [n for n in late if n not in self.samples or now - self.samples[n][1] > self._patience]
        return [self._joints[name].lacking(message) for name in old]

    def retransform(self) -> None:
        """tf has changed: set-points that came in another frame than the robot's position are elsewhere now."""
        for key, message in self._foreign.items():
            try:
                values = self._values(key, message, 0, {})
            except MessageError:
                continue  # tf does not tell at present; what it told last holds, until it is too old
            with self.changed:
                for name in values.keys() & self.samples.keys():
                    self.samples[name] = values[name], self.samples[name][1]

    def _note_frames(self, key: tuple[str, str], values: Mapping[str, np.ndarray], message: Any) -> None:
        """The frame of the robot's own position is that of all others in the world; what came in another one before
        that was known is forgotten.
        """
        frame = getattr(getattr(message, "header", None), "frame_id", "")
        if not frame:
            return
        foreign = self._in_world & values.keys() - self._sensed and frame.strip("/") != self.frames.world.strip("/")
        self._foreign = {k: m for k, m in self._foreign.items() if k != key} | ({key: message} if foreign else {})
        self._frame_ids.update(dict.fromkeys(self._in_world & values.keys(), frame))
        if not self.frames.world and POSITION in values and POSITION in self._sensed & self._in_world:
            self.frames.world = frame
            for name in [name for name, other in self._frame_ids.items() if other.strip("/") != frame.strip("/")]:
                self.samples.pop(name, None)

    def _repeats(self, wire: Wire, message: Any) -> bool:
        """Whether a sensor with noise gave the very numbers of the last message, which the gate can't see any more."""
        measured = MEASURED.get((wire.kind, wire.field))
        if measured is None or wire.name not in self._noisy:
            return False
        before, self._measured[wire.name] = self._measured.get(wire.name), measured(message)
        return before == self._measured[wire.name]

    def alive(self, now: int) -> None:
        """Note a heartbeat of the operator."""
        with self.changed:
            self.operator_stamp = now

    def take(self) -> tuple[dict[str, tuple[np.ndarray, int]], int]:
        """The newest samples and the operator's stamp; call it with ``changed`` held."""
        self._missing = set(self._awaited)
        return dict(self.samples), self.operator_stamp

    def absent(self) -> dict[str, list[str]]:
        """Signals of which no message could be used so far, by topic."""
        with self.changed:
            here = set(self.samples)
        absent = {key[0]: [wire.name for wire in wires if wire.name not in here] for key, wires in self.wires.items()}
        return {topic: names for topic, names in absent.items() if names}

    def complaints(self) -> list[str]:
        """Why messages are refused at present, with their topics."""
        return [f"{topic}: {a.complaint}" for (topic, _), a in self.arrivals.items() if a.complaint]
