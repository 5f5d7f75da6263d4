"""The robot's side of learning while it runs: steps go to a learner, and its newest policies come back.

Both are files in one folder (``robo_rl.deploy.robot.logs.step_log``, ``robo_rl.deploy.robot.successors``), so either
side may end, be killed, or be on
another computer that shares the folder; the robot never waits. Only what the policy or the operator did is learnt from:
steps in which the gate was active and sent their command. Where a policy explores, this side draws the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Source, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, Output
from robo_rl.deploy.robot.logs.step_log import Flag, StepWriter
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.successors import Successors

INTERVENTION = "intervention"
"""The operator's signal: its first element is above 0.5 while they have the robot, the others are their action."""
EXPLORATION, MOST_NOISE = "exploration", 3.0
"""The signal of a policy that explores: standard normal noise, cut there."""


def quiet(contract: Contract) -> dict[str, np.ndarray]:
    """The noise of a policy that explores, as a signal, before its first step; none of any other policy."""
    return {s.name: np.zeros(s.size, np.float32) for s in contract.signals if s.name == EXPLORATION}


class Actor:
    """One robot's."""

    def __init__(
        self, folder: Path, policy: Policy, config: GateConfig, say: Callable[[str], None],
        on_failure: Callable[[str], None], trusted_keys: Path | None = None, native: bool = False,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        """``say`` gets a sentence for each new policy, ``on_failure`` one, once, when steps can't be written.

        ``seed``: of the noise; None: another one each time.
        """
        names = [span.name for span in config.signals]
        if INTERVENTION not in names:
            raise ValueError(
                f"{policy.bundle.path}: it reads no signal '{INTERVENTION}'; expected a policy that an operator can "
                "take over from, as 'robo-rl learn' writes it"
            )
        self._engaged = config.signals[names.index(INTERVENTION)].offset
        self._say, self._digest = say, policy.bundle.digest
        self.outcome = Flag.NONE
        """How the episode under way ends, if somebody has said so: SUCCEEDED or FAILED."""
        self.writer = StepWriter(folder, policy.contract, on_failure)
        self.successors = Successors(folder, policy, say, trusted_keys, native)
        self._number, self._open = 0, False
        sizes = {span.name: span.size for span in config.signals}
        self._noise, self._random = sizes.get(EXPLORATION), np.random.default_rng(seed)

    def exploration(self) -> dict[str, np.ndarray]:
        """The noise for the next step, as a signal; none where the policy does not explore."""
        if self._noise is None:
            return {}
        return {EXPLORATION: self._random.standard_normal(self._noise).clip(-MOST_NOISE, MOST_NOISE).astype(np.float32)}

    def start(self) -> None:
        """Look for new policies."""
        self.successors.start()

    def successor(self) -> Policy | None:
        """The policy that is to go on, once; None: there is no new one."""
        found = self.successors.take()
        if found is not None:
            self._digest = found.bundle.digest
            self._say(f"{found.bundle.path.name} goes on, digest {found.bundle.digest[:12]}")
        return found

    def note(self, given: Inputs, output: Output, memory: np.ndarray, sent: bool = True) -> None:
        """After each step of the gate. ``memory`` (S,) is the policy's before it; ``sent``: commands may leave."""
        if output.state == State.ACTIVE and output.source == Source.POLICY and sent and given.command is not None:
            flags = Flag.OPERATOR if given.signals[self._engaged] > 0.5 else Flag.NONE
            if not np.array_equal(output.command, given.command):
                flags |= Flag.LIMITED
            self._add(given.time, flags, given.signals, memory, output.command)
            self._open = True
        elif self._open:
            self.end(given.time, given.signals, memory, self.outcome)

    def end(self, time: int, signals: np.ndarray, memory: np.ndarray, outcome: Flag) -> None:
        """The episode is over: signals (N,) and memory (S,) after its last step."""
        if self._open:
            self._add(time, Flag.LAST | outcome, signals, memory)
        self._open, self.outcome = False, Flag.NONE

    def _add(
        self, time: int, flags: Flag, signals: np.ndarray, memory: np.ndarray, command: np.ndarray | None = None
    ) -> None:
        self._number += 1
        self.writer.add(self._number, time, flags, self._digest, signals, memory, command)

    def close(self) -> None:
        """End both."""
        self.successors.close()
        self.writer.close()
