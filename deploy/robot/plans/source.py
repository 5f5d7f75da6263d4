"""Plans of a server as signals of the robot: the newest one, and its age.

    source = PlanSource(contract, "ws://127.0.0.1:8000", say=print)
    samples |= source.read(now, samples)          # in every step: it never waits
    source.note(commands)                         # what was sent

What talks to the server is a process of its own (``robo_rl.deploy.robot.plans.client``). What comes from there is
checked again, so even a process that a server has taken over commands nothing but bounded targets. A plan that is not
newer than the last one is dropped. A plan against the agreement, a connection that is lost and an answer that does not
come are reasons to hold: the plan's age becomes that of its end. The next good plan goes on from there, and without one
the gate stops the robot, as the plan gets too old.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.plans.terms import SENTENCE, Plan, PlanError, Terms
from robo_rl.files import interpreter

Samples = Mapping[str, tuple[np.ndarray, int]]
CLIENT = "robo_rl.deploy.robot.plans.client"
PATIENCE = 1.0
"""s that an answer may take; until then the robot goes on with the plan that it has."""
FIRST = 15.0
"""s that the first connection may take, the start of the process included."""
PICKLES = (
    "LeRobot's asynchronous server (gRPC) sends pickles, which run code of whoever is at the other end when they are "
    "read, over a port without authentication: it is refused. Serve the same policy by WebSocket and msgpack"
)


def require_url(url: str) -> None:
    """PlanError unless it is that of a WebSocket server, by TLS or on this computer."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise PlanError(f"--plan is {url[:80]!r}: {error}; expected ws://127.0.0.1:PORT or wss://HOST:PORT") from None
    if parts.scheme in ("grpc", "grpcs", "dns"):
        raise PlanError(f"--plan is {url[:80]!r}. {PICKLES} (docs/plans.md)")
    if parts.scheme not in ("ws", "wss") or not host or parts.username or parts.password:
        raise PlanError(f"--plan is {url[:80]!r}; expected ws://127.0.0.1:PORT or wss://HOST:PORT")
    local = host == "localhost"
    with contextlib.suppress(ValueError):
        local = local or ipaddress.ip_address(host).is_loopback
    if parts.scheme == "ws" and not local:
        raise PlanError(
            f"--plan is {url[:80]!r}: without TLS anybody on the way can change plans; expected wss://, or ws:// to "
            "this computer (127.0.0.1), such as the end of an SSH tunnel"
        )


@dataclass
class Counts:
    """What came from the server."""

    plans: int = 0
    dropped: int = 0
    """Not newer than the one before."""
    refused: int = 0
    """Against the agreement."""
    lost: int = 0
    """Connections, and answers that did not come."""


