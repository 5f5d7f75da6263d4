"""A plan server on this computer."""

from __future__ import annotations

import contextlib
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from websockets.sync.server import serve as listen

from robo_rl.contract import Contract
from robo_rl.deploy.emulate.plans import Planner
from robo_rl.deploy.emulate.plans.faults import FAULTS, METADATA
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.plans.msgpack import MessageError, pack, unpack
from robo_rl.deploy.robot.plans.terms import Terms
from robo_rl.files.ports import opening
from robo_rl.learn.experience.demonstrations import contract_of
from robo_rl.sim.tasks.planned import SUFFIX


@dataclass
class PlanServer:
    """Answers requests, one after the other on each connection, after a latency that is drawn for each."""

    planner: Planner
    terms: Terms
    latency: tuple[float, float] = (0.1, 0.5)
    """s, the least and the greatest."""
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    requests: int = 0
    before: dict[str, Any] | None = None
    """The last right answer."""
    wrong_since: float = math.nan
    """When the first message with a fault was sent (s, monotonic)."""

    def begin(self, fault: str) -> None:
        """From now on this is wrong; a fault of the first message ends the connections, so that it comes again."""
        self.fault, self.wrong_since = fault, math.nan

    def _note(self) -> None:
        if self.fault and math.isnan(self.wrong_since):
            self.wrong_since = time.monotonic()

    def serve(self, link: ServerConnection) -> None:
        """One connection, until it ends."""
        told = self.terms.metadata(self.planner.needs)
        with contextlib.suppress(ConnectionClosed, OSError, EOFError, MessageError):
            self._note()
            if (change := METADATA.get(self.fault)) is not None:
                link.send(change(told))
            else:
                link.send(pack(told))
            self.planner.forget(np.array([0]))
            while True:
                request = unpack(bytes(link.recv(decode=False)))
                answer = self.answer(request)
                self._note()
                if self.fault in METADATA:
                    return
                FAULTS[self.fault].how(self, link, answer)
                self.before = answer

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The plan for a request, when its time has come."""
        self.requests += 1
        due = time.monotonic() + self.random.uniform(*self.latency)
        signals = {name: np.asarray(value, np.float32)[None] for name, value in request["signals"].items()}
        ages = request["ages"]
        for signal in self.planner.contract.signals:
            if signal.age_of is not None:
                signals[signal.name] = np.array([[min(ages.get(signal.age_of, 9.0), signal.bounds[1][0])]], np.float32)
        rows = self.planner.plan(signals, np.array([request["time"]]), np.array([0]))[0]
        time.sleep(max(0.0, due - time.monotonic()))
        told = self.terms.metadata()["plan"]
        return {
            "id": request["id"], "t0": request["time"], "dt": told["dt"], "actions": rows.astype(np.float32),
            "names": told["names"], "units": told["units"], "frames": told["frames"],
            "server_timing": {"infer_ms": 1e3 * (time.monotonic() - due)},
        }  # fmt: skip


def arm_server(latency: tuple[float, float], policy: str = "zoo:arm-place") -> PlanServer:
    """The server of a policy of "arm-place"."""
    from robo_rl.sim.tasks.loading import load_task

    bundle = Bundle.read(policy)
    task = load_task(f"{bundle.contract.task}{SUFFIX}", bundle.contract.robot_name)
    terms = Terms.of(contract_of(task))
    every = round(terms.dt / bundle.contract.control_period)
    return PlanServer(Planner(bundle, terms.rows, every, steps_of(latency[1], bundle.contract)), terms, latency)


def steps_of(latency: float, contract: Contract) -> int:
    """Control periods until an answer has come."""
    return math.ceil(latency / contract.control_period - 1e-9) + 1


def serve(
    server: PlanServer, port: int, announce: Callable[[int], None], each: Callable[[float], None],
    seconds: float = float("inf"),
) -> None:  # fmt: skip
    """For some seconds, at a port of 127.0.0.1; 0: a free one, which ``announce`` is told. ``each`` is called with the
    time since then (s).
    """
    with opening(port, "give another one by --port"):
        listener = listen(server.serve, "127.0.0.1", port, compression=None, ping_interval=None, close_timeout=0.1)
    with listener:
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        announce(int(listener.socket.getsockname()[1]))
        begun = time.monotonic()
        with contextlib.suppress(KeyboardInterrupt):
            while (since := time.monotonic() - begun) < seconds:
                each(since)
                time.sleep(0.02)
        listener.shutdown()
