"""The one engine that runs a robot: policy, gate, fallback, actuators, and the ladder to live, once per control period.

    session = Session(Policy.load("policy.onnx", 100))
    decision = session.step(now, {"position": (array, stamp), …}, requests)
    if decision.send is not None: send it to the actuators

``robo-rl run``, ``Gated``, the LeRobot plug-in and the ROS node step it; each brings a clock, samples, and a way to the
actuators. Times are whole µs of one monotonic clock. In the modes "dry_run" and "shadow" nothing is ever to be sent,
and no actuator is enabled.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from robo_rl.controllers.gate.codes import Problem, Request, Source, State, explain
from robo_rl.controllers.gate.config import NEVER
from robo_rl.controllers.gate.reserve import Reserve
from robo_rl.controllers.gate.safety import Gate, Inputs, Output
from robo_rl.deploy.robot.enabling import Enabling
from robo_rl.deploy.robot.envelope import Envelope
from robo_rl.deploy.robot.logs.logfile import StepRecord
from robo_rl.deploy.robot.orientation_monitor import OrientationMonitor
from robo_rl.deploy.robot.realtime import require_period
from robo_rl.deploy.robot.runtime import Policy, SignalError
from robo_rl.deploy.robot.switcher import PolicySwitcher

MODES = ("dry_run", "shadow", "blend", "live")
"""The ladder, from the ground up."""
Samples = Mapping[str, tuple[np.ndarray, int]]
"""Values (k,) float32 and stamps (µs) by signal."""


@dataclass(frozen=True)
class Proposal:
    """What the policy came to in one step."""

    command: np.ndarray | None
    """(M,); None: it refused."""
    state: np.ndarray
    """(S,) its memory before the step."""
    inference: float
    """s that it took."""
    number: int
    """Which policy it was; negative while one takes over from another."""


@dataclass(frozen=True)
class Decision:
    """What one step came to."""

    time: int
    inputs: Inputs
    output: Output
    send: np.ndarray | None
    """(M,) what must be sent now; None: nothing, the mode does not allow it, or the robot was never armed."""
    policy: np.ndarray | None
    """(M,) what the policy itself proposed."""
    state: np.ndarray
    """(S,) the policy's memory before this step."""
    authority: float
    """Part of the command that is the policy's."""
    inference: float
    """s that the policy took."""
    doubt: str = ""
    """Why the session itself requested a stop, or why a request to arm did not reach the gate."""
    number: int = 0
    """Which policy proposed; negative while one takes over from another."""
    refused: str = ""
    """Why an ARM did not reach the gate, or did not enable the actuators, in the step in which that is known."""

    def record(self, mode: str, sentence: str) -> StepRecord:
        """This decision as the recorder takes it."""
        return StepRecord.of(
            self.inputs, self.output, self.state, self.policy, time.time_ns(), self.time,
            mode=MODES.index(mode), authority=self.authority, inference=self.inference, policy=self.number,
            sentence=sentence,
        )  # fmt: skip


