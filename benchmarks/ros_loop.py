"""Closed loop in real time: policy_node and twin_node in processes of their own, over Fast DDS, and a soak.

    robo-rl train quadrotor-hover && robo-rl export runs/quadrotor-hover-seed0-1 --out hover.onnx
    robo-rl train quadrotor-track && robo-rl export runs/quadrotor-track-seed0-1 --out track.onnx
    python benchmarks/ros_loop.py fly hover.onnx track.onnx       # 60 s each, beside the same flight in simulation
    python benchmarks/ros_loop.py soak hover.onnx --seconds 1800

A period counts as missed where two steps lie more than one and a half periods apart, by the times in the recorded
log. The simulation beside it is the same twin, stepped by the policy in this process, in no real time. The soak
samples the resident memory of every process, injects a fault at its end, and counts the steps in the log. Ctrl-C ends
it early: what there is until then is judged and written.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from results import write

from robo_rl.controllers.gate.codes import Source
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.reader import Log, read_log
from robo_rl.deploy.robot.runtime import Policy

PACKAGE = Path(__file__).parents[1] / "ros2_ws/src/robo_rl_ros"
if str(PACKAGE) not in sys.path:
    sys.path.append(str(PACKAGE))
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
os.environ.setdefault("ROS_DOMAIN_ID", "78")

FLYING = 5.0
"""s after take-off, from where on the position counts: the twin climbs for 2 s and rests for 2 s."""
WITHIN = 1.0
"""m from the set-point: farther away the flight has failed, as in `robo-rl evaluate`."""
SAMPLE_TIME = 5.0
"""s between two looks at the memory."""
FIRST = 60.0
"""s after which memory must not grow any more."""


class Loop:
    """Twin and policy as processes, with a hand on both."""

    def __init__(self, bundle: Path, folder: Path, timeout: float | None) -> None:
        self.bundle, self.folder = bundle, folder
        self.task = Bundle.read(bundle).contract.task
        chrt = ("chrt", "-f", "20") if shutil.which("chrt") and os.geteuid() == 0 else ()
        self.real_time = bool(chrt)
        path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        patience = ["--parameter", f"timeout:={timeout}"] if timeout else []
        self.processes = {}
        for what, arguments in (
            ("twin", ["--task", self.task, *patience]),
            ("policy", [str(bundle), "--record", str(folder)]),
        ):
            log = (folder / f"{what}.log").open("wb")
            command = [*chrt, sys.executable, "-m", "robo_rl", "ros", what, *arguments]
            self.processes[what] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def __enter__(self) -> Loop:
        from geometry_msgs.msg import PoseStamped
        from nav_msgs.msg import Odometry

        from robo_rl.ros import quality
        from robo_rl.ros.operate import Operator

        self.operator = Operator(patience=60.0).__enter__()
        self.places: dict[int, np.ndarray] = {}
        self.goals: dict[int, np.ndarray] = {}
        node = self.operator.node
        node.create_subscription(Odometry, "/twin/truth", self._on_truth, quality.SENSOR)
        node.create_subscription(PoseStamped, "/setpoint/pose", self._on_goal, quality.SENSOR)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(timeout=60)
        self.operator.__exit__()

    def _on_truth(self, message: Any) -> None:
        p = message.pose.pose.position
        self.places[_stamp(message)] = np.array([p.x, p.y, p.z])

    def _on_goal(self, message: Any) -> None:
        p = message.pose.position
        self.goals[_stamp(message)] = np.array([p.x, p.y, p.z])

    def take_off(self) -> None:
        """Configure, arm and engage; again if a busy computer spoilt it."""
        from robo_rl.ros.operate import OperatorError

        self.operator.do("configure")
        for _ in range(20):
            with contextlib.suppress(OperatorError):
                self.operator.do("activate")
                self.operator.do("engage")
                return
            self.operator.wait(lambda: False, 0.5)
            with contextlib.suppress(OperatorError):
                self.operator.do("reset")
                self.operator.restart_twin()
                self.operator.do("deactivate")
        raise OperatorError("the gate refused to activate the policy, 20 times")

    def fly(self, seconds: float) -> None:
        """Wait while it flies."""
        end = time.monotonic() + seconds
        self.operator.wait(lambda: time.monotonic() > end or self.operator.gate.get("state") == "FAULT", seconds + 60)

    def errors(self) -> np.ndarray:
        """(n,) m between place and set-point, at every stamp that both have, after the climb."""
        both = sorted(self.places.keys() & self.goals.keys())
        moving = [t for t in both if self.places[t][2] > 0.02]
        if not moving:
            return np.array([np.inf])
        begin = moving[0] + round(1e9 * FLYING)
        return np.array([np.linalg.norm(self.places[t] - self.goals[t]) for t in both if t >= begin])

    def log(self) -> Log:
        """The recorded session."""
        (file,) = self.folder.glob("*.mcap")
        return read_log(file)

    def memory(self) -> dict[str, float]:
        """MB resident, by process."""
        pids = {name: process.pid for name, process in self.processes.items()}
        for child in Path(f"/proc/{pids['policy']}/task").glob("*/children"):
            pids.update(("recorder", int(pid)) for pid in child.read_text().split())
        return {name: _resident(pid) for name, pid in pids.items()}


def _stamp(message: Any) -> int:
    return message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def simulate(bundle: Path, seconds: float) -> np.ndarray:
    """(n,) m between place and set-point, after the climb, of the same twin without ROS."""
    from robo_rl.ros.twins import make_twin

    policy = Policy.load(bundle, rate_hz=1 / Bundle.read(bundle).contract.control_period)
    twin = make_twin(policy.contract.task)  # twin_node's defaults
    errors = []
    while twin.time < seconds:
        measured = twin.measure()
        twin.step(policy.step(measured))
        truth = twin.truth()
        if twin.time > FLYING:
            errors.append(float(np.linalg.norm(truth["position"] - truth["position_setpoint"])))
    return np.array(errors)


def timing(log: Log) -> dict[str, float]:
    """Of the steps in which the policy was in charge."""
    times = np.array([step.time for step in log.steps if step.gate["source"] == Source.POLICY]) * 1e-6
    intervals, period = np.diff(times), log.contract.control_period
    return {
        "steps": len(times),
        "missed_periods": int((intervals > 1.5 * period).sum()),
        "missed_part": float((intervals > 1.5 * period).mean()),
        "rate_hz": round(float((len(times) - 1) / (times[-1] - times[0])), 3),
        "interval_p99_ms": round(1e3 * float(np.quantile(intervals, 0.99)), 3),
        "interval_max_ms": round(1e3 * float(intervals.max()), 3),
    }


def fly(bundles: list[Path], seconds: float) -> None:
    """Each bundle for some time, beside the simulation."""
    rows = []
    for bundle in bundles:
        with tempfile.TemporaryDirectory() as folder:
            with Loop(bundle, Path(folder), None) as loop:
                loop.take_off()
                loop.fly(seconds)
                state, errors = loop.operator.gate.get("state"), loop.errors()
                sentence = loop.operator.gate.get("sentence", "")
            clock = timing(loop.log())
        simulated = simulate(bundle, seconds)
        row = {
            "task": loop.task,
            "seconds": seconds,
            "real_time_priority": loop.real_time,
            "state_at_the_end": state,
            "sentence": sentence,
            **clock,
            **{f"position_error_{what}_m": round(float(x), 4) for what, x in _summary(errors).items()},
            **{f"simulation_error_{what}_m": round(float(x), 4) for what, x in _summary(simulated).items()},
            "success": bool(state == "ACTIVE" and errors.max() < WITHIN),
            "simulation_success": bool(simulated.max() < WITHIN),
        }
        rows.append(row)
        print(
            f"{row['task']}: {state} after {seconds:g} s, {row['missed_periods']} of {row['steps']} periods missed "
            f"({row['missed_part']:.2%}), {row['rate_hz']:.2f} Hz; error {100 * row['position_error_mean_m']:.1f} cm "
            f"(simulation {100 * row['simulation_error_mean_m']:.1f} cm), greatest "
            f"{100 * row['position_error_max_m']:.1f} cm ({100 * row['simulation_error_max_m']:.1f} cm) {sentence}",
            flush=True,
        )
    write("ros_loop", {"flights": rows})


def _summary(errors: np.ndarray) -> dict[str, float]:
    return {"mean": errors.mean(), "rms": np.sqrt((errors**2).mean()), "max": errors.max()}


def soak(bundle: Path, seconds: float, timeout: float) -> None:
    """A long flight; its memory, its log, and a fault at the end."""
    samples: list[tuple[float, dict[str, float]]] = []
    faults, fault = 0, "nan imu"
    with tempfile.TemporaryDirectory() as folder:
        patient = Path(folder, bundle.name)
        patient.write_bytes(with_timeout(bundle, timeout))
        with Loop(patient, Path(folder), timeout) as loop:
            loop.take_off()
            begun = time.monotonic()
            with contextlib.suppress(KeyboardInterrupt):
                while (passed := time.monotonic() - begun) < seconds:
                    samples.append((passed, loop.memory()))
                    loop.fly(SAMPLE_TIME)
                    loop.places.clear()
                    loop.goals.clear()
                    if loop.operator.gate.get("state") == "FAULT":  # a paused or starved computer; begin again
                        faults += 1
                        print(f"{passed:.0f} s: {loop.operator.gate['sentence']}", flush=True)
                        again(loop)
            flown = time.monotonic() - begun
            loop.operator.fault(fault)
            latched = loop.operator.wait(lambda: loop.operator.gate.get("reason") == "SIGNAL_NOT_FINITE", 10.0)
            loop.operator.wait(lambda: False, 1.0)
            gate = dict(loop.operator.gate)
            loop.operator.do("deactivate")
            loop.operator.do("cleanup")
        log = loop.log()
    figures = judge(log, samples)
    figures |= {
        "seconds": round(flown, 1),
        "signal_timeout_s": timeout,
        "real_time_priority": loop.real_time,
        "faults_on_the_way": faults,
        "fault_at_the_end": fault,
        "fault_latched": bool(latched and gate["state"] == "FAULT"),
        "fault_said": gate["sentence"],
    }
    print(json.dumps({key: value for key, value in figures.items() if key != "memory"}, indent=2))
    write("ros_soak", figures)


def again(loop: Loop) -> None:
    """After a fault: reset, stand on the ground, arm, engage."""
    from robo_rl.ros.operate import OperatorError

    for _ in range(20):
        with contextlib.suppress(OperatorError):
            loop.operator.do("reset")
            loop.operator.restart_twin()
            loop.operator.wait(lambda: False, 0.5)
            loop.operator.do("arm")
            loop.operator.do("engage")
            return
    raise OperatorError("the gate refused to activate the policy again, 20 times")


def judge(log: Log, samples: list[tuple[float, dict[str, float]]]) -> dict[str, Any]:
    """Growth of memory, and whether every step is in the log."""
    growth = {}
    for name in samples[-1][1]:
        after = [memory[name] for passed, memory in samples if passed >= FIRST]
        growth[name] = round(after[-1] - after[0], 2) if after else None
    numbers = [step.number for step in log.steps]
    return {
        "rss_mb": {name: round(value, 1) for name, value in samples[-1][1].items()},
        "growth_after_the_first_minute_mb": growth,
        "log_whole": log.whole,
        "log_steps": len(numbers),
        "log_steps_missing": numbers[-1] - numbers[0] + 1 - len(numbers),
        "log_in_order": bool((np.diff(numbers) == 1).all()),
        **timing(log),
        "memory": [[round(passed, 1), {k: round(v, 2) for k, v in row.items()}] for passed, row in samples[::12]],
    }


def with_timeout(bundle: Path, timeout: float) -> bytes:
    """The bundle with another signal time-out in its contract: a computer that also does other work."""
    import dataclasses

    import onnx

    from robo_rl.deploy.robot.bundle import CONTRACT_KEY, DIGEST_KEY, NO_DIGEST, seal

    contract = Bundle.read(bundle).contract
    safety = dataclasses.replace(contract.safety, signal_timeout=timeout)
    model = onnx.load(str(bundle))
    for entry in model.metadata_props:
        if entry.key == CONTRACT_KEY:
            entry.value = dataclasses.replace(contract, safety=safety).to_json()
        if entry.key == DIGEST_KEY:
            entry.value = NO_DIGEST
    return seal(model.SerializeToString())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fly", "soak"))
    parser.add_argument("bundles", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, help="of each flight; 60, or 1800 for the soak")
    parser.add_argument("--timeout", type=float, default=0.1, help="signal time-out of the soak, s")
    given = parser.parse_args()
    if given.what == "fly":
        fly(given.bundles, given.seconds or 60.0)
    else:
        soak(given.bundles[0], given.seconds or 1800.0, given.timeout)


if __name__ == "__main__":
    main()
