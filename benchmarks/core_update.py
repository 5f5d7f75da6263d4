"""How long one step of the C++ core takes: policy, gate and checks, on a bundle's recorded signals.

    python benchmarks/core_update.py zoo:quadrotor-hover zoo:go2-flat

Compiles the core and the bundle, and prints p50 and p99 (µs) of 100,000 steps in a row, with the gate active, of 10,000
in a loop of 1 kHz that sleeps between them (SCHED_FIFO where that is allowed), as a robot's does, and of 500 at the
contract's rate: there others have filled the caches meanwhile. On a busy computer the p99 is that of the computer. So
it is also told by the time that the thread itself has had the processor, in which others do not count but for the
caches that they fill, and of the quietest 500 steps.
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
#include <time.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include "robo_rl_controller/session.hpp"
using namespace robo_rl_controller;
using Clock = std::chrono::steady_clock;

static double thread_us()
{
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

static double quantile(std::vector<double> times, double part)
{
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
}

/// The least p99 of any 500 steps.
static double quietest(const std::vector<double> & times)
{
  double least = 1e9;
  for (std::size_t i = 0; i + 500 <= times.size(); i += 500) {
    const auto from = times.begin() + static_cast<std::ptrdiff_t>(i);
    least = std::min(least, quantile({from, from + 500}, 0.99));
  }
  return least;
}

static void measure(const Bundle & bundle, std::vector<float> recorded, int steps, std::int64_t pace)
{
  const robot_bundle & data = bundle.data();
  Session session(bundle, Mode::live);
  std::vector<Sample> samples(data.gate->signal_count);
  std::vector<double> times, own;
  times.reserve(static_cast<std::size_t>(steps));
  own.reserve(static_cast<std::size_t>(steps));
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
    if (pace > 0) {
      due += std::chrono::microseconds(pace);
      std::this_thread::sleep_until(due);
    }
    const double had = thread_us();
    const auto begun = Clock::now();
    active += session.update(given).state == GATE_ACTIVE;
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count());
    own.push_back(thread_us() - had);
  }
  std::printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"thread_p50_us\": %.1f, \"thread_p99_us\": %.1f, "
    "\"quietest_p99_us\": %.1f, \"steps\": %d, \"active\": %ld}\n", quantile(times, 0.5), quantile(times, 0.99),
    quantile(own, 0.5), quantile(own, 0.99), quietest(times), steps, active);
}

int main(int, char ** words)
{
  const Bundle bundle(words[1]);
  std::vector<float> recorded(bundle.data().signal_size);
  if (std::fread(recorded.data(), 4, recorded.size(), stdin) != recorded.size()) {return 1;}
  sched_param priority{};
  priority.sched_priority = 20;
  sched_setscheduler(0, SCHED_FIFO, &priority);  // refused to whom it is not allowed
  measure(bundle, recorded, 100000, 0);
  measure(bundle, recorded, 10000, 1000);
  measure(bundle, recorded, 500, bundle.data().gate->period);
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
            in_a_row, paced, own = map(json.loads, done.stdout.decode().splitlines())
            found[name] = {"in_a_row": in_a_row, "at_1_khz": paced, "at_its_rate": own}
            print(f"{name}: in a row {in_a_row}\n  at 1 kHz {paced}\n  at its rate {own}")
    write("core_update", {"load_average": load, **found})


if __name__ == "__main__":
    main(words(__doc__, most=20) or ["zoo:quadrotor-hover", "zoo:go2-flat"])
