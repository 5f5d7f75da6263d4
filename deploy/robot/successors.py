"""New weights for a policy that is at work: bundles that a learner puts into a folder, each checked before it is used.

    successors = Successors(folder, policy, say)
    if (successor := successors.take()) is not None: …      # between two steps

A thread looks for files ``policy-000012.onnx`` that are new, or were changed since it looked last. Of those that are
good it takes the one of the highest number: whatever numbers are there, a new bundle is found. A bundle must be whole,
reproduce its golden vectors on this computer, and have the contract of the policy that is at work, but for where it
comes from. Any other is refused in a sentence, and the policy at work goes on. Learners write a bundle aside and rename
it.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import BundleError
from robo_rl.deploy.robot.runtime import Policy

EVERY = 0.5
"""s between two looks."""


NAME = re.compile(r"policy-([0-9]{1,9})\.onnx")


def files(folder: Path) -> list[Path]:
    """The bundles of a folder by their numbers, of at most nine digits. What is no file of its own is left out."""
    return sorted((path for path in folder.glob("policy-*.onnx") if _is_bundle(path)), key=number_of)


def _is_bundle(path: Path) -> bool:
    return NAME.fullmatch(path.name) is not None and path.is_file() and not path.is_symlink()


def number_of(path: Path) -> int:
    """The number in a bundle's name."""
    return int(path.stem.partition("-")[2])


def next_file(folder: Path, last: Path) -> Path:
    """A free name for the bundle after ``last``, whatever other numbers there are."""
    taken = {path.name for path in folder.glob("policy-*")}
    numbers = itertools.chain(range(number_of(last) + 1, 10**9), itertools.count(1))
    return folder / next(name for number in numbers if (name := f"policy-{number:06d}.onnx") not in taken)


def _identity(path: Path) -> tuple[str, int, int, int]:
    """What is another one when a file was replaced or written to."""
    found = path.stat()
    return path.name, found.st_ino, found.st_size, found.st_mtime_ns


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
        self._looked_at: set[tuple[str, int, int, int]] = set()
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
        """Look once: at the bundles that were not looked at before, until one is good."""
        before, self._looked_at = self._looked_at, set()
        found = False
        for path in reversed(files(self.folder)):
            try:
                identity = _identity(path)
                self._looked_at.add(identity)
                if found or identity in before:
                    continue
                policy = self._checked(path)
            except (ValueError, OSError) as error:  # all our refusals are ValueErrors
                self.refused += 1
                self._say(f"refused, the policy goes on: {error}")
                continue
            found = True
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
