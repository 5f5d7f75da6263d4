"""A policy server's plans without a large model: a policy of "arm-place", rolled out in a simple model of its arm.

    planner = Planner(Bundle.read("zoo:arm-place"), rows=32, every=2, frozen=25)
    rows = planner.plan(signals, time, who)

The model (``Tool``) is what an impedance control does to a tool that is far from everything, and a cube that goes with
a gripper that is closed on it. What differs between arms and cubes is not known to it: the next request's signals tell.
A plan begins with what the robot will have done until it comes: the commands of the plan before, for ``frozen`` steps
(as in real-time chunking: Black et al. 2025). All is numpy, for a batch of n robots.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robo_rl.contract import Contract, ImpedanceLaw
from robo_rl.deploy.robot.bundle import Bundle

GAIN = 6.9, 9.1, 8.2
"""1/s, x, y, z: a tool's speed over how far its target is ahead: least squares over 32 simulated episodes of the Panda.
Stiffness over damping of its impedance is 12.5, and the joints' own damping comes to that."""
LAG = 0.17
"""s, in which it gets that speed, from the same fit."""
JAW_LAG = 0.1
"""s, in which a gripper goes where it is told, from the same episodes."""
NEAR, LET_GO, PADS = 1.3, 0.002, 0.006
"""Half edges, of a cube from the tool, to be in its gripper; m, by which a gripper opens to let it go; m over the half
edge of the largest cube, beyond which a gripper that is told to close still moves, as pads and scales differ."""
DONE = 0.02, 0.01
"""m from its place, level and in height, of a cube that was placed when it is let go: then the arm waits."""
FIRST = 5
"""Control periods after the first request in which the robot stays: its plan comes later than that."""
SEEN = 0.04
"""s, the usual age of a camera's pose."""
TOOL, JAW = "tool_position_target", "gripper_position_target"


class Tool:
    """n arms that are told where their tools shall be, and n cubes."""

    def __init__(self, contract: Contract, signals: Mapping[str, np.ndarray], told: np.ndarray) -> None:
        """In the state that the signals (n, k) tell; ``told`` (n,): where the gripper was told to go."""
        law, about = contract.command(TOOL).law, contract.facts["object"]
        if not isinstance(law, ImpedanceLaw):
            raise ValueError(f"the policy of '{contract.task}' does not command a tool by an impedance")
        self.clip = np.array(law.clip[:3], np.float32)
        self.half = 0.5 * float(about["size"][0])
        least, most = (0.5 * float(x) for x in about.get("edges", about["size"][:2]))
        self.period = contract.control_period
        self.signals = {name: np.array(value, np.float32) for name, value in signals.items()}
        self.cube, self.place = self.signals["cube_position"].copy(), self.signals["cube_position_setpoint"]
        jaw = self.signals["gripper_position"][:, 0]
        self.held = self._near() & (told < jaw - LET_GO) & (jaw < most + PADS) & (jaw > 0.5 * least)
        self.done = np.zeros(len(jaw), bool)
        self.offset = self.cube - self.signals["tool_position"]

    def _near(self) -> np.ndarray:
        away = self.cube - self.signals["tool_position"]
        return (np.abs(away) < NEAR * self.half).all(-1)

    def step(self, commands: Mapping[str, np.ndarray]) -> None:
        """Go on by a control period."""
        tool, speed = self.signals["tool_position"], self.signals["tool_linear_velocity"]
        wanted = np.array(GAIN, np.float32) * np.clip(commands[TOOL] - tool, -self.clip, self.clip)
        speed = wanted + (speed - wanted) * np.float32(np.exp(-self.period / LAG))
        tool = tool + self.period * speed
        jaw, told = self.signals["gripper_position"], commands[JAW]
        moved = jaw + (told - jaw) * np.float32(1.0 - np.exp(-self.period / JAW_LAG))
        closes = self._near() & (moved[:, 0] < self.half) & (jaw[:, 0] >= self.half)
        opens = told[:, 0] > jaw[:, 0] + LET_GO
        before, self.held = self.held, (self.held | closes) & ~opens
        self.offset = np.where((self.held & ~before)[:, None], self.cube - tool, self.offset)
        stopped = np.where(closes[:, None], np.float32(self.half), jaw)
        jaw = np.where(self.held[:, None], stopped, moved)
        self.cube = np.where(self.held[:, None], tool + self.offset, self.cube)
        self.cube[:, 2] = np.where(self.held, self.cube[:, 2], self.place[:, 2])  # it lies as it will at its place
        way = np.abs(self.cube - self.place)
        self.done |= before & ~self.held & (way[:, :2] < DONE[0]).all(-1) & (way[:, 2] < DONE[1])
        self.signals |= {
            "tool_position": tool, "tool_linear_velocity": speed, "gripper_position": jaw,
            "cube_position": self.cube.copy(), "cube_age": np.full((len(tool), 1), SEEN, np.float32),
        }  # fmt: skip


