"""A policy that reaches, through the bytes of an arm's servos, against plain simulation: successes and errors.

    python benchmarks/servo_wire.py dynamixel --policy reach.onnx [--episodes 100]      (or so101)

The policy is one of `robo-rl train arm-reach --robot so101`. Every episode has a set-point of its own, as the task
draws them, and 4 s from the moment at which the policy takes over; it succeeds once the tool was within 1 cm of it for
0.2 s. On one side the driver, the servos' bytes and the emulated arm, which hangs freely until it is armed and whose
torque rises for a second; on the other the task's own plant, with the contract's noise. Time is virtual on both.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch
from results import FOLDER, write

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.servos.arm_virtual import ArmTime, Line
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import RobotFile
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.sim.tasks.arm.reach import HELD, NEAR, PERIOD
from robo_rl.sim.tasks.loading import load_task

SECONDS, READY = 4.0, 10
PATIENCE = 60.0  # s of real time for a control period of virtual time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("driver", choices=("so101", "dynamixel"))
    parser.add_argument("--policy", required=True)
    parser.add_argument("--episodes", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    policy, task = Policy.load(given.policy, 1 / PERIOD), load_task("arm-reach", "so101")
    random = np.random.default_rng(0)
    low, high = np.array(task.space.lower), np.array(task.space.upper)
    goals = [low + (high - low) * random.uniform(0.05, 0.95, 3) for _ in range(given.episodes)]
    row: dict[str, Any] = {"episodes": given.episodes, "digest": policy.bundle.digest}
    sides = {
        "wire": lambda goal, _: through_the_wire(given.driver, policy, goal),
        "simulation": lambda goal, seed: simulated(task, policy, goal, seed),
    }
    for name, run in sides.items():
        ended = [judged(run(goal, seed), goal) for seed, goal in enumerate(goals)]
        success, error = (float(np.mean(column)) for column in zip(*ended, strict=True))
        row[name] = {"success": success, "error_m": error}
        print(f"{name}: {success:.1%} of {given.episodes}, {1000 * error:.1f} mm from the set-point at the end")
    path = FOLDER / "servo_wire.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    found.pop("machine", None)
    write("servo_wire", {**found, given.driver: row})


def judged(places: list[np.ndarray], goal: np.ndarray) -> tuple[bool, float]:
    """Whether it was there for long enough, and m from the set-point at the end."""
    if len(places) < round(SECONDS / PERIOD):
        return False, float("nan")
    away = np.linalg.norm(np.array(places) - goal, axis=1)
    near = away < NEAR
    held = any(near[i : i + HELD].all() for i in range(len(near) - HELD + 1))
    return held, float(away[-10:].mean())


def emulated(name: str, policy: Policy) -> tuple[Any, Any, ArmTime]:
    """The arm, its driver and their time."""
    if name == "dynamixel":
        from robo_rl.deploy.emulate.dynamixel import Arm
        from robo_rl.deploy.emulate.servos.dynamixel_wire import DynamixelWire
        from robo_rl.deploy.robot.drivers.dynamixel.arm import DynamixelArm
        from robo_rl.deploy.robot.drivers.dynamixel.bus import Bus

        arm = Arm()
        time = ArmTime(arm)
        bus = Bus(Line(DynamixelWire(arm.bus)), time.now)
        return arm, DynamixelArm(bus, policy.contract, arm.calibration, arm.file, time.now), time
    from robo_rl.deploy.emulate.servos.feetech_wire import Wire
    from robo_rl.deploy.emulate.so101 import Arm as So101
    from robo_rl.deploy.robot.drivers.feetech.arm import FeetechArm
    from robo_rl.deploy.robot.drivers.feetech.bus import Bus as FeetechBus
    from robo_rl.deploy.robot.drivers.so101 import JOINTS

    other = So101()
    time = ArmTime(other)
    line = FeetechBus(Line(Wire(other.bus)), time.now)
    return other, FeetechArm(line, policy.contract, other.calibration, RobotFile(), JOINTS, time.now), time


def through_the_wire(name: str, policy: Policy, goal: np.ndarray) -> list[np.ndarray]:
    """The tool's places (m), step by step, from the policy's first on; fewer if it was stopped."""
    arm, driver, time = emulated(name, policy)
    driver.connect()
    places: list[np.ndarray] = []

    def note(step: Step) -> None:
        if step.number == READY:
            loop.request(Request.ARM)
        elif step.output.state == State.READY and loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        if step.output.state == State.ACTIVE:
            places.append(arm.plant.truth()["tool_position"][0].numpy().copy())
        if len(places) >= round(SECONDS / PERIOD) or step.output.state == State.FAULT:
            loop.end()

    told = {"tool_position_setpoint": goal.astype(np.float32)}
    loop = Loop(policy, ForLoop(driver, policy.contract, told), note, time, PATIENCE)
    loop.run(3 * SECONDS)
    return places


def simulated(task: Any, policy: Policy, goal: np.ndarray, seed: int) -> list[np.ndarray]:
    """The same by the same exported policy on the task's own plant, from one of its poses."""
    plant, random = task.make_plant(1, "cpu"), np.random.default_rng(seed)
    pose = random.integers(len(task.space.places))
    plant.place(torch.tensor([0]), joint_position=task.space.angles[pose : pose + 1])
    noise = {s.name: np.array(s.noise) for s in policy.contract.signals if s.source == "sensor"}
    policy.reset()
    places = []
    for _ in range(round(SECONDS / PERIOD)):
        truth = {name: value[0].numpy().copy() for name, value in plant.truth().items()}
        measured = {n: truth[n] + sigma * random.standard_normal(truth[n].shape) for n, sigma in noise.items()}
        commands = policy.step({**measured, "tool_position_setpoint": goal})
        plant.step({name: torch.from_numpy(value[None]).float() for name, value in commands.items()})
        places.append(plant.truth()["tool_position"][0].numpy().copy())
    return places


if __name__ == "__main__":
    main()
