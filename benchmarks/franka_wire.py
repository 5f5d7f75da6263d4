"""A policy of poses through franky and libfranka's protocol against plain simulation: arm-reach, arm-place.

    python benchmarks/franka_wire.py [--episodes 40] [--policy zoo:arm-reach]

On one side the driver, franky's client and franky-sim's FR3 with its hand (physics by its authors, with a cube for
arm-place); on the other the task's own evaluation, by `robo-rl evaluate`. Time is virtual on
both. An episode of arm-reach succeeds where the tool is within 1 cm of its set-point in the last half second; one of
arm-place where the cube, lifted in between, lies within 2 cm of its place at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from results import write

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.emulate.franka import CUBE, Station
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.loop import Loop, Step
from robo_rl.deploy.robot.runtime import Policy

sys.path.append(str(Path(__file__).parents[1] / "tests" / "deploy" / "drivers"))
from emulated_franka import Session

PERIOD, PATIENCE, READY = 0.02, 60.0, 10
REACHING, PLACING = 4.0, 8.0
"""s. The Franka hand is slower than the task's gripper, so placing has 2 s more than in simulation."""
SEEN = (0.02, 0.06)
"""s, age of the cube's pose, as the task draws it."""
LIFTED, NEAR, REACHED = 0.04, 0.02, 0.01  # m


class Seen:
    """The driver's signals, and a camera's of the cube."""

    def __init__(self, session: Session, random: np.random.Generator) -> None:
        self.session, self.random, self.measured = session, random, (*session.driver.measured, "cube_position")
        self.past: list[tuple[float, np.ndarray]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session.driver, name)

    def read(self, now: int) -> dict[str, Any]:
        clock = self.session.world.now()
        self.past.append((clock, self.session.station.cube_position))
        before = clock - self.random.uniform(*SEEN)
        stamp, place = next(((s, p) for s, p in reversed(self.past) if s <= before), self.past[0])
        found = dict(self.session.driver.read(now))
        noisy = place + 0.001 * self.random.standard_normal(3)
        return {**found, "cube_position": (noisy.astype(np.float32), now - round(1e6 * (clock - stamp)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--policy", default="zoo:arm-reach")
    given = parser.parse_args()
    policy, random = Policy.load(given.policy, 1 / PERIOD), np.random.default_rng(0)
    episode = placed if policy.contract.task == "arm-place" else reached
    errors, begun = [], time.monotonic()
    for number in range(given.episodes):
        errors.append(episode(policy, random))
        good = [e for e in errors if e is not None]
        print(f"{number + 1}: {errors[-1]}; {len(good)} succeeded, {time.monotonic() - begun:.0f} s", flush=True)
    error = float(np.mean(good)) if good else None
    found = {"episodes": given.episodes, "success": len(good) / len(errors), "error_m": error}
    write(f"franka_wire_{policy.contract.task}", found)
    print(f"{len(good)} of {len(errors)} episodes, {100 * (error or 0.0):.2f} cm from the goal at the end")


def drive(session: Session, driver: Any, seconds: float) -> bool:
    """Whether the session ends without a fault."""
    since = 0

    def note(step: Step) -> None:
        nonlocal since
        session.watch()
        if step.number == READY:
            loop.request(Request.ARM)
        elif step.output.state == State.READY and loop.reserve.arrived:
            loop.request(Request.ACTIVATE)
        since += step.output.state == State.ACTIVE
        if since >= seconds / PERIOD or step.output.state == State.FAULT:
            done.append(step.output.state == State.ACTIVE)
            loop.end()

    done: list[bool] = []
    session.driver.connect()
    contract = session.policy.contract
    loop = Loop(session.policy, ForLoop(driver, contract, session.told), note, session.world, PATIENCE)
    loop.run(3 * seconds)
    return bool(done and done[0])


def reached(policy: Policy, random: np.random.Generator) -> float | None:
    """m from the set-point; None where it failed."""
    goal = random.uniform((0.4, -0.18, 0.03), (0.6, 0.18, 0.23))
    session = Session(policy)
    session.told["tool_position_setpoint"][:] = goal
    try:
        if not drive(session, session.driver, REACHING):
            return None
        last = np.array(session.places)[round(-0.5 / PERIOD) - 5 : -5]
        far = float(np.linalg.norm(last - goal, axis=1).max())
        return far if far < REACHED else None
    finally:
        session.close()


def placed(policy: Policy, random: np.random.Generator) -> float | None:
    """m, level, from the cube's place; None where it failed."""
    while True:
        at, goal = (random.uniform((0.42, -0.16), (0.58, 0.16)) for _ in range(2))
        if np.linalg.norm(at - goal) > 0.1:
            break
    session = Session(policy, Station(cube=(float(at[0]), float(at[1]))))
    session.told = {"cube_position_setpoint": np.array([*goal, CUBE / 2], np.float32)}
    heights: list[float] = []
    watch = session.watch

    def watching() -> None:
        watch()
        heights.append(float(session.station.cube_position[2]))

    session.watch = watching  # type: ignore[method-assign]
    try:
        ended = drive(session, Seen(session, random), PLACING)
        cube = session.station.cube_position
        off = float(np.linalg.norm(cube[:2] - goal))
        good = ended and max(heights) > LIFTED + CUBE / 2 - 0.005 and off < NEAR and cube[2] < CUBE / 2 + 0.008
        if not good:
            told = f"highest {max(heights):.3f} m, {off:.3f} m off, {'to its end' if ended else 'stopped'}"
            print(f"failed: {told} {session.driver.health()}")
        return off if good else None
    finally:
        session.close()


if __name__ == "__main__":
    main()
