"""Periods that a driver's loop keeps against its emulated robot, each a process in real time, at the robot's own rate.

    python benchmarks/driver_periods.py go2 --seconds 600
    python benchmarks/driver_periods.py so101 --policy so101.onnx --seconds 600

The robot is emulated with its own bytes (`robo-rl emulate`), the policy runs as machine code (`robo-rl run --native
--realtime`). Told are the steps that began late by more than a tenth of a period, what a step computes for (from
reading the robot to its command), and the memory of the process that runs the policy. Figures of robots that were not
measured now stay in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from results import FOLDER, write

POLICIES = {"go2": "zoo:go2-flat", "so101": ""}
SETPOINTS = {
    "go2": ("linear_velocity_command=0.4 0", "yaw_rate_command=0.3"),
    "so101": ("tool_position_setpoint=0.2 0 0.05",),
}
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
    calibration, where = folder / "robot.json", f"lo/periods{os.getpid()}"
    emulate = [*RUN, "emulate", robot, "--realtime"]
    emulate += ["--calibration", str(calibration)] if robot == "so101" else ["--interface", where]
    emulator = subprocess.Popen(emulate, stdout=subprocess.PIPE, text=True)
    try:
        assert emulator.stdout is not None
        while " is " not in (line := emulator.stdout.readline()):
            if not line:
                raise SystemExit("the emulator ended")
        port = where if robot == "go2" else line.split(" is at ")[1].split(",")[0]
        run = [*RUN, "run", policy, "--driver", robot, "--port", port, "--arm", "--native", "--realtime", "--json"]
        run += ["--seconds", str(seconds), "--setpoint", *SETPOINTS[robot]]
        run += ["--calibration", str(calibration)] if robot == "so101" else []
        done = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=False)
    finally:
        emulator.terminate()
        emulator.wait()
    told = json.loads(done.stdout.strip().splitlines()[-1])
    names = ("steps", "late", "longest_interval_ms", "computing_p50_ms", "computing_p99_ms", "computing_max_ms")
    return {
        "seconds": seconds, "ended": "stopped as asked" if done.returncode == 0 else "in a fault",
        **{name: told[name] for name in (*names, "memory_mb", "runtime")}, "late_part": told["late"] / told["steps"],
        "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


if __name__ == "__main__":
    main()
