"""A session of a simulated robot, recorded as a robot's own: to try what reads recordings, without a robot.

Time is simulated, not real. The policy's commands pass the gate, which arms and hands over as on a robot.
"""

from __future__ import annotations

import copy
import time as clock
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.held import NEVER, samples_behind
from robo_rl.controllers.gate.safety import Inputs, initial
from robo_rl.controllers.gate.safety import step as gate_step
from robo_rl.deploy.emulate.drawn_goals import DrawnGoals
from robo_rl.deploy.emulate.team import Team
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.logs.logfile import LogWriter, StepRecord
from robo_rl.files import room_for
from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks import Task, Tensors

AGAIN = 2  # steps between requests to take over, which the gate refuses until the joints are where they should be


def record(
    task: Task, bundle: Bundle, path: Path, seconds: float, seed: int, fixed: Mapping[str, float],
    progress: Callable[[int], None] = lambda done: None, renew: float | None = None,
) -> tuple[dict[str, float], bool]:  # fmt: skip
    """Write the new file ``path``; returns what was drawn from the ranges with one number, and whether it fell.

    With ``renew`` there is a new goal every so many seconds. Success ends nothing.

    WriteError when the disk is full; what was written until then can be read.
    """
    with room_for(path, "the recording ends there"):
        goals = None if renew is None else DrawnGoals(task, renew, seed, fixed)
        return _record(_endless(task), bundle, path, seconds, seed, fixed, progress, goals)


def _endless(task: Task) -> Task:
    """The task, but for episodes that end with success: a robot would be put elsewhere."""

    class Endless(type(task)):  # type: ignore[misc]
        def succeeded(self, truth: Tensors) -> Any:
            found = super().succeeded(truth)
            return None if found is None else found & ~found

    endless = copy.copy(task)
    endless.__class__ = Endless
    return endless


def _record(
    task: Task, bundle: Bundle, path: Path, seconds: float, seed: int, fixed: Mapping[str, float],
    progress: Callable[[int], None], goals: DrawnGoals | None,
) -> tuple[dict[str, float], bool]:  # fmt: skip
    env = VecEnv(task, 1, HELD_OUT + seed, fixed=fixed, evaluation=True, episode_length=seconds + 1.0)
    team = Team(env)
    drawn = {name: float(env.drawn[name][0]) for name, of in task.spec.ranges.items() if of.count is None}
    contract, config = bundle.contract, GateConfig.from_contract(bundle.contract)
    gate, state = initial(config), contract.initial_state[None]
    period, begun = round(1e6 * contract.control_period), clock.time_ns()
    about = {"digest": bundle.digest, "bundle": bundle.path.name, "wall": str(begun)}
    writer, failed = LogWriter(path, contract, about), False
    asked, samples = 0, dict[str, tuple[np.ndarray, int]]()
    for k in range(round(seconds / contract.control_period)):
        now = period * (k + 1)
        stamp = now - round(1e6 * float(env.draws.delay[0, 0]))
        told = {name: value[0].numpy() for name, value in env.signals().items()}
        samples = samples_behind(contract, told, samples, stamp)
        at = {
            s.name: stamp if s.source == "runtime" else samples.get(s.name, (None, NEVER))[1] for s in contract.signals
        }
        values, stamps = config.flat_signals({name: (value, at[name]) for name, value in told.items()})
        if gate.state != State.ACTIVE:
            state = contract.initial_state[None]
        commands, following = bundle.run({name: value[None] for name, value in told.items()}, state)
        proposed = config.flat_command({name: value[0] for name, value in commands.items()})
        request = Request.NONE
        if gate.state == State.IDLE:  # at once, before the legs give way
            request = Request.ARM
        elif gate.state == State.READY and k >= asked + AGAIN:
            request, asked = Request.ACTIVATE, k
        given = Inputs(
            time=now, signals=values, stamps=stamps, command=proposed, command_stamp=now, operator_stamp=now,
            bundle_intact=True, requests=request,
        )  # fmt: skip
        gate, answer = gate_step(config, gate, given)
        writer.write(StepRecord.of(given, answer, state[0], given.command, begun + 1000 * now, number=k + 1))
        state = following
        sent = config.commands_by_name(answer.command)
        if goals is not None and (k == 0 or goals.number(1e-6 * now) > goals.number(1e-6 * (now - period))):
            env.draws.goal.copy_(goals.goal(goals.number(1e-6 * now)))
        done = env.step(team.commands({name: torch.from_numpy(np.array(value))[None] for name, value in sent.items()}))
        progress(k + 1)
        if bool(done.failed.any()):
            failed = True
            break
    writer.close()
    return drawn, failed
