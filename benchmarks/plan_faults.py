"""What becomes of a robot whose plan server fails: every fault of ``robo-rl emulate plan-server``, in real time.

    .venv/bin/python benchmarks/plan_faults.py

The robot is a simulated tool that reaches each commanded position at once; policy, gate and follower of plans are
those of ``robo-rl run --plan``. For each fault: s from the moment that shows it (the faulty message; for an answer
that does not come, the end of the patience) until no command changes any more, the greatest change of a command in a
step over what its speed limit allows, and the greatest memory of the process that talks to the server.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import results
import tyro
from websockets.sync.server import serve

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.build.plans import export_follower
from robo_rl.deploy.emulate.plans import faults
from robo_rl.deploy.emulate.plans.serve import arm_server
from robo_rl.deploy.robot.plans.source import PlanSource
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Session
from robo_rl.sim.tasks.loading import load_task

PATIENCE = 0.5  # s
GOOD, WRONG = 1.0, 2.5  # s with right answers, and with the fault
LATENCY = 0.02, 0.08  # s
WAITS = ("stall", "slow bytes")
"""Faults that show only when an answer has not come."""


class Robot:
    """A simulated tool that reaches each commanded position at once, with a session of its own."""

    def __init__(self, policy: Policy) -> None:
        self.contract, self.session = policy.contract, Session(policy)
        cube, place = np.array([0.45, 0.1, 0.02], np.float32), np.array([0.45, -0.15, 0.02], np.float32)
        self.values = {
            "tool_position": np.array([0.5, 0.0, 0.2], np.float32), "tool_linear_velocity": np.zeros(3, np.float32),
            "gripper_position": np.array([0.02], np.float32), "cube_position": cube, "cube_position_setpoint": place,
        }  # fmt: skip
        self.noise = np.random.default_rng(0)

    def step(self, now: int, source: PlanSource, again: bool) -> tuple[State, np.ndarray | None]:
        """One control period: the gate's state and what was sent. ``again``: arm it, also after a fault."""
        noisy = {n: (v + 1e-5 * self.noise.standard_normal(len(v))).astype(np.float32) for n, v in self.values.items()}
        samples = {name: (value, now) for name, value in noisy.items()}
        samples |= source.read(now, samples)
        state = self.session.gate.state
        begin = {State.IDLE: Request.ARM, State.READY: Request.ACTIVATE, State.FAULT: Request.RESET}
        wanted = begin.get(state, Request.NONE) if again else Request.NONE
        decision = self.session.step(now, samples, wanted if source.checks.plan is not None else Request.NONE)
        sent = decision.send
        if sent is not None and self.session.gate.state == State.ACTIVE:
            self.values |= {"tool_position": sent[:3].copy(), "gripper_position": sent[3:].copy()}
        source.note(None if sent is None else self.session.config.commands_by_name(sent))
        return self.session.gate.state, sent


def tried(policy: Policy, fault: str) -> dict[str, Any]:
    """What became of it under a fault, which begins when all has been well for a while."""
    server, said = arm_server(LATENCY), []
    period, contract = policy.contract.control_period, policy.contract
    limits = [np.concatenate([getattr(c, side) for c in contract.commands]) for side in ("lower", "upper")]
    speed = np.concatenate([contract.facts["plan"]["speed"][c.name] for c in contract.commands])
    with serve(server.serve, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=0.1) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        source = PlanSource(contract, f"ws://127.0.0.1:{listener.socket.getsockname()[1]}", said.append, PATIENCE)
        try:
            source.connect()
            policy.reset()
            robot, sent, due = Robot(policy), [], time.monotonic()
            begun = end = math.inf
            while due < end:
                if not server.fault and due > begun + GOOD:
                    server.begin(fault)
                    end = due + WRONG
                now = time.monotonic()
                sent.append((now, *robot.step(round(1e6 * now), source, not server.fault)))
                well = sent[-1][1] == State.ACTIVE or server.fault
                begun = min(begun, due) if well else math.inf
                due += period
                time.sleep(max(0.0, due - time.monotonic()))
            memory = _greatest_memory(source.process.pid)
        finally:
            source.close()
            listener.shutdown()
    moves = [(a[0], b[0], b[2] - a[2]) for a, b in itertools.pairwise(sent) if _active(a) and _active(b)]
    last = max((at for _, at, change in moves if np.abs(change).max() > 1e-6), default=math.nan)
    shown = server.wrong_since + (PATIENCE if fault in WAITS else 0.0)
    commands = np.array([c for _, state, c in sent if c is not None and state == State.ACTIVE])
    return {
        "fault": fault, "holds_after_s": last - shown, "told": said[1:][:1], "counts": vars(source.counts),
        "over_speed": max(float((np.abs(c) / (speed * period)).max()) for *_, c in moves),
        "within_limits": bool(((commands >= limits[0] - 1e-6) & (commands <= limits[1] + 1e-6)).all()),
        "memory_mb": memory, "state": sent[-1][1].name,
    }  # fmt: skip


def _active(step: tuple[float, State, np.ndarray | None]) -> bool:
    return step[1] == State.ACTIVE and step[2] is not None


def _greatest_memory(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), math.nan)


def main(only: str = "", write: bool = True) -> None:
    """All faults, one after the other.

    Args:
        only: One fault alone.
        write: Write the results.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file, marker = Path(folder) / "follow.onnx", Path(folder) / "ran"
        export_follower(load_task("arm-place-plans"), file)
        command = f"touch {marker}".encode()
        faults.PICKLE = b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c" + bytes([len(command)]) + command + b"\x85R."
        policy = Policy.load(file, None)
        for fault in [only] if only else [name for name in faults.FAULTS if name]:
            rows.append({**tried(policy, fault), "code_ran": marker.exists()})
            print(rows[-1], flush=True)
    if write:
        results.write("plan_faults", {"patience_s": PATIENCE, "rows": rows})


if __name__ == "__main__":
    tyro.cli(main)
