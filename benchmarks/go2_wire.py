"""A walking policy through its robot's own bytes against plain simulation: episodes without a fall, and the velocity.

    python benchmarks/go2_wire.py [--episodes 100] [--policy zoo:go2-flat]
    python benchmarks/go2_wire.py --robot g1 --policy zoo:g1-walk

Every episode has a velocity drawn from what the policy was trained for, and lasts ten seconds. On one side the driver,
the keeper of its commands, LowCmd_ and LowState_ with their checksums, and the emulated robot with a time step of 2 ms,
which rises from its belly or hangs first; on the other the task's own plant. Time is virtual on both: what this
measures is what becomes of commands and signals, not whether this computer is fast enough.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from results import write

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.g1 import G1
from robo_rl.deploy.emulate.g1.wire import G1Wire
from robo_rl.deploy.emulate.go2 import NOISE
from robo_rl.deploy.emulate.go2.virtual import VirtualLink, World
from robo_rl.deploy.robot.drivers import g1, go2
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.drivers.unitree.dog import Dog
from robo_rl.deploy.robot.drivers.unitree.humanoid import Humanoid
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.sim.tasks.loading import load_task

SECONDS, SETTLED = 10.0, 3.0
"""s of an episode, and of its beginning that does not count for the velocity."""
PATIENCE = 60.0  # s of real time for a control period of virtual time
LOWEST = {"go2": np.array([-1.0, -0.6, -1.0]), "g1": np.array([-0.2, -0.25, -0.4])}
FASTEST = {"go2": np.array([1.0, 0.6, 1.0]), "g1": np.array([0.7, 0.25, 0.4])}
"""m/s, m/s, rad/s: the ranges of go2-flat's and g1-walk's training."""
TASKS = {"go2": "go2-flat", "g1": "g1-walk"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--episodes", type=int, default=100)
    arguments.add_argument("--policy", default="zoo:go2-flat")
    arguments.add_argument("--robot", choices=TASKS, default="go2")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    policy = Policy.load(given.policy, 50)
    wanted = np.random.default_rng(0).uniform(LOWEST[given.robot], FASTEST[given.robot], (given.episodes, 3))
    found: dict[str, Any] = {"episodes": given.episodes}
    for name, run in (("wire", through_the_wire), ("simulation", simulated)):
        results = [run(given.robot, policy, velocity, seed) for seed, velocity in enumerate(wanted)]
        errors = [error for stood, error in results if stood]
        stood = sum(stood for stood, _ in results)
        found[name] = {"success": stood / given.episodes, "error": float(np.mean(errors))}
        print(f"{name}: {stood} of {given.episodes} stay on their feet, velocity error {np.mean(errors):.3f} m/s")
    write(f"{given.robot}_wire", found)


def setpoints(velocity: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "linear_velocity_command": velocity[:2].astype(np.float32), "yaw_rate_command": velocity[2:].astype(np.float32)
    }  # fmt: skip


def difference(truth: dict[str, np.ndarray], velocity: np.ndarray) -> np.ndarray:
    """(2,) m/s in the heading's frame, of what is there and what is wanted."""
    x, y, z, w = truth["orientation"]
    heading = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    c, s = np.cos(heading), np.sin(heading)
    return np.array([[c, s], [-s, c]]) @ truth["linear_velocity"][:2] - velocity[:2]


def connected(robot: str, policy: Policy, seed: int) -> tuple[World, Dog]:
    """An emulated robot and its driver."""
    world = World(seed, G1Wire, G1) if robot == "g1" else World(seed)

    def link(damp: bool) -> VirtualLink:
        return VirtualLink(world, damp)

    driver: Dog
    if robot == "g1":
        driver = Humanoid("G1", link, policy.contract, g1.JOINTS, g1.HELD, g1.MACHINE, clock=world.now)
    else:
        driver = Dog("Go2", link, policy.contract, go2.JOINTS, world.now)
    driver.connect()
    return world, driver


def through_the_wire(robot: str, policy: Policy, velocity: np.ndarray, seed: int) -> tuple[bool, float]:
    """Whether the robot stayed on its feet, and the mean velocity's difference from the wanted one in m/s."""
    world, driver = connected(robot, policy, seed)
    differences: list[np.ndarray] = []
    active, ended = 0, False

    def note(step: Step) -> None:
        nonlocal active, ended
        if step.number == 10:
            loop.request(Request.ARM)
        elif step.output.state == State.READY and loop.reserve.arrived and not getattr(world.robot, "hung", False):
            loop.request(Request.ACTIVATE)
        if step.output.state == State.ACTIVE:
            active += 1
            if active * 0.02 > SETTLED:
                differences.append(difference(world.robot.truth, velocity))
        ended = active * 0.02 >= SECONDS
        if ended or step.output.state == State.FAULT:
            loop.end()

    loop = Loop(policy, ForLoop(driver, policy.contract, setpoints(velocity)), note, world, PATIENCE)
    loop.run(60.0)
    return ended, float(np.linalg.norm(np.mean(differences, 0))) if differences else np.nan


def simulated(robot: str, policy: Policy, velocity: np.ndarray, seed: int) -> tuple[bool, float]:
    """The same of the task's plant, with the emulator's noise."""
    task = load_task(TASKS[robot])
    plant, random = task.make_plant(1, "cpu"), np.random.default_rng(seed)
    stand = torch.tensor([[joint.stand for joint in task.spec.robot.joints]])
    base = ([0.0, 0.0, plant.height], [0.0, 0.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3)
    parts = (torch.tensor([part], dtype=torch.float32) for part in base)
    plant.place(torch.tensor([0]), *parts, stand, 0.0 * stand)
    scale = dict(
        zip(("orientation", "angular_velocity", "joint_position", "joint_velocity"), NOISE.values(), strict=False)
    )
    policy.reset()
    differences = []
    for step in range(round(SECONDS / 0.02)):
        truth = {name: value[0].numpy() for name, value in plant.truth().items()}
        noisy = {
            name: (truth[name] + deviation * random.standard_normal(truth[name].shape)).astype(np.float32)
            for name, deviation in scale.items()
        }
        noisy["orientation"] /= np.linalg.norm(noisy["orientation"])
        commands = policy.step({**noisy, **setpoints(velocity)})
        plant.step({name: torch.from_numpy(np.array(value))[None] for name, value in commands.items()})
        told = {**plant.truth(), **{name: torch.from_numpy(v)[None] for name, v in setpoints(velocity).items()}}
        if bool(task.failed(told).any()):
            return False, np.nan
        if step * 0.02 > SETTLED:
            differences.append(difference({name: value[0].numpy() for name, value in told.items()}, velocity))
    return True, float(np.linalg.norm(np.mean(differences, 0)))


if __name__ == "__main__":
    main()
