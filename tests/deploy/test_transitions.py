"""Every request and fault in every state of the gate, on simulated robots in random states: nothing is ever a jump.

Many robots each of the Go2, the A1, the Crazyflie and a made-up arm, in any pose and motion, their gates in Python and
in C side by side.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from robo_rl.contract import (
    Actuator,
    Command,
    Contract,
    Network,
    PositionLaw,
    Provenance,
    Robot,
    Safety,
    Signal,
)
from robo_rl.controllers.gate.codes import Event, Request, Source, State
from robo_rl.controllers.gate.config import NEVER, GateConfig
from robo_rl.controllers.gate.safety import Gate, Inputs, Output, initial, step
from tests.suite import representatives

sys.path.append(str(Path(__file__).parent))
from native_gate import NativeGate, answered, build_gate, remembered

pytestmark = pytest.mark.slow
ROBOTS, STEPS = 1000, 60
FALLEN = 30  # control periods without motors' help until those that were dropped or stuck in the floor are at rest
UNTRAINED = (Network((), "tanh", False), Provenance("none", 0, 0, "0" * 64))
FAULTS: dict[str, Callable[[Inputs, np.random.Generator], dict[str, Any]]] = {
    "no command": lambda given, draw: {"command": None},
    "command is nan": lambda given, draw: {"command": np.full_like(given.command, np.nan)},
    "command beyond limits": lambda given, draw: {"command": given.command * np.float32(1e3) + np.float32(1e3)},
    "signals missing": lambda given, draw: {"stamps": [NEVER] * len(given.stamps)},
    "signals old": lambda given, draw: {"stamps": [max(0, given.time - 1_000_000)] * len(given.stamps)},
    "one signal is nan": lambda given, draw: {"signals": _changed(given.signals, draw, np.nan)},
    "one signal is huge": lambda given, draw: {"signals": _changed(given.signals, draw, 1e30)},
    "bundle changed": lambda given, draw: {"bundle_intact": False},
    "operator lost": lambda given, draw: {"operator_stamp": NEVER},
}


def _changed(signals: np.ndarray, draw: np.random.Generator, value: float) -> np.ndarray:
    changed = signals.copy()
    changed[draw.integers(len(signals))] = value
    return changed


# --- the robots -----------------------------------------------------------------------------------------------------


class Bodies:
    """Many robots in simulation. Signals are (n, N), commands (n, M)."""

    contracts: list[Contract]
    """Variants of one contract, which the robots have in turns."""
    effort = speed = np.array([np.inf])
    stiffness = np.array([0.0])

    def signals(self) -> np.ndarray: ...
    def step(self, commands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The greatest torque, and the greatest speed that a motor drove its joint on at, (n, M) each."""
        raise NotImplementedError


