"""Latency of policy_node: sensor message in to command message out, beside a bare rclpy node that echoes.

This process plays the robot. In every control period it sends what completes a set of sensor signals and waits for
the command that answers it, then sends the same message to the echo node and waits for its answer. Three processes,
Fast DDS within one computer (by shared memory, which comes with the range LOCALHOST), both nodes with the same quality
of service and the same real-time priority. What the policy's node adds is the difference of the two distributions. The
node runs the policy by onnxruntime and as machine code (parameter ``runtime``), in turns.

    python benchmarks/ros_latency.py zoo:quadrotor-hover [seconds of each turn]
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from results import words, write

PACKAGE = Path(__file__).parents[1] / "ros2_ws/src/robo_rl_ros"
if str(PACKAGE) not in sys.path:
    sys.path.append(str(PACKAGE))
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
os.environ.setdefault("ROS_DOMAIN_ID", "77")

RUNTIMES = ("onnxruntime", "native")
SECONDS = 60.0
TURNS = 2
WARM_UP = 5.0
"""s until the control loop has drawn its schedule to the arrival of the signals."""
SENSORS = {"odom", "imu"}
APART = 1e-3
"""s between the first sensor message and the one that completes the set: they are not from one device."""
NEXT = {"FAULT": "reset", "IDLE": "arm", "READY": "engage"}
"""What is to be asked of a gate in a state that does not fly."""
PRIORITY = ("chrt", "-f", "20")


class Echo:
    """The bare node: an Imu in, a JointState with four numbers out."""

    def __init__(self) -> None:
        import rclpy
        from sensor_msgs.msg import Imu, JointState

        from robo_rl.ros import quality
        from robo_rl.ros.transport import prefer_udp

        prefer_udp()
        rclpy.init()
        node = rclpy.create_node("echo")
        publisher = node.create_publisher(JointState, "echo/out", quality.command(deadline=1.0))
        names, values = ["m1", "m2", "m3", "m4"], [1.0, 2.0, 3.0, 4.0]

        def answer(message: Any) -> None:
            publisher.publish(JointState(header=message.header, name=names, position=values))

        node.create_subscription(Imu, "echo/in", answer, quality.SENSOR)
        rclpy.spin(node)


class Robot:
    """A hovering robot as messages, and the times at which answers arrive."""

    def __init__(self, bundle: str) -> None:
        import rclpy
        from sensor_msgs.msg import Imu, JointState

        from robo_rl.deploy.robot.bundle import Bundle
        from robo_rl.ros import quality
        from robo_rl.ros.transport import prefer_udp
        from robo_rl.ros.wiring import command_wires, signal_wires
        from robo_rl.ros.writing import message_type

        prefer_udp()
        rclpy.init()
        self.contract = Bundle.read(bundle).contract
        self.node = rclpy.create_node("robot")
        self.signals = {signal.name: signal for signal in self.contract.signals}
        self.random = np.random.default_rng(0)
        self.by_topic: dict[str, list[Any]] = {}
        for wire in signal_wires(self.contract.signals, {}):
            self.by_topic.setdefault(wire.topic, []).append(wire)
        self.publishers = {
            topic: self.node.create_publisher(message_type(wires[0].kind), topic, quality.SENSOR)
            for topic, wires in self.by_topic.items()
        }
        self.ping = self.node.create_publisher(Imu, "echo/in", quality.SENSOR)
        self.arrived = threading.Condition()
        self.answers: dict[str, tuple[int, int]] = {}
        (wire,) = command_wires(self.contract.commands, "")
        for name, topic in (("policy", wire.topic), ("echo", "echo/out")):
            self.node.create_subscription(JointState, topic, self._receiver(name), quality.command(deadline=1.0))
        threading.Thread(target=rclpy.spin, args=(self.node,), daemon=True).start()

    def _receiver(self, name: str) -> Any:
        def receive(message: Any) -> None:
            now = time.perf_counter_ns()
            with self.arrived:
                stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
                self.answers[name] = now, stamp
                self.arrived.notify()

        return receive

    def message(self, topic: str) -> Any:
        """What a hovering robot with the contract's noise would send now."""
        from robo_rl.ros.message_encoding import compose

        values = {}
        for wire in self.by_topic[topic]:
            signal = self.signals[wire.name]
            at_rest = [0.0, 0.0, 0.0, 1.0] if signal.kind == "quaternion" else [0.0] * signal.size
            noise = np.array(signal.noise or 0.0) * self.random.normal(size=signal.size)
            values[wire.name] = (np.array(at_rest) + noise).astype(np.float32)
        return compose(self.by_topic[topic], self.signals, values, time.time_ns())

    def ask(self, name: str, publisher: Any, message: Any, patience: float) -> float | None:
        """µs from sending ``message`` to the arrival of an answer that was written after that; None if none came."""
        wall, start = time.time_ns(), time.perf_counter_ns()
        if name == "echo":
            wall = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        publisher.publish(message)
        with self.arrived:
            come = self.arrived.wait_for(lambda: self.answers.get(name, (0, 0))[1] >= wall, timeout=patience)
            return (self.answers[name][0] - start) * 1e-3 if come else None

    def send_operator(self) -> None:
        """The set-points, in the middle of a period: an operator's messages come when they come."""
        for topic, publisher in self.publishers.items():
            if topic not in SENSORS:
                publisher.publish(self.message(topic))

    def period(self) -> tuple[float | None, float | None]:
        """µs of one round to the policy's node and one to the echo node."""
        self.publishers["odom"].publish(self.message("odom"))
        time.sleep(APART)
        policy = self.ask("policy", self.publishers["imu"], self.message("imu"), 0.6 * self.contract.control_period)
        echo = self.ask("echo", self.ping, self.message("imu"), 0.2 * self.contract.control_period)
        self.send_operator()
        return policy, echo


