"""How long one step of the C++ core takes: policy, gate and checks, on a bundle's recorded signals.

    python benchmarks/core_update.py zoo:quadrotor-hover zoo:go2-flat

Compiles the core and the bundle, and prints p50 and p99 (µs) of 100,000 steps in a row, with the gate active, and of
10,000 steps in a loop of 1 kHz that sleeps between them (SCHED_FIFO where that is allowed), as a robot's does: there
the caches have cooled down. On a busy computer the p99 is that of the computer.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from results import words, write

from robo_rl.deploy.build.c.native import compile_native
from robo_rl.deploy.robot.bundle import Bundle

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ros2_ws" / "src" / "robo_rl_controller"
MAIN = r"""
#include <sched.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include "robo_rl_controller/session.hpp"
using namespace robo_rl_controller;
using Clock = std::chrono::steady_clock;

static void measure(const Bundle & bundle, std::vector<float> recorded, int steps, bool paced)
{
  const robot_bundle & data = bundle.data();
  Session session(bundle, Mode::live);
  std::vector<Sample> samples(data.gate->signal_count);
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(steps));
  long active = 0;
  auto due = Clock::now();
  for (int k = 0; k < steps; k++) {
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
    if (paced) {
      due += std::chrono::milliseconds(1);
      std::this_thread::sleep_until(due);
    }
    const auto begun = Clock::now();
    active += session.update(given).state == GATE_ACTIVE;
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"steps\": %d, \"active\": %ld}\n", times[times.size() / 2],
    times[times.size() * 99 / 100], steps, active);
}

int main(int, char ** words)
{
  const Bundle bundle(words[1]);
  std::vector<float> recorded(bundle.data().signal_size);
  if (std::fread(recorded.data(), 4, recorded.size(), stdin) != recorded.size()) {return 1;}
  sched_param priority{};
  priority.sched_priority = 20;
  sched_setscheduler(0, SCHED_FIFO, &priority);  // refused to whom it is not allowed
  measure(bundle, recorded, 100000, false);
  measure(bundle, recorded, 10000, true);
}
"""


def main(names: list[str]) -> None:
    load, found = round(os.getloadavg()[0], 1), {}
    print(f"{os.cpu_count()} cores, load {load}")
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
            in_a_row, paced = map(json.loads, done.stdout.decode().splitlines())
            found[name] = {"in_a_row": in_a_row, "at_1_khz": paced}
            print(f"{name}: in a row {in_a_row}\n{' ' * len(name)}  at 1 kHz {paced}")
    write("core_update", {"load_average": load, **found})


if __name__ == "__main__":
    main(words(__doc__, most=20) or ["zoo:quadrotor-hover", "zoo:go2-flat"])
