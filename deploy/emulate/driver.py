"""The simulated robot of a task as a driver: to try the plain loop, and to learn while it runs, without a robot.

    robo-rl run policy.onnx --driver simulated --port 7          # the random seed of the episodes
    robo-rl run policy.onnx --driver simulated --robot-file card.toml # of a robot that is not included

It is simulated in the loop's own process (`pip install 'robo-rl[train]'`), one control period for each step of the
loop, in simulated time (``clock``), which waits for a busy computer. Where an episode ends, the next one begins within
the same step, and ``ended`` tells it. Episodes are drawn as an evaluation draws them, with another seed. Their time is
over for a learner alone: a robot that neither succeeds nor fails goes on.

Until the policy takes over, the robot keeps what it has, a peg in its hand for example, by itself: a gate that arms
would hold the gripper where it is, without force. A multirotor begins in the air, so it is kept where it is; the others
of its team are under the task's classical controller. Robots on legs are held so:

    not armed          the stance, with the contract's gains of a hold ("hold" in the robot's facts), or stiff ones
    the gate holds     as told, with the gains of the hold, or, without them, those of the policy
    the policy acts    as told, with the gains of the policy
    a stop             as told, with the gains of the policy at once; other changes of gains take half a second

In the episode after one that a stop ended, the robot waits for the next ARM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from robo_rl.contract import Contract, ContractError
from robo_rl.contract.robots import HoldGains, hold_gains
from robo_rl.controllers.gate.codes import Source
from robo_rl.controllers.gate.held import samples_behind
from robo_rl.deploy.emulate.simulated_time import SimulatedTime
from robo_rl.deploy.robot.drivers.driver import DriverError, Health, Identity, Mode, Samples, Settings, Silence
from robo_rl.deploy.robot.logs.step_log import Flag

if TYPE_CHECKING:
    from robo_rl.sim.episode import Step
    from robo_rl.sim.tasks import Task

FOREVER = 1e6
"""s: longer than anybody watches; an episode's steps have a limit of their own (``VecEnv``)."""
STIFFNESS, DAMPING = 3.0, 6.0
"""Of legs whose contract has no gains of a hold, times those of the policy: of 64 Go2 with the payloads and pushes of
an evaluation all stand for 6 s and lean by 10 degrees at most; with the policy's own 6 fall, half lean by over 20."""


class Ended(NamedTuple):
    """How an episode ended."""

    flags: Flag
    """SUCCEEDED, FAILED, or neither: its time was over."""
    samples: Samples
    """The last signals of it."""


def stiff(nominal: Any) -> HoldGains:
    """Gains with which legs stand, from the nominal parameters of their plant."""
    stiffness, damping = STIFFNESS * nominal.stiffness[0], DAMPING * nominal.damping[0]
    return HoldGains(tuple(stiffness.tolist()), tuple(damping.tolist()))


