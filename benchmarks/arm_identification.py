"""Hidden arms: how far `robo-rl sysid` is off with a minute's motion of each, and what it refuses.

    python benchmarks/arm_identification.py --policy reach.onnx [--arms 10]

The policy is one of `robo-rl train arm-reach --robot so101`. Every arm has a friction, rotor inertia, payload, delay,
gains and strength of its own, drawn from `HIDDEN`, and is recorded as by `robo-rl record --new-goal-every 1.5`, with
the sensor noise and latency of the task. Then nonsense is made of the first record.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from pathlib import Path

import numpy as np
from results import write

from robo_rl.deploy.build.verify import named_task
from robo_rl.deploy.emulate.simulated import record
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.identification.arm import MOVE, SLOWEST, unknowns
from robo_rl.identification.arm.motion import Motion, motion
from robo_rl.identification.arm.observer import ArmObserver
from robo_rl.identification.fit import Identified, identify
from robo_rl.identification.judge import faults
from robo_rl.identification.recorded import IdentificationError
from robo_rl.identification.smooth_search import search

HIDDEN = {
    "joint_friction": (0.6, 2.5), "armature": (0.6, 1.8), "payload": (0.1, 0.35), "stiffness": (0.8, 1.2),
    "damping": (0.8, 1.25), "strength": (0.7, 1.1),
}  # fmt: skip
"""Factors, and kg. A SO-101 weighs 0.63 kg without its base's, and carries 0.3 kg at most."""
DELAYS = (0.01, 0.015, 0.02, 0.025)
"""s, whole steps of the simulation."""
ASKED = ("joint_friction", "armature", "payload", "command_delay")
"""What is to be within 10 %."""
SECONDS, EVERY = 60.0, 1.5


class Arms:
    """Records and fits of arms of one bundle."""

    def __init__(self, policy: str, folder: str) -> None:
        self.bundle, self.folder = Bundle.read(policy), folder
        self.task = named_task(self.bundle.contract)
        self.card, self.plant = self.task.spec.robot, self.task.make_plant(1, "cpu")

    def moved(self, seed: int, hidden: dict[str, float], every: float | None = EVERY) -> Motion:
        path = Path(self.folder, f"{seed}-{every}.mcap")
        record(self.task, self.bundle, path, SECONDS, seed, {**hidden, "noise": 1.0}, renew=every)
        return motion(read_log(path), self.card)

    def fitted(self, moved: Motion) -> tuple[Identified, list[str]]:
        asked, follower = unknowns(self.card, self.plant), ArmObserver.of(self.card)
        found = identify(self.card.mechanism, moved, self.plant.physics, asked, follower=follower, searched=search)
        return found, faults(moved, found, SLOWEST, MOVE)


def drawn(seed: int) -> dict[str, float]:
    random = np.random.default_rng(seed)
    hidden = {name: float(random.uniform(*ends)) for name, ends in HIDDEN.items()}
    return {**hidden, "command_delay": float(random.choice(DELAYS))}


def nonsense(moved: Motion, other: Motion, rest: Motion) -> dict[str, Motion]:
    """What is not a motion of this arm, by what is wrong with it."""
    random, middle = np.random.default_rng(0), moved.target.mean(0)
    order, signs = [0, 2, 1, 3, 4], np.array([1.0, -1.0, 1.0, 1.0, 1.0])
    position, speed = moved.joint_position, moved.joint_velocity
    changes = {
        "an arm at rest": rest,
        "two joints swapped": {"joint_position": position[:, order], "joint_velocity": speed[:, order]},
        "a sign": {"joint_position": position * signs, "joint_velocity": speed * signs},
        "targets 0.2 s late": {"target": np.roll(moved.target, 10, 0)},
        "targets 0.06 s early": {"target": np.roll(moved.target, -3, 0)},
        "targets of another motion": {"target": other.target},
        "speeds in degrees": {"joint_velocity": np.degrees(speed)},
        "an encoder 0.1 rad off": {"joint_position": position + 0.1 * np.eye(5)[1]},
        "an encoder that is stuck": {"joint_position": np.where(np.arange(5) == 2, position[0], position)},
        "targets half as large": {"target": middle + 0.5 * (moved.target - middle)},
        "noise": {"joint_position": position[:1] + random.normal(0, 0.2, position.shape)},
        "a load that comes on the way": None,
    }  # fmt: skip
    half = len(moved) // 2
    both = {
        name: np.concatenate([getattr(moved, name)[:half], getattr(other, name)[half:]])
        for name in ("joint_position", "joint_velocity", "target")
    }
    changes["a load that comes on the way"] = both
    return {
        name: change if isinstance(change, Motion) else dataclasses.replace(moved, **change)  # type: ignore[arg-type]
        for name, change in changes.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", required=True)
    parser.add_argument("--arms", type=int, default=10)
    given = parser.parse_args()
    rows, refused = [], {}
    with tempfile.TemporaryDirectory() as folder:
        arms = Arms(given.policy, folder)
        for seed in range(given.arms):
            hidden = drawn(seed)
            found, wrong = arms.fitted(arms.moved(seed, hidden))
            values = {e.unknown.name: e for e in found.estimates}
            off = {name: values[name].value / hidden[name] - 1.0 for name in hidden}
            rows.append(
                {
                    "hidden": hidden, "off": off, "faults": wrong,
                    "undetermined": [name for name in hidden if not values[name].determined],
                    "within": {n: bool(e.range[0] <= hidden[n] <= e.range[1]) for n, e in values.items()},
                    "error_nominal_rad": found.error_nominal, "error_fitted_rad": found.error_fitted,
                }
            )  # fmt: skip
            told = ", ".join(f"{name} {hidden[name]:.3g} {off[name]:+.1%}" for name in hidden)
            print(f"arm {seed}: {'refused' if wrong else 'accepted'}: {told}", flush=True)
        first, second = drawn(0), {**drawn(0), "payload": drawn(0)["payload"] + 0.2}
        moved, other = arms.moved(100, first), arms.moved(100, second, EVERY + 1e-9)
        for name, record_ in nonsense(moved, other, arms.moved(101, first, None)).items():
            try:
                _, wrong = arms.fitted(record_)
            except IdentificationError as error:
                wrong = [str(error)]
            refused[name] = wrong
            print(f"{name}: {wrong or 'ACCEPTED'}", flush=True)
    worst = {name: max(abs(row["off"][name]) for row in rows) for name in ASKED}
    print(", ".join(f"{name} at worst {value:.1%} off" for name, value in worst.items()))
    within = float(np.mean([list(row["within"].values()) for row in rows]))
    write(
        "arm_identification",
        {
            "arms": rows, "worst": worst, "within_two_deviations": within,
            "accepted": sum(not row["faults"] for row in rows), "refused": sum(map(bool, refused.values())),
            "nonsense": len(refused), "reasons": refused,
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