class Checks:
    """Which plans are followed: pure, of times in µs that are given."""

    def __init__(self, contract: Contract) -> None:
        """PlanError for a contract that follows no plans."""
        self.terms, facts = Terms.of(contract), contract.facts.get("plan", {})
        self.commands = contract.commands
        self.ends = np.cumsum([c.size for c in contract.commands])
        self.jump = np.concatenate([np.array(facts["jump"][c.name], np.float64) for c in contract.commands])
        self.period = round(1e6 * contract.control_period)
        self.names = [str(facts["signals"][c.name]) for c in contract.commands]
        self.age_name = str(facts["age"])
        self.length = (self.terms.rows - 1) * self.terms.dt
        """s from a plan's first row to its last."""
        self.oldest = float(contract.signal(self.age_name).upper[0])  # type: ignore[index]
        self.plan: Plan | None = None
        """The one that is followed."""
        self.holding = ""
        """Why the robot holds in place of following it; "" while it follows."""

    def take(self, plan: Plan, now: int, asked: int, last: np.ndarray | None) -> bool:
        """Follow a plan from now on; whether it is newer than the one before. PlanError where it is none.

        ``asked``: when its request was made. ``last`` (D,): the command that was sent last, or what is measured.
        """
        rows = self.terms.within(plan.rows)
        if self.plan is not None and plan.start < self.plan.start + self.period:
            return False
        if not asked <= plan.start <= now:
            raise PlanError(
                f"the plan's t0 is {1e-6 * (plan.start - asked):.6g} s after its request, which was made "
                f"{1e-6 * (now - asked):.3f} s ago; expected the time of the request"
            )
        self._require_smooth(np.diff(rows, axis=0), "from one row to the next")
        plan = Plan(plan.number, plan.start, np.concatenate([rows, rows[-1:].repeat(self.terms.rows - len(rows), 0)]))
        if last is not None:
            place = min(1e-6 * (now - plan.start), self.length) / self.terms.dt
            before = int(place)
            after = min(before + 1, self.terms.rows - 1)
            here = plan.rows[before] + (place - before) * (plan.rows[after] - plan.rows[before])
            self._require_smooth((here - last)[None], "from the last command")
        self.plan, self.holding = plan, ""
        return True

    def _require_smooth(self, changes: np.ndarray, what: str) -> None:
        beyond = np.abs(changes) > self.jump * (1.0 + 1e-6)
        if beyond.any():
            row, i = (int(k) for k in np.argwhere(beyond)[0])
            raise PlanError(
                f"the plan jumps {what} by {changes[row, i]:.4g} for {self.terms.names[i]}; expected at most "
                f"{self.jump[i]:.4g}"
            )

    def samples(self, now: int) -> dict[str, tuple[np.ndarray, int]]:
        """The plan, by the commands' signals, stamped with its start, and its age; none before the first one."""
        if self.plan is None:
            return {}
        parts = np.split(self.plan.rows, self.ends[:-1], axis=1)
        age = 1e-6 * (now - self.plan.start)
        age = min(self.oldest, max(age, self.length + 1e-3) if self.holding else age)
        found = {n: (np.ascontiguousarray(p), self.plan.start) for n, p in zip(self.names, parts, strict=True)}
        return {**found, self.age_name: (np.array([age], np.float32), now)}


