"""The plain loop alone: what a step computes for, and the periods that it is late in, with a driver that costs nothing.

    python benchmarks/plain_loop.py [--policy zoo:quadrotor-hover] [--rate 1000] [--seconds 600]

Policy (native), gate and loop in real time (`robo_rl.deploy.robot.realtime`), the policy in charge; the driver
answers at once with
signals of a robot that hovers. ``--rate`` makes steps of another rate than the policy's: its commands mean nothing
then, and cost the same. Figures of other rates stay in the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from results import FOLDER, write

from robo_rl.controllers.gate.codes import Request, Source, State
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, DIGEST_KEY, NO_DIGEST, Bundle, seal
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.realtime import keep_time
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.timing import Timing

READY, DIFFERENT = 50, 97
"""Steps before arming, and measurements before they repeat."""


class Hovering:
    """A driver: the robot is where it should be, with a little noise."""

    def __init__(self, policy: Policy) -> None:
        rest = {s.name: np.array([0, 0, 0, 1.0] if s.kind == "quaternion" else np.zeros(s.size)) for s in
                policy.contract.signals if s.source != "runtime"}  # fmt: skip
        for name in ("position", "position_setpoint"):
            rest[name] = np.array([0.0, 0.0, 1.0])
        random, self.count = np.random.default_rng(0), 0
        self.measured = [
            {
                name: (value + 1e-3 * random.standard_normal(value.shape)).astype(np.float32)
                for name, value in rest.items()
            }
            for _ in range(DIFFERENT)
        ]

    def read(self, now: int) -> dict[str, tuple[np.ndarray, int]]:
        self.count += 1
        return {name: (value, now) for name, value in self.measured[self.count % DIFFERENT].items()}

    def write(self, commands: Mapping[str, np.ndarray] | None, source: Source) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="zoo:quadrotor-hover")
    parser.add_argument("--rate", type=float, help="Hz; by default the policy's")
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    rate = given.rate or 1 / Bundle.read(given.policy).contract.control_period
    refused = keep_time()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.onnx")
        file.write_bytes(at_rate(given.policy, rate))
        row = {**run(Policy.load(file, rate, native=True), given.seconds), "real_time": not refused}
    path = FOLDER / "plain_loop.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    found.pop("machine", None)
    print(json.dumps(row, indent=2))
    write("plain_loop", {**found, f"{rate:g} Hz": row})


def run(policy: Policy, seconds: float) -> dict[str, Any]:
    """Of the steps in which the policy is in charge."""
    timing = Timing(policy.contract.control_period)

    def note(step: Step) -> None:
        if step.output.state == State.ACTIVE:
            timing.note(step.time, step.took)
        elif step.number == READY:
            loop.request(Request.ARM)
        elif step.output.state == State.READY and loop.reserve.arrived:
            loop.request(Request.ACTIVATE)

    loop = Loop(policy, Hovering(policy), note)
    loop.run(seconds)
    figures = timing.figures()
    return {
        "policy": policy.contract.task, "runtime": policy.runtime, "seconds": seconds, **figures,
        "late_part": figures["late"] / max(1, figures["steps"]), "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def at_rate(bundle: str, rate: float) -> bytes:
    """The bundle with another rate in its contract."""
    read = Bundle.read(bundle)
    contract = dataclasses.replace(read.contract, control_period=1 / rate)
    model = onnx.load(str(read.path))
    for entry in model.metadata_props:
        if entry.key == CONTRACT_KEY:
            entry.value = contract.to_json()
        if entry.key == DIGEST_KEY:
            entry.value = NO_DIGEST
    return seal(model.SerializeToString())


if __name__ == "__main__":
    main()
