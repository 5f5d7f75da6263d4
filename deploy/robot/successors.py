"""New weights for a policy that is at work: bundles that a learner puts into a folder, each checked before it is used.

    successors = Successors(folder, policy, say)
    if (successor := successors.take()) is not None: …      # between two steps

A thread looks for ``policy-000012.onnx`` with a higher number than the last one. A bundle must be whole, reproduce its
golden vectors on this computer, and have the contract of the policy that is at work, but for where it comes from. Any
other is refused in a sentence, and the policy at work goes on.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import BundleError
from robo_rl.deploy.robot.runtime import Policy

EVERY = 0.5
"""s between two looks."""


def files(folder: Path) -> list[Path]:
    """The bundles of a folder, the oldest first."""
    return sorted(path for path in folder.glob("policy-*.onnx") if path.stem.partition("-")[2].isdecimal())


def number_of(path: Path) -> int:
    """The number in a bundle's name."""
    return int(path.stem.partition("-")[2])


def require_same(first: Contract, other: Contract, name: str) -> None:
    """BundleError unless two contracts are the same, but for where their policies come from."""
    for field in dataclasses.fields(Contract):
        if field.name not in ("provenance", "text") and getattr(first, field.name) != getattr(other, field.name):
            raise BundleError(
                f"{name}: its contract has other {field.name} than that of the policy at work, "
                f"{str(getattr(other, field.name))[:200]}; expected the same"
            )


class Successors:
    """The newest good bundle of a folder."""

    def __init__(
        self, folder: Path, first: Policy, say: Callable[[str], None] = lambda sentence: None,
        trusted_keys: Path | None = None, native: bool = False,
    ) -> None:  # fmt: skip
        """``first``: the policy at work; ``say`` gets a sentence for each bundle that is taken or refused."""
        self.folder, self.refused = folder, 0
        """Bundles that were refused."""
        self._contract, self._digest, self._say = first.contract, first.bundle.digest, say
        self._trusted_keys, self._native = trusted_keys, native
        self._looked_at = -1
        self._found: deque[Policy] = deque(maxlen=1)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="successors", daemon=True)

    def start(self) -> None:
        """Look, again and again, in a thread."""
        self._thread.start()

    def take(self) -> Policy | None:
        """The newest checked policy, once."""
        try:
            return self._found.pop()
        except IndexError:
            return None

    def look(self) -> None:
        """Look once: at the newest bundle, if it was not looked at before."""
        newest = files(self.folder)[-1:]
        if not newest or number_of(newest[0]) <= self._looked_at:
            return
        path = newest[0]
        self._looked_at = number_of(path)
        try:
            policy = self._checked(path)
        except (ValueError, OSError) as error:  # all our refusals are ValueErrors
            self.refused += 1
            self._say(f"refused, the policy goes on: {error}")
            return
        if policy is not None:
            self._digest = policy.bundle.digest
            self._found.append(policy)

    def _checked(self, path: Path) -> Policy | None:
        """None for the policy that is at work."""
        rate = 1 / self._contract.control_period
        policy = Policy.load(path, rate, trusted_keys=self._trusted_keys, native=self._native)
        require_same(self._contract, policy.contract, str(path))
        return None if policy.bundle.digest == self._digest else policy

    def _run(self) -> None:
        while not self._closing.wait(EVERY):
            self.look()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