class Planner:
    """The policy of n robots, and what it remembers of each."""

    def __init__(self, bundle: Bundle, rows: int, every: int, frozen: int, n: int = 1) -> None:
        """Plans have ``rows``, ``every`` so many control periods; ``frozen``: steps until a plan comes to the robot."""
        self.bundle, self.contract, self.rows, self.every, self.frozen = bundle, bundle.contract, rows, every, frozen
        self.needs = tuple(s.name for s in self.contract.signals if s.source != "runtime")
        self.steps = 1 + every * (rows - 1)
        self.states = np.tile(self.contract.initial_state, (self.steps, n, 1))
        self.sent = {c.name: np.zeros((self.steps, n, c.size), np.float32) for c in self.contract.commands}
        self.time = np.full(n, np.nan)
        self.opened = float(self.contract.command(JAW).upper[0])
        ends = np.cumsum([block.size for block in self.contract.state])
        self.told = int(ends[[block.name for block in self.contract.state].index("jaw")]) - 1
        """Where it remembers what the gripper was told last."""

    def plan(self, signals: Mapping[str, np.ndarray], time: np.ndarray, who: np.ndarray) -> np.ndarray:
        """(m, rows, D) targets for the robots ``who`` (m,), whose signals (m, k) were measured at ``time`` (m,) s."""
        passed = np.nan_to_num((time - self.time[who]) / self.contract.control_period).round().astype(int)
        first = np.isnan(self.time[who]) | (passed >= self.steps)
        passed = np.clip(passed, 0, self.steps - 1)
        before = {name: value[:, who].copy() for name, value in self.sent.items()}
        state, told = self.states[passed, who], before[JAW][np.maximum(passed - 1, 0), np.arange(len(who)), 0]
        state[first], told[first] = self.contract.initial_state, np.inf
        stays = {TOOL: signals["tool_position"], JAW: signals["gripper_position"]}
        self.time[who] = time
        world = Tool(self.contract, signals, told)
        for k in range(self.steps):
            self.states[k, who] = state
            commands, following = self.bundle.run(world.signals, state)
            frozen = np.where(first, FIRST, self.frozen)[:, None]
            if k < self.frozen:
                then = np.minimum(passed + k, self.steps - 1), np.arange(len(who))
                earlier = {n: np.where(first[:, None], stays[n], before[n][then]) for n in commands}
                commands = {n: np.where(k < frozen, earlier[n], value) for n, value in commands.items()}
            done = world.done[:, None]
            commands[TOOL] = np.where(done, self.sent[TOOL][k - 1, who], commands[TOOL])
            commands[JAW] = np.where(done, np.float32(self.opened), commands[JAW])
            following[:, self.told] = commands[JAW][:, 0]
            state = np.where(done, state, following)
            for name, value in commands.items():
                self.sent[name][k, who] = value
            world.step(commands)
        rows = np.concatenate([self.sent[c.name][:, who] for c in self.contract.commands], -1)[:: self.every]
        low, high = (np.concatenate([getattr(c, side) for c in self.contract.commands]) for side in ("lower", "upper"))
        return np.clip(rows.swapaxes(0, 1), low.astype(np.float32), high.astype(np.float32))

    def forget(self, who: np.ndarray) -> None:
        """New episodes of these robots."""
        self.time[who] = np.nan
