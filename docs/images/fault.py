"""Plot the commands to a robot around a fault, from a recorded session.

robo-rl ros twin & robo-rl ros policy policy.onnx --use-sim-time --record logs &
robo-rl ros configure && robo-rl ros activate && robo-rl ros engage && sleep 5 && robo-rl ros fault "drop imu"
robo-rl ros cleanup; python docs/images/fault.py logs/*.mcap docs/images/fault.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from robo_rl.controllers.gate.codes import Problem, Reason, explain
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.deploy.robot.logs.reader import read_log

BEFORE, AFTER = 0.25, 0.15  # s


def main(source: str, out: str) -> None:
    log = read_log(source)
    fault = next(step for step in log.steps if step.gate["reason"] not in (Reason.NONE, Reason.OPERATOR_STOP))
    near = [step for step in log.steps if -BEFORE < (step.time - fault.time) * 1e-6 < AFTER]
    times = 1e-3 * (np.array([step.time for step in near]) - fault.time)
    figure, (command, age) = plt.subplots(2, 1, sharex=True, figsize=(8, 4.2), height_ratios=(2, 1))
    sent = np.array([step.sent for step in near])
    for k, element in enumerate(log.contract.commands[0].elements):
        command.step(times, sent[:, k], where="post", label=element, lw=1.2)
    command.set_ylabel(f"{log.contract.commands[0].name}, {log.contract.commands[0].unit}")
    command.legend(ncols=4, frameon=False, fontsize=8)
    problem = Problem(Reason(int(fault.gate["reason"])), int(fault.gate["channel"]), int(fault.gate["element"]))
    command.set_title(f"{explain(GateConfig.from_contract(log.contract), problem)}: the safe command", fontsize=10)
    for k, signal in enumerate(log.contract.signals):
        if signal.source == "sensor":
            age.plot(times, [1e-3 * (step.time - step.stamps[k]) for step in near], label=signal.name, lw=1.2)
    age.axhline(1e3 * log.contract.safety.signal_timeout, color="0.6", ls=":", lw=1)
    age.set(ylabel="age of signals, ms", xlabel="ms from the gate's decision", ylim=(0, 80))
    age.legend(ncols=4, frameon=False, fontsize=8)
    for axes in (command, age):
        axes.axvline(0, color="0.6", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
