"""The racing policy through its car's own bytes against plain simulation: laps without contact, and their time.

    python benchmarks/car_wire.py [--episodes 100] [--policy zoo:car-race]

Every episode has a track of its own, 1.4 to 2.6 m wide, and a lap from standstill. On one side the driver, the VESC's
packets, the lidar's scans of 1,081 beams and the emulated car with a time step of 2.5 ms; on the other the task's own
plant on the same track. Time is virtual on both.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from results import write

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.f1tenth.virtual import World
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.drivers.hokuyo.lidar import Lidar
from robo_rl.deploy.robot.drivers.vesc.car import Car
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.sim.tasks.loading import load_task

SECONDS, PERIOD = 40.0, 0.025
PATIENCE = 60.0  # s of real time for a control period of virtual time
WIDTHS = (1.4, 2.6)  # m, of tracks with bends


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--episodes", type=int, default=100)
    arguments.add_argument("--policy", default="zoo:car-race")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    policy = Policy.load(given.policy, 1 / PERIOD)
    widths = np.random.default_rng(0).uniform(*WIDTHS, given.episodes)
    found: dict[str, Any] = {"episodes": given.episodes}
    for name, run in (("wire", through_the_wire), ("simulation", simulated)):
        laps = [run(policy, float(width), seed) for seed, width in enumerate(widths)]
        times = [lap for lap in laps if lap is not None]
        found[name] = {"success": len(times) / given.episodes, "lap_time": float(np.mean(times))}
        print(f"{name}: {len(times)} of {given.episodes} laps without contact, {np.mean(times):.2f} s each")
    write("car_wire", found)


def through_the_wire(policy: Policy, width: float, seed: int) -> float | None:
    """s of a lap; None if it met a wall, or did not come round."""
    world, lap = World(seed, width), None
    file = world.racer.file
    driver = Car(
        world.vesc, policy.contract, file, lambda: world.deadman,
        lambda scan, count: Lidar(world.lidar, scan, count, world.now), world.now,
    )  # fmt: skip
    driver.connect()
    begun = 0.0

    def note(step: Step) -> None:
        nonlocal lap, begun
        if step.number == 10:
            loop.request(Request.ARM)
        elif step.output.state == State.READY and loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
            begun = world.now()
        if world.racer.laps >= 1 and lap is None:
            lap = world.now() - begun
        if lap is not None or world.racer.touches or step.output.state == State.FAULT:
            loop.end()
            loop.end()  # at once

    loop = Loop(policy, ForLoop(driver, policy.contract, {}), note, world, PATIENCE)
    loop.run(SECONDS)
    return lap


def simulated(policy: Policy, width: float, seed: int) -> float | None:
    """The same on the task's own plant, with its noise."""
    track, task = World(seed, width).racer.plant, load_task("car-race")
    plant, random = task.make_plant(1, "cpu"), np.random.default_rng(seed)
    one = torch.tensor([0])
    for name in ("track_shape", "track_size", "track_width", "track_direction"):
        plant.param(name)[0] = track.param(name)[0]
    plant.refresh(one)
    plant.put(one, *torch.zeros(4, 1).unbind(0))
    policy.reset()
    for step in range(round(SECONDS / PERIOD)):
        truth = {name: value[0].numpy() for name, value in plant.truth().items()}
        if truth["clearance"][0] <= 0.0:
            return None
        if truth["progress"][0] >= truth["track_length"][0]:
            return step * PERIOD
        signals = {
            "scan": truth["scan"] + 0.02 * random.standard_normal(64), "wheel_speed": truth["wheel_speed"],
            "yaw_rate": truth["yaw_rate"] + 0.02 * random.standard_normal(1),
        }  # fmt: skip
        commands = policy.step(signals)
        plant.step({name: torch.from_numpy(np.asarray(value)[None]) for name, value in commands.items()})
    return None


if __name__ == "__main__":
    main()
