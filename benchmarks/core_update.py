"""How long one step of the C++ core takes: policy, gate and checks, on a bundle's recorded signals.

    python benchmarks/core_update.py zoo:quadrotor-hover zoo:go2-flat

Compiles the core and the bundle, and prints p50 and p99 (µs) of 100,000 steps in a row, with the gate active. On a busy
computer the p99 is that of the computer.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from results import words

from robo_rl.deploy.build.c.native import compile_native
from robo_rl.deploy.robot.bundle import Bundle

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ros2_ws" / "src" / "robo_rl_controller"
MAIN = r"""
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include "robo_rl_controller/session.hpp"
using namespace robo_rl_controller;
int main(int, char ** words)
{
  const Bundle bundle(words[1]);
  const robot_bundle & data = bundle.data();
  Session session(bundle, Mode::live);
  std::vector<float> recorded(data.signal_size);
  if (std::fread(recorded.data(), 4, recorded.size(), stdin) != recorded.size()) {return 1;}
  std::vector<Sample> samples(data.gate->signal_count);
  std::vector<double> times;
  long active = 0;
  for (int k = 0; k < 100000; k++) {
    Given given;
    given.now = 1000000 + k * data.gate->period;
    given.operator_stamp = given.now;
    given.requests = session.state() == GATE_IDLE ? GATE_REQUEST_ARM :
      session.state() == GATE_READY ? GATE_REQUEST_ACTIVATE :
      session.state() == GATE_FAULT ? GATE_REQUEST_RESET : GATE_REQUEST_NONE;
    for (std::size_t i = 0; i < samples.size(); i++) {
      float * values = &recorded[data.signals[i].offset];
      values[0] += (k % 2 ? 1e-6f : -1e-6f);
      samples[i] = {values, given.now};
    }
    given.samples = samples.data();
    const auto begun = std::chrono::steady_clock::now();
    active += session.update(given).state == GATE_ACTIVE;
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("p50 %.1f us, p99 %.1f us, %ld of %zu steps active\n", times[times.size() / 2],
    times[times.size() * 99 / 100], active, times.size());
}
"""


def main(names: list[str]) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "update"
        sources = [str(path) for path in sorted((PACKAGE / "src").glob("*.cpp"))]
        includes = ["-I", str(PACKAGE / "include"), "-I", str(ROOT / "deploy" / "build" / "c")]
        words = ["g++", "-std=c++17", "-O2", "-ffp-contract=off", *includes, *sources, "-x", "c++", "-", "-ldl"]
        subprocess.run([*words, "-o", str(program)], input=MAIN.encode(), check=True)
        for name in names:
            bundle = Bundle.read(name)
            library = compile_native(bundle, Path(folder) / "policy.so")
            first = [bundle.golden.signals[signal.name][0].ravel() for signal in bundle.contract.signals]
            recorded = np.concatenate(first).astype(np.float32).tobytes()
            done = subprocess.run([program, library], input=recorded, capture_output=True, check=True)
            print(f"{name}: {done.stdout.decode().strip()}")


if __name__ == "__main__":
    main(words(__doc__, most=20) or ["zoo:quadrotor-hover", "zoo:go2-flat"])