class SimulatedRobot:
    """One robot at a task."""

    silence = Silence.STAYS
    guard = ""
    modes: ClassVar = {Source.START: Mode.HOLD}
    """What a command means here, where it is not as usual."""

    def __init__(self, task: Task, seed: int, fixed: Mapping[str, float] | None = None, endless: bool = True) -> None:
        """``fixed`` sets named ranges of the task to one value; ``endless``: no episode's time is over."""
        import torch

        from robo_rl.deploy.emulate.team import Team
        from robo_rl.evaluate.evaluation import StopPolicy
        from robo_rl.learn.experience.demonstrations import contract_of
        from robo_rl.sim.env import VecEnv
        from robo_rl.sim.plants.stance import StanceGains

        self.task, self._contract, self.clock = task, contract_of(task), SimulatedTime()
        length = FOREVER if endless else None
        self.env = VecEnv(task, 1, seed, fixed=fixed, evaluation=True, episode_length=length)
        self.measured = tuple(s.name for s in task.spec.signals if s.source != "runtime")
        self.ended: Ended | None = None
        """How the episode ended in the last step; None: it goes on."""
        self._stop, self._memory = StopPolicy(task), task.first_memory(1)
        start = {command.name: command.start for command in self._contract.commands}
        self._stance = None if None in start.values() else {name: torch.tensor([v]) for name, v in start.items()}
        own = hold_gains(self._contract.robot)
        self._holds, self._flies = own is not None, task.spec.robot.kind == "multirotor"
        self._all = torch.arange(self.env.n)
        self._team = Team(self.env)
        self._gains = None
        if self._stance is not None:
            self._gains = StanceGains(own or stiff(self.env.plant.nominal), task.spec.control_period)
        self._told, self._begun, self._moved = False, False, False
        """Whether the robot was told anything but a stop in this episode, whether the policy has taken over in it, and
        whether time went on since the last ``read``."""
        self._samples: dict[str, tuple[np.ndarray, int]] = {}
        self._now = 0
        self.env.step(self._keep())  # what has to be compiled is, before the clock runs
        self.env.seed(seed)
        self.env.reset()

    def connect(self) -> Identity:
        """It is there."""
        return Identity(self.task.spec.robot.name, {"task": self.task.name, "time": "simulated"})

    def read(self, now: int) -> Samples:
        """The signals as of ``now`` (µs)."""
        self._now = now
        if not self._moved:  # it was told nothing
            self._set_gains(Mode.HOLD)
            self._restarted(self._step(self._keep()))
        self._moved = False
        self._samples = self._measured(self.env.signals(), self._samples)
        return self._samples

    def enable(self) -> None:
        """Nothing is to be enabled."""

    def write(self, commands: Mapping[str, np.ndarray], mode: Mode) -> None:
        """Move on by a control period."""
        import torch

        self._told |= mode not in (Mode.DAMP, Mode.SAFE)
        self._begun |= mode is Mode.POLICY
        told = {name: torch.from_numpy(np.array(value))[None] for name, value in commands.items()}
        follows = self._told and (self._begun or self._stance is not None)
        self._set_gains(mode if self._told else Mode.HOLD)
        step, known = self._step(told if follows else self._keep()), self._told
        self._moved, self.ended = True, None
        if self._restarted(step) and known:
            flags = Flag.SUCCEEDED if bool(step.succeeded[0]) else Flag.FAILED if bool(step.failed[0]) else Flag.NONE
            self.ended = Ended(flags, self._measured(step.final_signals, self._samples))
            self._samples = {}

    def _step(self, commands: Any) -> Step:
        """A control period. A multirotor that the policy has not taken over in this episode is put back."""
        kept = self.env.plant.state(self._all) if self._flies and not self._begun else None
        step = self.env.step(self._team.commands(commands))
        if kept is not None and not len(step.ids):
            self.env.plant.set_state(self._all, kept)
        return step

    def _restarted(self, step: Step) -> bool:
        """Whether the robot is in a new episode after a step."""
        if not len(step.ids):
            return False
        self._told = self._begun = False
        self._team.restart()
        if self._gains:
            self._gains.restart()
        return True

    def _keep(self) -> Any:
        """Commands that keep what it has."""
        if self._stance is not None:
            return self._stance
        signals, hold = self.env.signals(), self.task.hold
        if not self.task.families:
            return self._stop(signals, self._stop.initial_state(1))[0]
        _, memory = self.task.act(hold(signals, self._memory), signals, self._memory)
        return self.task.command(hold(signals, memory), memory)

    def _set_gains(self, mode: Mode) -> None:
        """Let the motors' gains go on towards those that this mode asks for."""
        if self._gains:
            scale = {name: float(self.env.drawn[name][0]) for name in HoldGains._fields}
            armed = self._told and mode is Mode.HOLD and not self._holds
            self._gains.move(self.env.plant, Mode.POLICY if armed else mode, scale)

    def _measured(self, signals: Mapping[str, Any], before: Samples) -> dict[str, tuple[np.ndarray, int]]:
        values = {name: value[0].numpy() for name, value in signals.items()}
        late = round(1e6 * float(self.env.draws.delay[0, 0]))
        return samples_behind(self._contract, values, before, self._now - late)

    def disable(self) -> None:
        """Nothing is to be disabled."""

    def health(self) -> Health:
        """All is well."""
        return Health((), {})

    def close(self) -> None:
        """Nothing is to be given back."""


def make(contract: Contract, settings: Settings) -> SimulatedRobot:
    """The simulated robot of the contract's task. ``settings.port``: the random seed; ``settings.file``: the card of a
    robot that is not included."""
    try:
        from robo_rl.sim.tasks.loading import load_task
    except ImportError as error:
        raise DriverError(f"simulated: {error}; expected the simulator, pip install 'robo-rl[train]'") from None
    if settings.port and not (settings.port.isdecimal() and settings.port.isascii() and len(settings.port) < 7):
        raise DriverError(f"simulated: --port is {settings.port[:60]!r}; expected a random seed, 0 to 999999")
    try:
        task = load_task(contract.task, settings.file or contract.robot_name)
        if settings.file and task.spec.robot.facts() != contract.robot:
            raise ValueError(f"{settings.file} is not the robot of the contract, '{contract.robot_name}'")
        return SimulatedRobot(task, int(settings.port or 0), endless=not settings.learning)
    except (ValueError, ContractError) as error:
        expected = "expected a task of robo-rl, with one of its robots or, as --robot-file, the card of yours"
        raise DriverError(f"simulated: {error}; {expected}") from None