class Session:
    """One robot's policy behind its gate."""

    def __init__(self, policy: Policy | PolicySwitcher, mode: str = "live", blend_time: float = 5.0) -> None:
        """``blend_time`` (s) is how long the policy's authority takes from 0 to 1 in the mode "blend".

        ValueError for a control period that no computer keeps.
        """
        self.policies = policy if isinstance(policy, PolicySwitcher) else PolicySwitcher({"policy": policy})
        self.contract = self.policies.contract
        require_period(self.contract.control_period)
        self.reserve = Reserve(self.contract)
        self.config, self.fallback = self.reserve.config, self.reserve.controller
        self.complaint = ""
        """Why the policy gave no command in its last step; "" if it did."""
        self.successor: Callable[[], Policy | None] = lambda: None
        """Asked before each step for a policy of the same contract that is to go on."""
        self.enabling: Enabling | None = None
        """Of a robot whose actuators have to be enabled before the gate is armed."""
        self.orientations = OrientationMonitor(self.contract)
        self.blend_time = blend_time
        self.authority, self.rising = 1.0, True
        self.envelope = Envelope(self.config, self.contract.signals)
        self._memory = self.policies.state[0]
        self._unfinished: tuple[Output, Mapping[str, np.ndarray], np.ndarray | None, np.ndarray | None] | None = None
        self.set_mode(mode)

    @property
    def gate(self) -> Gate:
        """What the gate remembers."""
        return self.reserve.gate

    def set_mode(self, mode: str) -> None:
        """Put the session on one rung of the ladder, at its beginning."""
        if mode not in MODES:
            raise ValueError(f"mode is '{mode}'; expected one of {MODES}")
        if mode == "blend" and self.fallback is None:
            raise ValueError("mode is 'blend', but this robot has no classical controller")
        self.mode = mode
        self.authority, self.rising = (0.0 if mode == "blend" else 1.0), True

    @property
    def publishes(self) -> bool:
        """Whether the mode allows commands to be sent."""
        return self.mode in ("blend", "live")

    def promote(self) -> str:
        """One rung up, if that is safe now; returns a sentence, or raises ValueError with the reason why not."""
        if self.mode == "blend":
            if self.rising and self.authority == 1.0:
                self.mode = "live"
                return "mode is now 'live'"
            self.rising = True
            return "the policy's authority rises; promote again when it is 1"
        if self.mode == "live":
            raise ValueError("mode is 'live', the highest")
        after = MODES[MODES.index(self.mode) + 1]
        after = "live" if after == "blend" and self.fallback is None else after
        if after in ("blend", "live") and self.gate.state != State.IDLE:
            how = "reset it first" if self.gate.state == State.FAULT else "disarm before commands are sent"
            raise ValueError(f"the gate is {self.gate.state.name}; {how}")
        self.set_mode(after)
        return f"mode is now '{after}'"

    def demote(self) -> str:
        """Away from live. Unless the gate is IDLE, the controller takes over; then, nothing is sent any more."""
        if self.enabling is not None and not self.enabling.settled:
            raise ValueError("the actuators are being enabled; stop or disarm instead")
        if self.publishes and self.gate.state != State.IDLE and self.fallback is not None:
            self.mode, self.rising = "blend", False
            if self.gate.state == State.ACTIVE:
                return "the policy's authority falls to 0"
            self.authority = 0.0  # nothing moves: there is nothing to blend
            return f"mode is now 'blend', the policy's authority 0; the gate is {self.gate.state.name}"
        if self.publishes and self.gate.state != State.IDLE:
            raise ValueError("this robot has no classical controller to take over; stop or disarm instead")
        self.set_mode("dry_run")
        return "mode is now 'dry_run'"

    def step(
        self,
        now: int,
        samples: Samples,
        requests: Request = Request.NONE,
        operator_stamp: int = NEVER,
        intact: bool = True,
    ) -> Decision:
        """One control period: ``propose``, then ``decide``."""
        return self.decide(now, samples, self.propose(now, samples), requests, operator_stamp, intact)

    def propose(self, now: int, samples: Samples) -> Proposal:
        """Ask the policy. It may take for ever: nothing else of the session waits for it, or is changed by it."""
        if (successor := self.successor()) is not None:
            self.policies.replace(successor)
        if self.gate.state != State.ACTIVE:
            self.policies.reset()  # a take-over begins with the memory of the contract
        memory, start = self.policies.state[0], time.perf_counter()
        command, complaint = None, ""
        try:
            values, ages = {name: value for name, (value, _) in samples.items()}, self.reserve.ages(samples, now)
            command = self.config.flat_command(self.policies.step(values, ages))
        except SignalError as error:  # the gate finds most of it, too, and says it in its own code
            complaint = str(error)
        except Exception as error:  # whatever it is, a policy that fails is one without a command
            complaint = f"the policy failed: {error!r}"
        self.complaint = complaint
        return Proposal(command, memory, time.perf_counter() - start, self.policies.number)

    def decide(
        self,
        now: int,
        samples: Samples,
        proposal: Proposal | None,
        requests: Request = Request.NONE,
        operator_stamp: int = NEVER,
        intact: bool = True,
    ) -> Decision:
        """The gate's answer to what the policy proposes; None: it has not answered."""
        self.finish_step()
        values = {name: value for name, (value, _) in samples.items()}
        asked = requests
        doubt, requests = self._doubt(samples, values, asked)
        compares = self.mode in ("blend", "shadow")
        own = None if proposal is None else proposal.command
        other = self.reserve.proposal(values) if compares else None
        signals, stamps = self.reserve.flat_signals(samples, now)
        given = Inputs(
            time=now,
            signals=signals,
            stamps=stamps,
            command=self._blend(own, other),
            command_stamp=now,
            operator_stamp=operator_stamp,
            bundle_intact=intact,
        )
        enabling = self.enabling if self.publishes else None
        if enabling is not None:
            requests = enabling.filter(requests, self.gate.state, functools.partial(self.reserve.obstacle, given))
        given, output = self.reserve.step(dataclasses.replace(given, requests=requests), values)
        if enabling is not None:
            enabling.decided(requests, output.state)
            doubt = doubt or enabling.refusal
        self._unfinished = (output, values, own, other)
        send = output.command if self.publishes and output.source != Source.SILENT else None
        memory = self._memory if proposal is None else proposal.state
        self._memory = memory
        inference, number = (0.0, self.policies.number) if proposal is None else (proposal.inference, proposal.number)
        refusal = doubt if asked & ~requests & Request.ARM else enabling.refusal if enabling is not None else ""
        return Decision(now, given, output, send, own, memory, self.authority, inference, doubt, number, refusal)

    def _doubt(self, samples: Samples, values: Mapping[str, np.ndarray], requests: Request) -> tuple[str, Request]:
        """What the gate does not watch: it becomes a stop, or, before the robot is armed, a request not passed on."""
        jump = self.orientations.jump(samples)
        if jump and self.gate.state in (State.READY, State.ACTIVE):
            return jump, requests | Request.HALT
        if requests & Request.ARM and (strange := self.orientations.strange(values)):
            return strange, requests & ~Request.ARM
        return "", requests

    def _blend(self, own: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
        """(1 − authority) of the controller and authority of the policy."""
        if self.mode != "blend":
            return own
        if self.gate.state == State.ACTIVE:
            change = self.contract.control_period / self.blend_time
            self.authority = min(1.0, max(0.0, self.authority + (change if self.rising else -change)))
        if own is None or other is None:
            return None
        return (other + np.float32(self.authority) * (own - other)).astype(np.float32)

    def finish_step(self) -> None:
        """What need not be done before a step's command leaves: call it after that, else the next step does."""
        if self._unfinished is None:
            return
        (output, values, own, other), self._unfinished = self._unfinished, None
        self.reserve.finish(output, values)
        if self.mode in ("dry_run", "shadow"):
            self.envelope.note(values, own, other)

    @property
    def last_resort(self) -> np.ndarray | None:
        """(M,) what to send where not even the gate can be asked; None: nothing."""
        return self.reserve.last_resort if self.publishes else None

    def explain(self, problem: Problem) -> str:
        """A problem as one sentence."""
        return explain(self.config, problem)
