"""A policy that reaches, through the bytes of a UR5e's controller, against plain simulation: successes and errors.

    python benchmarks/ur_wire.py --policy reach.onnx [--episodes 100] [--speed 0.5]

The policy is one of `robo-rl train arm-reach --robot ur5e`. Every episode has a set-point of its own, as the task
draws them, and 4 s from the moment at which the policy takes over; it succeeds once the tool was within 1 cm of it for
0.2 s. On one side the driver, RTDE's bytes and the emulated controller with its limits of speed, from the card's home;
on the other the task's own plant, with the contract's noise. Time is virtual on both.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from results import write
from servo_wire import PATIENCE, READY, SECONDS, judged, simulated

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.ur.virtual import World
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.drivers.rtde.arm import UrArm
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.sim.tasks.arm.reach import PERIOD
from robo_rl.sim.tasks.loading import load_task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", required=True)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--speed", type=float, default=UrFile().speed, help="as in the robot file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    policy, task = Policy.load(given.policy, 1 / PERIOD), load_task("arm-reach", "ur5e")
    random = np.random.default_rng(0)
    low, high = np.array(task.space.lower), np.array(task.space.upper)
    goals = [low + (high - low) * random.uniform(0.05, 0.95, 3) for _ in range(given.episodes)]
    row: dict[str, Any] = {"episodes": given.episodes, "digest": policy.bundle.digest, "speed": given.speed}
    file = UrFile(speed=given.speed)
    sides = {
        "wire": lambda goal, _: through_the_wire(policy, goal, file),
        "simulation": lambda goal, seed: simulated(task, policy, goal, seed),
    }
    for name, run in sides.items():
        ended = [judged(run(goal, seed), goal) for seed, goal in enumerate(goals)]
        success, error = (float(np.mean(column)) for column in zip(*ended, strict=True))
        row[name] = {"success": success, "error_m": error}
        print(f"{name}: {success:.1%} of {given.episodes}, {1000 * error:.1f} mm from the set-point at the end")
    write("ur_wire", row)


def through_the_wire(policy: Policy, goal: np.ndarray, file: UrFile) -> list[np.ndarray]:
    """The tool's places (m), step by step, from the policy's first on; fewer if it was stopped."""
    world = World()
    driver = UrArm(world, policy.contract, file, world.now)
    driver.connect()
    places: list[np.ndarray] = []

    def note(step: Step) -> None:
        if step.number == READY:
            loop.request(Request.ARM)
        elif step.output.state == State.READY and loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        if step.output.state == State.ACTIVE:
            places.append(world.arm.tool.copy())
        if len(places) >= round(SECONDS / PERIOD) or step.output.state == State.FAULT:
            loop.end()

    told = {"tool_position_setpoint": goal.astype(np.float32)}
    loop = Loop(policy, ForLoop(driver, policy.contract, told), note, world, PATIENCE)
    loop.run(3 * SECONDS)
    return places


if __name__ == "__main__":
    main()