class Session(threading.Thread):
    """Keeps the policy flying while the robot sends: engages it, and again after a fault."""

    def __init__(self) -> None:
        super().__init__()
        self.flying, self.over, self.faults = threading.Event(), threading.Event(), 0

    def run(self) -> None:
        from robo_rl.ros.operate import Operator, OperatorError

        with Operator(patience=60.0) as operator:
            operator.do("configure")
            active = False
            while not self.over.is_set():
                operator.executor.spin_once(timeout_sec=0.1)
                state = operator.gate.get("state", "")
                if state == "ACTIVE":
                    self.flying.set()
                    continue
                self.faults += self.flying.is_set()
                self.flying.clear()
                with contextlib.suppress(OperatorError):  # refused, as before the first signals: it is asked again
                    operator.do(NEXT[state] if active else "activate")
                    active = True


def measure(bundle: str, seconds: float) -> tuple[np.ndarray, int, int]:
    """(n, 2) µs of policy and echo, of the periods in which both answered; how many periods there were; faults.

    Periods count while the policy flies, ``WARM_UP`` after it began to.
    """
    robot, pilot = Robot(bundle), Session()
    pilot.start()
    gc.collect()
    gc.freeze()
    rows: list[tuple[float | None, float | None]] = []
    period, due, begun = robot.contract.control_period, time.monotonic(), float("inf")
    while len(rows) * period < seconds and pilot.is_alive():
        due += period * max(1, math.ceil((time.monotonic() - due) / period))  # a sensor keeps its beat
        time.sleep(max(0.0, due - time.monotonic()))
        row = robot.period()
        begun = min(begun, due) if pilot.flying.is_set() else float("inf")
        if due > begun + WARM_UP:
            rows.append(row)
    pilot.over.set()
    pilot.join()
    both = np.array([row for row in rows if None not in row], float)
    return both, len(rows), pilot.faults


def quantiles(values: np.ndarray) -> dict[str, float]:
    return {f"p{q:g}_us": round(float(np.quantile(values, q / 100)), 1) for q in (50, 90, 99, 99.9)}


def turn(bundle: str, policy: list[str], echo: list[str], seconds: float) -> tuple[np.ndarray, int, int]:
    """One pair of nodes, by the commands that run them, from start to end; what ``measure`` gives."""
    chrt = PRIORITY if real_time() else ()
    path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as log:
        nodes = [
            subprocess.Popen([*chrt, *command], env=environment, stdout=log, stderr=log) for command in (policy, echo)
        ]
        try:
            return measure(bundle, seconds)
        finally:
            for node in nodes:
                node.terminate()
            for node in nodes:
                node.wait(timeout=30)
            log.seek(0)
            said = log.read().decode(errors="replace")
            sys.stderr.write("".join(line + "\n" for line in said.splitlines() if "ERROR" in line))


def real_time() -> bool:
    return bool(shutil.which("chrt")) and os.geteuid() == 0


def main() -> None:
    if sys.argv[1:] == ["echo"]:
        Echo()
        return
    if sys.argv[1] == "turn":
        if real_time():
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
        policy = [sys.executable, "-P", "-m", "robo_rl", "ros", "policy", sys.argv[2]]
        policy += ["--parameter", f"runtime:={sys.argv[3]}"]
        echo = [sys.executable, __file__, "echo"]
        times, periods, faults = turn(sys.argv[2], policy, echo, float(sys.argv[4]))
        np.savez(sys.argv[5], times=times, periods=periods, faults=faults)
        return
    bundle = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    found: dict[str, list[Any]] = {runtime: [] for runtime in RUNTIMES}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(TURNS):
            for runtime, turns in found.items():
                file = Path(folder, "turn.npz")
                one = [sys.executable, __file__, "turn", bundle, runtime, str(seconds), str(file)]
                subprocess.run(one, check=True)  # a process of its own: rclpy's context is the process's
                turns.append(dict(np.load(file)))
    results = {runtime: row(turns) for runtime, turns in found.items()}
    for runtime, result in results.items():
        print(f"{runtime}: {result['periods']} periods, {result['unanswered']} without both answers in time")
        for name in ("policy_node", "echo", "added"):
            told = "   ".join(f"{key.removesuffix('_us')} {value:7.0f} µs" for key, value in result[name].items())
            print(f"  {name:<12}{told}")
    load = round(os.getloadavg()[0], 1)
    write(
        "ros_latency",
        {"bundle": bundle, "real_time_priority": real_time(), "load_average": load, **results},
    )


def row(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of all turns of a runtime together."""
    times = np.concatenate([turn["times"] for turn in turns])
    periods = sum(int(turn["periods"]) for turn in turns)
    policy, echo = quantiles(times[:, 0]), quantiles(times[:, 1])
    return {
        "periods": periods,
        "unanswered": periods - len(times),
        "faults": sum(int(turn["faults"]) for turn in turns),
        "policy_node": policy,
        "echo": echo,
        "added": {key: round(policy[key] - echo[key], 1) for key in policy},
    }


if __name__ == "__main__":
    words(__doc__, 5)
    main()
