"""Make motors.png: current control by a trained policy, deadbeat and PI in the same episode, with one command:

robo-rl train pmsm-current && python docs/images/motors.py runs/pmsm-current-seed0-1
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.policies.loading import load
from robo_rl.report import motor

FIXED = {"reference/kind": 0.0, "speed": 0.5, "inductance_d": 0.8, "inductance_q": 0.8, "dead_time": 1.0}


def main(target: str) -> None:
    """Write the picture beside this file."""
    loaded = load(target)
    task = loaded.task
    pi = ControllerPolicy(task, task.controllers()[0])
    policies = {"policy": loaded.policy, "classical": ControllerPolicy(task), "policy 2": pi}
    conditions = Conditions(episodes=1, seed=5, fixed=FIXED, recorded=1)
    found = {name: rollout(task, policy, conditions, None) for name, policy in policies.items()}
    figure = motor.currents(found, task.spec.control_period)
    legend = figure.axes[0].get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_text({"classical": "deadbeat", "policy 2": "PI"}.get(text.get_text(), text.get_text()))
    out = Path(__file__).with_name("motors.png")
    figure.savefig(out, dpi=110, facecolor="white")
    Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
