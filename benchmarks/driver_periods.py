"""Periods that a driver's loop keeps against its emulated robot, each a process in real time, at the robot's own rate.

    python benchmarks/driver_periods.py go2 --seconds 600
    python benchmarks/driver_periods.py f1tenth --seconds 600     (or px4, franka, crazyflie)
    python benchmarks/driver_periods.py so101 --policy so101.onnx --seconds 600     (or dynamixel, ur)

The robot is emulated with its own bytes (`robo-rl emulate`), the policy runs as machine code (`robo-rl run --native
--realtime`). Told are the steps that began late by more than a tenth of a period, what a step computes for (from
reading the robot to its command), the memory of the process that runs the policy, and the time from the emulator's
power-on (its command) to the armed gate and to the policy's first step. Figures of robots that were not measured now
stay in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results import FOLDER, write

POLICIES = {
    "go2": "zoo:go2-flat",
    "f1tenth": "zoo:car-race",
    "px4": "zoo:quadrotor-rates",
    "crazyflie": "zoo:quadrotor-rates-crazyflie",
    "franka": "zoo:arm-reach",
    "ur": "",
    "so101": "",
    "dynamixel": "",
}
SETPOINTS = {
    "go2": ("linear_velocity_command=0.4 0", "yaw_rate_command=0.3"),
    "f1tenth": (),
    "px4": ("position_setpoint=0 0 1.5", "linear_velocity_setpoint=0 0 0"),
    "crazyflie": ("position_setpoint=0 0 1", "linear_velocity_setpoint=0 0 0"),
    "franka": ("tool_position_setpoint=0.45 0.1 0.2",),
    "ur": ("tool_position_setpoint=0.45 0.1 0.2",),
    "so101": ("tool_position_setpoint=0.2 0 0.05",),
    "dynamixel": ("tool_position_setpoint=0.2 0 0.05",),
}
OWN_FILES = {
    "so101": {"--calibration": "robot.json"},
    "dynamixel": {"--calibration": "robot.json", "--robot-file": "robot.toml"},
    "f1tenth": {"--robot-file": "robot.toml"},
}
"""What the emulator writes, and the driver reads."""
UDP = 14666
"""Port of this computer."""
ADDRESS = "127.0.66.6"
"""Of this computer, likewise."""
RUN = (sys.executable, "-m", "robo_rl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", choices=tuple(POLICIES))
    parser.add_argument("--policy", default="", help="bundle; by default the zoo's")
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args()
    policy = given.policy or POLICIES[given.robot]
    if not policy:
        parser.error(f"the zoo has no policy for {given.robot}; give one with --policy")
    with tempfile.TemporaryDirectory() as folder:
        row = measure(given.robot, policy, given.seconds, Path(folder))
    path = FOLDER / "driver_periods.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    found.pop("machine", None)
    found[given.robot] = row
    print(json.dumps(row, indent=2))
    write("driver_periods", found)


def measure(robot: str, policy: str, seconds: float, folder: Path) -> dict[str, Any]:
    """One session."""
    where = f"lo/periods{os.getpid()}"
    own = [word for option, file in OWN_FILES.get(robot, {}).items() for word in (option, str(folder / file))]
    start = time.monotonic()
    udp = ["--port", str(UDP)]
    line = {
        "go2": ["--interface", where], "px4": udp, "crazyflie": udp, "franka": ["--address", ADDRESS],
        "ur": ["--address", ADDRESS],
    }.get(robot, [])  # fmt: skip
    emulate = [*RUN, "emulate", robot, "--realtime", *own, *line]
    emulator = subprocess.Popen(emulate, stdout=subprocess.PIPE, text=True)
    when: dict[str, float] = {}
    try:
        assert emulator.stdout is not None
        while " is " not in (told := emulator.stdout.readline()):
            if not told:
                raise SystemExit("the emulator ended")
        port = where if robot == "go2" else told.split(" is at ")[1].split(",")[0]
        run = [*RUN, "run", policy, "--driver", robot, "--port", port, "--arm", "--native", "--realtime", "--json"]
        run += ["--seconds", str(seconds), *(["--setpoint", *SETPOINTS[robot]] if SETPOINTS[robot] else []), *own]
        running = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert running.stderr is not None
        for sentence in running.stderr:
            when.setdefault(sentence.split(" ")[0], round(time.monotonic() - start, 1))
        assert running.stdout is not None
        last = running.stdout.read().strip().splitlines()[-1]
        code = running.wait()
    finally:
        emulator.terminate()
        emulator.wait()
    given = json.loads(last)
    names = ("steps", "late", "longest_interval_ms", "computing_p50_ms", "computing_p99_ms", "computing_max_ms")
    return {
        "seconds": seconds, "ended": "stopped as asked" if code == 0 else "in a fault",
        "armed_after_s": when.get("READY"), "policy_after_s": when.get("ACTIVE"),
        **{name: given[name] for name in (*names, "memory_mb", "runtime")}, "late_part": given["late"] / given["steps"],
        "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


if __name__ == "__main__":
    main()
