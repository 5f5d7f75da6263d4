"""System identification: good recordings are accepted with true figures, nonsense is refused.

Twenty walks of simulated robots whose figures are drawn, and twenty-two recordings that no robot of the model could
have made, or that tell nothing. Of accepted ones, the figures are compared with what was drawn.

    python benchmarks/identification.py
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from results import words, write

from robo_rl.commands.running.record import CALM
from robo_rl.deploy.build.verify import named_task
from robo_rl.deploy.emulate.simulated import record
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.reader import read_log
from robo_rl.identification import Identified, Record, faults, identify, walk
from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.sim.env import VecEnv

SERIES = ("orientation", "angular_velocity", "joint_position", "joint_velocity", "target", "velocity")
CALMED = dict.fromkeys(CALM, 0.0)
NOMINAL = {
    **dict.fromkeys(("joint_friction", "armature", "stiffness", "damping", "strength", "base_mass"), 1.0),
    **dict.fromkeys(("payload", "command_delay", "center_of_mass"), 0.0),
}
WALKS: tuple[tuple[float, dict[str, float]], ...] = (
    (60, {"payload": 2.6, "joint_friction": 1.7}), (40, {}), (40, {}), (40, {"payload": 2.0}), (40, NOMINAL),
    (40, {"joint_friction": 2.4, "armature": 0.7, "payload": 1.2, "command_delay": 0.01}), (40, {}),
    (40, {"joint_friction": 1.8, "armature": 1.4, "payload": 2.5, "command_delay": 0.02}), (40, {}), (40, {}), (30, {}),
    (30, {}), (30, {"joint_friction": 0.5}), (30, {"command_delay": 0.0}), (30, {"payload": 2.5}), (60, {}), (60, {}),
    (30, {"joint_friction": 1.4, "payload": 1.5}), (40, {"damping": 1.2, "stiffness": 0.9}),
    (40, {"ground_friction": 0.5}),
)  # fmt: skip
"""Length in s, and what is not drawn; the seed is the place."""
BUNDLE = Bundle.read("zoo:go2-flat")
TASK = named_task(BUNDLE.contract)
PLANT = TASK.make_plant(1, "cpu")
FRONT, HIND, ENDS, LINKS = (
    [3, 4, 5, 0, 1, 2, 6, 7, 8, 9, 10, 11], [0, 1, 2, 3, 4, 5, 9, 10, 11, 6, 7, 8],
    [6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5], [0, 2, 1, 3, 5, 4, 6, 8, 7, 9, 11, 10],
)  # fmt: skip
"""Joints with two legs swapped, both pairs of legs, thighs and calves."""
JOINTS = 12


def walked(folder: str, seconds: float, seed: int, fixed: dict[str, float]) -> Record:
    path = Path(folder, f"{seconds:g}-{seed}.mcap")
    if not path.exists():
        record(TASK, BUNDLE, path, seconds, seed, {**CALMED, **fixed})
    return walk(read_log(path))


def drawn(seed: int, fixed: dict[str, float]) -> dict[str, float]:
    """What was hidden in a walk, as identification tells it: the base's own error of mass counts as payload."""
    env = VecEnv(TASK, 1, HELD_OUT + seed, fixed={**CALMED, **fixed}, evaluation=True)
    names = ("joint_friction", "armature", "stiffness", "damping", "ground_friction", "payload")
    found = {name: float(env.drawn[name][0]) for name in names}
    mass = float(PLANT.nominal.mass[0, PLANT.indices.base - 1])
    found["payload"] += (float(env.drawn["base_mass"][0]) - 1) * mass
    found["command_delay"] = 0.01 * round(float(env.drawn["command_delay"][0]) / 0.01)
    return found