def driven(torque: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Speeds of joints that their motors drive on; 0 for those that are braked, whatever made them move."""
    return np.where(torque * speed > 0, np.abs(speed), 0.0)


def variants(contract: Contract) -> list[Contract]:
    """Stops of every kind, with and without a start and a rate limit."""
    command, *others = contract.commands
    middle = tuple((low + high) / 2 for low, high in zip(command.lower, command.upper, strict=True))
    made = []
    for stop, start, rate in itertools.product(("ramp", "hold", "damp"), (command.start, None), (None, 6.0)):
        safe = (command.start or middle) if stop == "ramp" else "hold"
        changed = dataclasses.replace(
            command, stop=stop, safe=safe, start=start, rate=None if rate is None else (rate,) * command.size
        )
        made.append(dataclasses.replace(contract, commands=(changed, *others)))
    return made


class Walkers(Bodies):
    """Robots that were dropped with their legs anywhere."""

    def __init__(self, name: str) -> None:
        from robo_rl.sim.env import VecEnv
        from robo_rl.sim.robots.legged import load_legged
        from robo_rl.sim.tasks.legged.recover import Recover

        torch.manual_seed(0)
        task = Recover(load_legged(name))
        contract = task.spec.contract(UNTRAINED[1], UNTRAINED[0])
        self.env = VecEnv(task, ROBOTS, 3, evaluation=True, episode_length=60.0)
        self.contracts = variants(contract)
        actuators = contract.robot.actuators
        self.effort, self.speed = (np.array([getattr(a, what) for a in actuators]) for what in ("effort", "speed"))
        self.stiffness = np.array(contract.commands[0].law.stiffness)  # type: ignore[union-attr]

    def signals(self) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate([v.numpy() for v in self.env.signals().values()], 1), np.float32)

    def step(self, commands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.env.step({"joint_position_target": torch.from_numpy(commands)})
        truth = self.env.truth(torch.arange(ROBOTS))
        torque, speed = truth["joint_torque"].numpy(), truth["joint_velocity"].numpy()
        return np.abs(torque), driven(torque, speed)


class Fliers(Bodies):
    """Multirotors, whose commands stop by being off."""

    def __init__(self) -> None:
        from robo_rl.sim.env import VecEnv
        from robo_rl.sim.tasks.loading import load_task

        torch.manual_seed(0)
        task = load_task("quadrotor-hover")
        contract = task.spec.contract(UNTRAINED[1], UNTRAINED[0])
        self.env = VecEnv(task, ROBOTS, 3, evaluation=True, episode_length=60.0)
        (command,) = contract.commands
        limited = dataclasses.replace(command, rate=(20_000.0,) * command.size)
        self.contracts = [contract, dataclasses.replace(contract, commands=(limited,))]
        self.speed = np.array([actuator.upper for actuator in contract.robot.actuators])

    def signals(self) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate([v.numpy() for v in self.env.signals().values()], 1), np.float32)

    def step(self, commands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.env.step({"rotor_speed": torch.from_numpy(commands)})
        return np.zeros_like(commands), np.abs(commands)


ARM = """
<mujoco><option timestep="0.002" integrator="implicitfast"/><compiler angle="radian"/>
<default><geom type="capsule" size=".03"/></default>
<worldbody><geom type="plane" size="3 3 .1"/><body pos="0 0 .3">
 <joint name="shoulder" axis="0 1 0" range="-2.5 2.5" armature=".05"/><geom fromto="0 0 0 .3 0 0" mass="2"/>
 <body pos=".3 0 0"><joint name="elbow" axis="0 1 0" range="-2 2" armature=".02"/><geom fromto="0 0 0 .3 0 0" mass="1"/>
  <body pos=".3 0 0"><joint name="wrist" axis="0 1 0" range="-1.5 1.5" armature=".01"/>
   <geom fromto="0 0 0 .15 0 0" mass=".5"/></body></body></body></worldbody>
<actuator><position joint="shoulder" kp="60" kv="3" forcerange="-35 35"/>
 <position joint="elbow" kp="40" kv="2" forcerange="-15 15"/>
 <position joint="wrist" kp="10" kv=".4" forcerange="-4 4"/></actuator></mujoco>
"""


class Arms(Bodies):
    """A made-up arm of three joints above a floor that it can hit, thrown into any pose."""

    names = ("shoulder", "elbow", "wrist")
    period, substeps = 0.01, 5

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        self.model, self.draw = mujoco.MjModel.from_xml_string(ARM), draw
        lower, upper = self.model.jnt_range.T
        self.effort, self.speed = np.array([35.0, 15.0, 4.0]), np.array([12.0, 12.0, 20.0])
        self.stiffness = np.array([60.0, 40.0, 10.0])
        self.data = []
        for _ in range(ROBOTS):
            data = mujoco.MjData(self.model)
            data.qpos[:], data.qvel[:] = draw.uniform(lower, upper), draw.uniform(-3, 3, 3)
            data.ctrl[:] = data.qpos
            self.data.append(data)
        actuators = tuple(
            Actuator(name, "position", "rad", *limits, "hold", effort=effort, speed=speed)
            for name, limits, effort, speed in zip(
                self.names, self.model.jnt_range.tolist(), self.effort, self.speed, strict=True
            )
        )
        contract = Contract(
            task="arm",
            control_period=self.period,
            signals=(Signal("encoder", self.names[::-1], "rad", "joint", (-3.5,) * 3, (3.5,) * 3, noise=1e-4),),
            commands=(
                Command(
                    "joint_target", self.names, "rad", "joint", tuple(lower), tuple(upper), safe=(0.0, 0.0, 0.0),
                    start=(-0.5, 0.5, 0.0), stop="ramp", law=PositionLaw((60, 40, 10), (3, 2, 0.4)),
                ),
            ),
            state=(),
            safety=Safety(0.05),
            robot=Robot("arm", "arm", actuators),
            network=UNTRAINED[0],
            provenance=UNTRAINED[1],
        )  # fmt: skip
        self.contracts = variants(contract)

    def signals(self) -> np.ndarray:
        places = np.array([data.qpos[::-1] for data in self.data])
        return (places + 1e-4 * self.draw.normal(size=places.shape)).astype(np.float32)

    def step(self, commands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        torque, speed = np.zeros((2, *commands.shape))
        for i, data in enumerate(self.data):
            data.ctrl[:] = commands[i]
            for _ in range(self.substeps):
                mujoco.mj_step(self.model, data)
                torque[i] = np.maximum(torque[i], np.abs(data.qfrc_actuator))
                speed[i] = np.maximum(speed[i], driven(data.qfrc_actuator, data.qvel))
        return torque, speed


MADE: dict[str, Callable[[], Bodies]] = {
    "go2": lambda: Walkers("go2"),
    "a1": lambda: Walkers("a1"),
    "crazyflie": Fliers,
    "arm": Arms,
}


# --- what is asked of them ------------------------------------------------------------------------------------------

ASKED = [request for request in Request if request] + list(FAULTS)


def asked_for(state: State, draw: np.random.Generator) -> Request | str:
    """Mostly what leads on, or nothing would ever be active; else anything."""
    if draw.random() < 0.55:
        return {State.IDLE: Request.ARM, State.READY: Request.ACTIVATE, State.FAULT: Request.RESET}.get(
            state, Request.NONE
        )
    return ASKED[draw.integers(len(ASKED))]


class Robots:
    """Bodies with their gates, and what is known of every step."""

    def __init__(self, bodies: Bodies, folder: Path) -> None:
        self.bodies, self.draw = bodies, np.random.default_rng(1)
        self.configs = [GateConfig.from_contract(contract) for contract in bodies.contracts]
        libraries = []
        for k, contract in enumerate(bodies.contracts):
            (folder / str(k)).mkdir()
            libraries.append(build_gate(contract, folder / str(k)))
        self.kinds = [i % len(self.configs) for i in range(ROBOTS)]
        self.gates = [initial(self.configs[kind]) for kind in self.kinds]
        self.natives = [NativeGate(libraries[kind], self.configs[kind]) for kind in self.kinds]
        self.tried: Counter[tuple[State, Any]] = Counter()
        self.transitions = self.steps = 0
        self.greatest: dict[str, float] = Counter()

    def fall(self) -> None:
        """Until bodies that began in the air, or in each other, are where they can be."""
        config = self.configs[0]
        for _ in range(FALLEN):
            signals = self.bodies.signals()
            measured = np.clip(signals[:, config.feedback], config.command_lower, config.command_upper)
            self.bodies.step(np.where(config.measured, measured, config.safe).astype(np.float32))

    def run(self) -> None:
        self.fall()
        shape = ROBOTS, len(self.configs[0].safe)
        alone = np.zeros(ROBOTS, bool)  # in the step before, the gate made its own move
        for k in range(STEPS):
            signals = self.bodies.signals()
            commands, own = np.zeros(shape, np.float32), np.zeros(ROBOTS, bool)
            for i in range(ROBOTS):
                gate, output = self._step(i, k, signals[i])
                commands[i] = output.command
                own[i] = output.source in (Source.START, Source.STOP, Source.SAFE)
                self._check(i, self.gates[i], gate, output)
                self.transitions += gate.state != self.gates[i].state
                self.gates[i] = gate
            silent = np.array([gate.reaction == Source.SILENT for gate in self.gates])
            torque, speed = self.bodies.step(commands)
            moved = own & ~silent
            self._note("torque / effort", torque[moved] / self.bodies.effort)
            # what the policy drove goes on for the period in which a command takes effect, and where nobody knows where
            # it is; what is driven after that is the gate's
            seen = np.array([self._knows(gate) for gate in self.gates])
            lasting, alone = moved & alone & seen, moved & seen
            self._note("driven speed / greatest", speed[lasting] / self.bodies.speed)
            self._note("the same in the policy's wake", speed[moved & ~lasting] / self.bodies.speed)
        self.steps = STEPS * ROBOTS

    def _step(self, i: int, k: int, signals: np.ndarray) -> tuple[Gate, Output]:
        config, before = self.configs[self.kinds[i]], self.gates[i]
        now = (k + 1) * config.period
        asked = asked_for(before.state, self.draw) if k > 2 else Request.NONE
        lower, upper = config.command_lower, config.command_upper
        random = (lower + (upper - lower) * self.draw.random(len(lower), np.float32)).astype(np.float32)
        near = np.clip(before.command + (random - before.command) * np.float32(0.2), lower, upper)
        given = Inputs(
            time=now, signals=signals, stamps=[now] * len(config.signals), command=near, command_stamp=now,
            operator_stamp=now, bundle_intact=True, requests=asked if isinstance(asked, Request) else Request.NONE,
        )  # fmt: skip
        if isinstance(asked, str):
            given = dataclasses.replace(given, **FAULTS[asked](given, self.draw))
        if asked:
            self.tried[before.state, asked] += 1
        gate, output = step(config, before, given)
        assert self.natives[i].step(given) == answered(output)
        assert self.natives[i].remembered() == remembered(gate)
        return gate, output

    def _check(self, i: int, before: Gate, gate: Gate, output: Output) -> None:
        config = self.configs[self.kinds[i]]
        assert (output.command >= config.command_lower).all()
        assert (output.command <= config.command_upper).all()
        if before.reaction == Source.SILENT and not output.events & Event.ARMED:
            assert output.source == Source.SILENT
            return
        if before.reaction != Source.SILENT:
            at_once = config.off if output.source != Source.POLICY else np.zeros_like(config.off)
            change = np.abs(output.command.astype(float) - before.command)[~at_once]
            limit = config.rate_step[~at_once] * (1 + 1e-5)
            self._note("change / rate limit", change / limit)
            assert (change <= limit).all()
        if output.source in (Source.START, Source.STOP) and config.measured.any():
            self._check_reach(config, before, gate, output)

    def _check_reach(self, config: GateConfig, before: Gate, gate: Gate, output: Output) -> None:
        """What the position control asks of the motors in the gate's own moves, at the newest measurement."""
        measured = np.clip(gate.values[config.feedback].astype(float), config.command_lower, config.command_upper)
        known = np.isfinite(gate.values[config.feedback]) & (gate.stamps[config.feedback_signal[0]] == gate.time)
        known &= (gate.values[config.feedback] >= config.signal_lower[config.feedback]) & (
            gate.values[config.feedback] <= config.signal_upper[config.feedback]
        )
        free = known & np.isinf(config.rate_step)
        asked = self.bodies.stiffness * np.abs(output.command - measured) / self.bodies.effort
        self._note("stiffness (target - measured) / effort", asked[free])
        assert (asked[free] <= 1 + 1e-5).all()
        began = before.state in (State.READY, State.ACTIVE) or output.events & Event.ARMED
        if began and output.source == Source.STOP:  # from where it is, slowly
            assert (np.abs(output.command - measured)[free] <= config.slow_step[free] * (1 + 1e-5) + 1e-6).all()
        # where a rate limit is in the way, it comes back within reach as fast as it may
        beyond = known & (asked > 1 + 1e-5)
        change = np.abs(output.command.astype(float) - before.command)
        assert (change[beyond] >= config.rate_step[beyond] * (1 - 1e-5)).all()

    def _knows(self, gate: Gate) -> bool:
        """Whether all feedback of this step can be used."""
        config = self.configs[0]
        places = config.feedback[config.measured]
        values, stamps = gate.values[places], [gate.stamps[k] for k in config.feedback_signal[config.measured]]
        inside = (values >= config.signal_lower[places]) & (values <= config.signal_upper[places])
        return all(stamp == gate.time for stamp in stamps) and bool(inside.all())

    def _note(self, what: str, values: np.ndarray) -> None:
        if values.size:
            self.greatest[what] = max(self.greatest[what], float(np.max(values)))


@pytest.mark.parametrize("robots", representatives([120, 1000], [120]))
@pytest.mark.parametrize("name", representatives(list(MADE), ["go2", "crazyflie", "arm"]))
def test_nothing_jumps_whatever_is_asked_in_whatever_state(
    name: str,
    robots: int,
    tmp_path: Path,
    record_property: Callable[[str, Any], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROBOTS", robots)
    many = Robots(MADE[name](), tmp_path)
    many.run()
    everything = set(itertools.product(State, ASKED))
    assert everything <= set(many.tried), everything - set(many.tried)
    for what, value in {**many.greatest, "steps": many.steps, "transitions": many.transitions}.items():
        record_property(what, value)
    record_property("fewest tries of a request in a state", min(many.tried.values()))
    assert many.greatest["torque / effort"] <= 1 + 1e-5
    assert many.greatest["driven speed / greatest"] <= 1 + 1e-5
