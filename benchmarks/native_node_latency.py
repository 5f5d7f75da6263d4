"""Latency of the node in C++ beside the Python node and a bare echo in C++: sensor message in to command message out.

As ros_latency.py: this process plays the robot, and in every control period asks the policy's node, then the echo. Here
the echo is a program on rcl, without rclcpp or rclpy. The nodes take turns; what a node adds is the difference of the
two distributions of its turns.

    python benchmarks/native_node_latency.py zoo:quadrotor-hover [seconds of each turn]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from results import words, write
from ros_latency import real_time, row, turn

SECONDS, TURNS = 20.0, 2
NODES = {
    "cpp": ["-m", "robo_rl", "ros", "native"],
    "python": ["-m", "robo_rl", "ros", "policy", "--parameter", "runtime:=native"],
}
ECHO = r"""
// SPDX-License-Identifier: Apache-2.0
// An Imu in, a JointState with four numbers out.
#include <sensor_msgs/msg/imu.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include "rcl_entities.hpp"
using namespace robo_rl_controller;
int main(int argc, char ** argv)
{
  setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4", 0);
  Node node(argc, argv, "echo");
  sensor_msgs::msg::JointState answer;
  answer.name = {"m1", "m2", "m3", "m4"};
  answer.position = {1.0, 2.0, 3.0, 4.0};
  Publisher<sensor_msgs::msg::JointState> out(node, "echo/out", commands(1.0, 1.0));
  auto receive = [&](const sensor_msgs::msg::Imu & message) {
      answer.header = message.header;
      out.publish(answer);
    };
  Subscription<sensor_msgs::msg::Imu, decltype(receive)> in(node, "echo/in", newest(), receive);
  Bell bell(node);
  WaitSet set(node, 1, 0);
  std::vector<bool> ready(1);
  while (true) {
    if (set.wait({&in}, {}, bell, 1000000000, ready) && ready[0]) {
      in.take();
    }
  }
}
"""


def build_echo(folder: Path) -> Path:
    """The program, by the build of the node."""
    from robo_rl.ros.native_node import SOURCES, compile_program

    source = folder / "rcl_echo.cpp"
    source.write_text(ECHO)
    return compile_program([source, SOURCES / "node" / "rcl_entities.cpp"], folder, folder, "rcl_echo")


def main() -> None:
    bundle = sys.argv[1]
    if sys.argv[2:3] == ["turn"]:
        if real_time():
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
        node, seconds, echo, file = sys.argv[3:]
        first, *rest = (sys.executable, *NODES[node][:4])
        policy = [first, *rest, bundle, *NODES[node][4:]]
        times, periods, faults = turn(bundle, policy, [echo], float(seconds))
        np.savez(file, times=times, periods=periods, faults=faults)
        return
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    found: dict[str, list[Any]] = {node: [] for node in NODES}
    with tempfile.TemporaryDirectory() as folder:
        echo = build_echo(Path(folder))
        for _ in range(TURNS):
            for node, turns in found.items():
                file = Path(folder, "turn.npz")
                one = [sys.executable, __file__, bundle, "turn", node, str(seconds), str(echo), str(file)]
                subprocess.run(one, check=True)  # a process of its own: rclpy's context is the process's
                turns.append(dict(np.load(file)))
    results = {node: row(turns) for node, turns in found.items()}
    for node, result in results.items():
        print(f"{node}: {result['periods']} periods, {result['unanswered']} without both answers in time")
        for name in ("policy_node", "echo", "added"):
            told = "   ".join(f"{key.removesuffix('_us')} {value:7.0f} µs" for key, value in result[name].items())
            print(f"  {name:<12}{told}")
    load = round(os.getloadavg()[0], 1)
    write(
        "native_node_latency",
        {"bundle": bundle, "real_time_priority": real_time(), "load_average": load, **results},
    )


if __name__ == "__main__":
    words(__doc__, 7)
    main()