class PlanSource:
    """The plans of one server."""

    def __init__(
        self, contract: Contract, url: str, say: Callable[[str], None], patience: float = PATIENCE, authority: str = ""
    ) -> None:
        """``patience``: s that an answer may take. ``authority``: a file of certificates that sign the server's.

        PlanError for a URL that is not to be trusted, or a contract that follows no plans.
        """
        from robo_rl.deploy.robot.plans import client  # here: websockets is an extra

        require_url(url)
        self._frame = client
        self.checks, self.say, self.counts = Checks(contract), say, Counts()
        if not 0.0 < patience < self.checks.length:
            raise PlanError(f"--plan-patience is {patience:g} s; expected less than a plan's {self.checks.length:g} s")
        self.names = (*self.checks.names, self.checks.age_name)
        self.url, self.ready, self.refusal = url, False, ""
        self._feedback = [pair for c in contract.commands for pair in contract.feedback(c)]
        self._command: np.ndarray | None = None
        self._number, self._asked, self._waiting = 0, 0, False
        self._unsent, self._received = b"", bytearray()
        words = {
            "where": {"url": url, "authority": authority, "patience": patience},
            "terms": asdict(self.checks.terms),
        }
        environment = {**interpreter.environment(), "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
        self.process = subprocess.Popen(
            interpreter.module(CLIENT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to, self._from = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.write(self._to, json.dumps(words).encode() + b"\n")
        for end in (self._to, self._from):
            os.set_blocking(end, False)

    def connect(self) -> None:
        """Wait until the server has agreed. PlanError where it does not, or does not answer."""
        until = time.monotonic() + FIRST
        while not self.ready and not self.refusal and time.monotonic() < until and self.process.poll() is None:
            self.poll(0, {})
            time.sleep(0.01)
        if not self.ready:
            raise PlanError(f"{self.url}: {self.refusal or self.checks.holding or 'no answer'}")

    def read(self, now: int, samples: Samples) -> dict[str, tuple[np.ndarray, int]]:
        """The signals of the plan at ``now`` (µs). ``samples``: the robot's own, of which the next request is made."""
        self.poll(now, samples)
        if self.ready and not self._waiting and not self._unsent:
            self._ask(now, samples)
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            self._unsent = self._unsent[os.write(self._to, self._unsent) :] if self._unsent else b""
        return self.checks.samples(now)

    def note(self, commands: Mapping[str, np.ndarray] | None) -> None:
        """The commands that were sent, (k,) by name; None: none were."""
        self._command = None
        if commands is not None:
            self._command = np.concatenate([commands[c.name] for c in self.checks.commands], dtype=np.float64)

    def poll(self, now: int, samples: Samples) -> None:
        """Take what has come from the process."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._from, 1 << 16)
            if not data and not self.refusal:
                self._hold("the process that talks to the server has ended")
                self.ready, self.refusal = False, self.checks.holding
        self._received += data
        frame = self._frame
        while len(self._received) >= frame.HEAD.size:
            kind, size, start = frame.HEAD.unpack_from(self._received)
            if size > max(SENTENCE, self.checks.terms.most_bytes):
                self.close()
                break
            if len(self._received) < frame.HEAD.size + size:
                break
            body = bytes(self._received[frame.HEAD.size : frame.HEAD.size + size])
            del self._received[: frame.HEAD.size + size]
            self._take(kind, start, body, now, samples)

    def _take(self, kind: bytes, start: int, body: bytes, now: int, samples: Samples) -> None:
        frame = self._frame
        self._waiting = False
        if kind == frame.READY:
            self.ready = True
        elif kind == frame.PLAN:
            self._take_plan(start, body, now, samples)
        else:
            sentence = body.decode("ascii", "replace")
            lost = kind == frame.LOST
            self.counts.lost, self.counts.refused = self.counts.lost + lost, self.counts.refused + (not lost)
            self.refusal = sentence if kind == frame.REFUSED and not self.counts.plans else self.refusal
            self.ready = False
            self._hold(sentence)

    def _take_plan(self, start: int, body: bytes, now: int, samples: Samples) -> None:
        width = len(self.checks.terms.names)
        number, flat = int.from_bytes(body[:4], "little"), np.frombuffer(body[4:], np.float32)
        try:
            if (
                number != self._number
                or len(flat) % width
                or not 2 * width <= len(flat) <= self.checks.terms.rows * width
            ):
                raise PlanError("the process that talks to the server answered something else")
            plan = Plan(number, start, flat.reshape(-1, width))
            taken = self.checks.take(plan, now, self._asked, self._last(samples))
        except PlanError as error:
            self.counts.refused += 1
            self._hold(str(error))
            return
        if taken and not self.counts.plans:
            self.say(f"the first plan has come from {self.url}")
        self.counts.plans, self.counts.dropped = self.counts.plans + taken, self.counts.dropped + (not taken)

    def _hold(self, why: str) -> None:
        if self.checks.holding != why:
            self.say(f"the robot holds: {why}")
        self.checks.holding = why

    def _last(self, samples: Samples) -> np.ndarray | None:
        if self._command is not None:
            return self._command
        if any(name not in samples for name, _ in self._feedback):
            return None
        measured = [samples[name][0][i] for name, i in self._feedback]
        return np.clip(measured, self.checks.terms.lower, self.checks.terms.upper)

    def _ask(self, now: int, samples: Samples) -> None:
        ages, values = [], []
        for name, shape in self.checks.terms.signals:
            value, stamp = samples.get(name, (np.zeros(shape, np.float32), -1))
            ages.append(1e-6 * (now - stamp) if stamp >= 0 else np.nan)
            values.append(np.asarray(value, np.float32).ravel())
        self._number, self._asked, self._waiting = (self._number + 1) % (1 << 32), now, True
        flat = np.concatenate([np.array(ages, np.float32), *values])
        self._unsent = self._frame.REQUEST.pack(self._number, now) + flat.tobytes()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
