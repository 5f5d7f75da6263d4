"""A policy's step by onnxruntime and as machine code, in turns on this computer.

    python benchmarks/native.py [--bundle zoo:go2-flat …]

Medians and 99th percentiles in µs: the graph alone (``run``), and ``Policy.step`` with its checks.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from results import write

from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.runtime import Policy

ROUNDS = 40


def measure(bundle: str) -> dict[str, Any]:
    rate = 1 / Bundle.read(bundle).contract.control_period
    policies = {name: Policy.load(bundle, rate, native=name == "native") for name in ("onnxruntime", "native")}
    if note := policies["native"].runtime_note:
        raise SystemExit(note)
    contract, golden = policies["native"].contract, policies["native"].bundle.golden
    seen = [{name: value[k] for name, value in golden.signals.items()} for k in range(len(golden))]
    given = [{s.name: one[s.name] for s in contract.signals if s.source != "runtime"} for one in seen]
    times: dict[str, list[float]] = {f"{name} {what}": [] for name in policies for what in ("graph", "step")}
    for _ in range(ROUNDS):
        for name, policy in policies.items():
            policy.reset()
            for signals in given:
                begun = time.perf_counter()
                policy.step(signals)
                times[f"{name} step"].append(time.perf_counter() - begun)
            state = contract.initial_state[None]
            for signals in seen:
                begun = time.perf_counter()
                _, state = policy._graph.run(signals, state)
                times[f"{name} graph"].append(time.perf_counter() - begun)
    return {
        name: {"p50_us": 1e6 * float(np.median(found)), "p99_us": 1e6 * float(np.percentile(found, 99))}
        for name, found in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", nargs="+", default=["zoo:quadrotor-hover", "zoo:go2-flat", "zoo:go2-rough"])
    found = {bundle: measure(bundle) for bundle in parser.parse_args().bundle}
    for bundle, rows in found.items():
        for name, row in rows.items():
            print(f"{bundle:<20} {name:<18} {row['p50_us']:7.1f} µs, 99 % within {row['p99_us']:7.1f} µs")
    write("native", found)


if __name__ == "__main__":
    main()
