"""How a walking robot is stopped best: 128 Go2s with `zoo:go2-flat`, stopped by the gate as they walk and are pushed.

Each robot is drawn from all ranges of the task (mass, payload, friction, pushes, noise, delays), walks 3 s with the
commands and pushes of its episode, behind a gate of its own, and is watched for 5 s after the fault. The stops differ,
the robots and what happens to them until the fault do not.

    python benchmarks/stopping.py
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from results import words, write

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.legged.walk import FlatWalk
from robo_rl.zoo import located

ROBOTS, WALK, WATCH = 128, 3.0, 5.0
"""Robots; s of walking; s that are watched after the fault."""
CROUCH = (0.0, 1.36, -2.65)
"""Hip, thigh, calf, rad: crouched on the ground (Unitree, unitree_sdk2, example/go2/go2_stand_example.cpp)."""
TRIP = 900.0
"""N on the base for ``TRIPPED`` s, sideways: six times the robot's weight, it falls over."""
TRIPPED = 0.1
CAUSES = ("stop", "trip", "joints")
"""The operator stops it, in contact with everything; it falls over (TILT); the joints' sensors fall silent."""


class Endless(FlatWalk):
    """The task, in which nothing ends when a robot falls, and all can be tripped."""

    trip = False
    contacts = "all"
    """Trunk and legs touch the ground, too: where they could not, robots that sink would go through it."""

    def failed(self, truth: Any) -> Any:
        return truth["position"][:, 2] < -100.0

    def disturb(self, time: Any, goal: Any) -> dict[str, Any]:
        found = super().disturb(time, goal)
        if self.trip:
            hit = (time >= WALK) & (time < WALK + TRIPPED)
            found["force"][:, 1] += torch.where(hit, TRIP, 0.0)
        return found


def stops(contract: Contract) -> dict[str, Contract]:
    """The contract with each way to stop."""
    (command,) = contract.commands
    crouch = tuple(CROUCH[k % 3] for k in range(command.size))
    ways: dict[str, dict[str, Any]] = {
        "damp": {"stop": "damp", "safe": "hold"},
        "hold": {"stop": "hold", "safe": "hold"},
        "ramp to the stance": {"stop": "ramp", "safe": command.start},
        "ramp to a crouch": {"stop": "ramp", "safe": crouch},
    }
    return {
        name: dataclasses.replace(contract, commands=(dataclasses.replace(command, **way),))
        for name, way in ways.items()
    }


def watched(bundle: Bundle, contract: Contract, cause: str) -> dict[str, float]:
    """What becomes of the robots."""
    torch.manual_seed(0)
    task = Endless()
    task.trip = cause == "trip"
    env = VecEnv(task, ROBOTS, 7, evaluation=True, episode_length=WALK + WATCH + 60.0)
    config, period = GateConfig.from_contract(contract), round(1e6 * contract.control_period)
    gates, memory = [initial(config)] * ROBOTS, np.repeat(contract.initial_state[None], ROBOTS, 0)
    effort = np.array([actuator.effort for actuator in contract.robot.actuators])
    gains = np.array(contract.commands[0].law.stiffness)  # type: ignore[union-attr]
    everybody = torch.arange(ROBOTS)
    silent_from, counted = round(WALK / contract.control_period), []
    since, before = np.full(ROBOTS, -1), None
    for k in range(round((WALK + WATCH) / contract.control_period)):
        now = period * (k + 1)
        told = {name: value.numpy() for name, value in env.signals().items()}
        fault = k >= silent_from
        commands, memory = bundle.run(told, memory)
        flat, sent = np.concatenate(list(told.values()), 1).astype(np.float32), []
        proposed = np.concatenate(list(commands.values()), 1).astype(np.float32)
        for i in range(ROBOTS):
            state = gates[i].state
            request = {State.IDLE: Request.ARM, State.READY: Request.ACTIVATE}.get(state, Request.NONE)
            stamps = [now] * len(config.signals)
            if fault and cause == "stop":
                request = Request.STOP
            if fault and cause == "joints":
                lost = next(j for j, watch in enumerate(config.signals) if watch.name == "joint_position")
                stamps[lost] = period * silent_from
            given = Inputs(
                time=now, signals=flat[i], stamps=stamps, command=proposed[i], command_stamp=now, operator_stamp=now,
                bundle_intact=True, requests=request,
            )  # fmt: skip
            gates[i], output = step(config, gates[i], given)
            sent.append(output.command)
            if state == State.ACTIVE and output.state == State.FAULT and since[i] < 0:
                since[i] = k
        targets = np.stack(sent)
        joints = env.truth(everybody)["joint_position"].numpy().copy()
        env.step({contract.commands[0].name: torch.from_numpy(targets)})
        truth = {name: value.numpy() for name, value in env.truth(everybody).items()}
        velocity = truth["linear_velocity"].copy()
        x, y = truth["orientation"][:, 0], truth["orientation"][:, 1]
        counted.append(
            {
                "asked": (gains * np.abs(targets - joints) / effort).max(1),
                "braked": np.linalg.norm(velocity - (velocity if before is None else before), axis=1)
                / contract.control_period,
                "upright": 1 - 2 * (x * x + y * y),
                "height": truth["position"][:, 2].copy(),
            }
        )
        before = velocity
    happened = since >= silent_from
    after = np.array([[k > since[i] >= 0 for i in range(ROBOTS)] for k in range(len(counted))])
    series = {name: np.stack([row[name] for row in counted]) for name in counted[0]}
    return {
        "stopped": int(happened.sum()),
        "tilted": int((series["upright"][-1, happened] < np.cos(np.pi / 4)).sum()),
        "asked": float(series["asked"][after].max()),
        "braked": float(np.quantile(np.where(after, series["braked"], 0).max(0)[happened], 0.9)),
        "height": float(np.median(series["height"][-1, happened])),
    }


def main() -> None:
    bundle, rows = Bundle.read(located("zoo:go2-flat")), []
    for cause in CAUSES:
        for name, contract in stops(bundle.contract).items():
            row = {"cause": cause, "stop": name, **watched(bundle, contract, cause)}
            rows.append(row)
            print(
                f"{cause:<8}{name:<20}{row['tilted']:>4} of {row['stopped']} tilted; asked {row['asked']:.2f} of the "
                f"effort; base braked by {row['braked']:.0f} m/s² (90 %); height {row['height']:.2f} m",
                flush=True,
            )
    write("stopping", {"robots": ROBOTS, "rows": rows})


if __name__ == "__main__":
    words(__doc__)
    main()
