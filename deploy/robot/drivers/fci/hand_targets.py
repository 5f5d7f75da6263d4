"""When a target of a servo's kind becomes a command of the Franka hand, which does one at a time, all the way.

A target that closes the fingers further than they are is a grasp with a force, of whatever is between them; one that
opens them is a move. No command is given for a target

- that differs by less than 2 mm from the last one;
- that has differed for less than 50 ms: a policy's first step, before its memory knows anything, may ask for another
  one, and a command can't be taken back;
- at which the fingers are, where nothing was sent yet or the hand holds with force: so arming never moves it;
- that would close a grasp that holds already.
"""

from __future__ import annotations

from enum import Enum

SAME = 0.002
"""m of a finger by which targets differ that are taken to be the same."""
LASTING = 0.05
"""s."""


class Action(Enum):
    """A command of the hand."""

    GRASP = "grasp"
    MOVE = "move"


class HandTargets:
    """See the module's text. Openings are m of a finger."""

    def __init__(self) -> None:
        self._told: float | None = None
        """The last target that was sent, or that asked for nothing new."""
        self._closing = False
        self._since: float | None = None
        """s, since when the target differs."""

    def decide(self, now: float, wanted: float | None, here: float, busy: bool) -> Action | None:
        """What to send at ``now`` (s) for a target, with the fingers at ``here``; ``busy``: a command is under way."""
        if wanted is None or (self._told is not None and abs(wanted - self._told) < SAME):
            self._since = None
            return None
        if self._since is None:
            self._since = now
        if busy or now - self._since < LASTING:
            return None
        self._since = None
        told, closed = self._told, self._closing
        if abs(wanted - here) < SAME and (told is None or closed):
            self._told = wanted
            return None
        self._told, self._closing = wanted, wanted < here
        holds = self._closing and closed and told is not None and max(wanted, told) < here - SAME
        if holds:
            return None
        return Action.GRASP if self._closing else Action.MOVE