def nonsense(folder: str) -> dict[str, Callable[[], Record]]:
    """What is not a walk of this robot, by what is wrong with it."""
    whole, other = walked(folder, 40, 1, {}), walked(folder, 40, 2, {})
    walk_ = _every(whole, slice(1300))
    rest = _every(walked(folder, 40, 30, dict.fromkeys(("command/x", "command/y", "command/yaw"), 0.0)), slice(1300))
    draw, steps = np.random.default_rng(0), len(walk_)

    def of(**changed: np.ndarray) -> Callable[[], Record]:
        return lambda: dataclasses.replace(walk_, **changed)

    def measured(order: list[int]) -> Callable[[], Record]:
        return of(joint_position=walk_.joint_position[:, order], joint_velocity=walk_.joint_velocity[:, order])

    def held(value: np.ndarray) -> np.ndarray:
        return value[(np.arange(steps) // 8) * 8]

    def still(value: np.ndarray, noise: float) -> np.ndarray:
        return value[:1] + draw.normal(0, noise, (steps, value.shape[1]))

    turned = draw.normal(size=(steps, 4))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    signs, frozen = np.tile([-1.0, 1.0, 1.0], 4), np.arange(JOINTS) == 4
    position, speed, target = walk_.joint_position, walk_.joint_velocity, walk_.target
    middle = target.mean(0)
    shuffled = draw.permutation(steps)
    return {
        "noise": of(
            orientation=turned, angular_velocity=draw.normal(0, 1, (steps, 3)),
            joint_position=middle + draw.normal(0, 0.3, position.shape), joint_velocity=draw.normal(0, 3, speed.shape),
            target=middle + draw.normal(0, 0.3, target.shape),
        ),
        "a robot that stands": lambda: rest,
        "a robot that is off": of(
            orientation=np.tile(walk_.orientation[:1], (steps, 1)), angular_velocity=draw.normal(0, 0.1, (steps, 3)),
            joint_position=still(position, 0.006), joint_velocity=draw.normal(0, 0.5, speed.shape),
            target=still(target, 0.0),
        ),
        "front legs swapped": measured(FRONT),
        "targets of hind legs swapped": of(target=target[:, HIND]),
        "front and hind legs swapped": measured(ENDS),
        "thighs and calves swapped": measured(LINKS),
        "signs of hips": of(joint_position=position * signs, joint_velocity=speed * signs),
        "targets 0.3 s late": of(target=np.roll(target, 15, 0)),
        "targets 0.1 s early": of(target=np.roll(target, -5, 0)),
        "speeds in degrees": of(joint_velocity=np.degrees(speed)),
        "quaternions with w first": of(orientation=walk_.orientation[:, [3, 0, 1, 2]]),
        "targets of another walk": of(target=other.target[:steps]),
        "an encoder that is stuck": of(
            joint_position=np.where(frozen, position[0], position), joint_velocity=np.where(frozen, 0.0, speed)
        ),
        "backwards in time": lambda: _every(walk_, slice(None, None, -1)),
        "axes of the gyroscope swapped": of(angular_velocity=walk_.angular_velocity[:, [1, 0, 2]]),
        "encoders 0.2 rad off": of(joint_position=position + draw.choice([-0.2, 0.2], JOINTS)),
        "sensors held for 0.16 s": of(
            orientation=held(walk_.orientation), angular_velocity=held(walk_.angular_velocity),
            joint_position=held(position), joint_velocity=held(speed),
        ),
        "noise ten times as large": of(
            angular_velocity=walk_.angular_velocity + draw.normal(0, 1, (steps, 3)),
            joint_position=position + draw.normal(0, 0.06, position.shape),
            joint_velocity=speed + draw.normal(0, 5, speed.shape),
        ),
        "targets half as large": of(target=middle + 0.5 * (target - middle)),
        "every second step": lambda: _every(whole, slice(None, None, 2)),
        "steps shuffled": of(**{name: getattr(walk_, name)[shuffled] for name in SERIES[:4]}),
    }  # fmt: skip


def _every(record: Record, steps: slice) -> Record:
    return dataclasses.replace(record, **{name: getattr(record, name)[steps].copy() for name in SERIES})


def fitted(record: Record) -> tuple[Identified, list[str]]:
    found = identify(PLANT.mechanism, record, PLANT.physics)
    return found, faults(record, found)


def main() -> None:
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        deviations, accepted = list[float](), 0
        for seed, (seconds, fixed) in enumerate(WALKS):
            found, wrong = fitted(walked(folder, seconds, seed, fixed))
            true = drawn(seed, fixed)
            off = [
                (e.unknown.inner(e.value) - e.unknown.inner(true[e.unknown.name])) / e.error
                if true[e.unknown.name] or not e.unknown.factor
                else 0.0
                for e in found.estimates
                if e.unknown.name in true and e.determined
            ]
            accepted += not wrong
            deviations += off
            print(f"walk {seed}: {wrong or 'accepted'}, figures off by {np.abs(off).max():.1f} deviations at most")
        refused = {}
        for name, make in nonsense(folder).items():
            _, wrong = fitted(make())
            refused[name] = wrong
            print(f"{name}: {wrong or 'ACCEPTED'}")
        within = float(np.mean(np.abs(deviations) < 2))
        results = {
            "accepted": accepted, "walks": len(WALKS), "refused": sum(map(bool, refused.values())),
            "nonsense": len(refused), "within_two_deviations": within, "reasons": refused,
        }  # fmt: skip
    print(f"{within:.0%} of {len(deviations)} figures are within two standard deviations")
    write("identification", results)


if __name__ == "__main__":
    words(__doc__)
    main()
