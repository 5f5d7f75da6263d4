"""What a device that goes on learning tells over the link: how that goes, and the weights that it has learnt."""

from __future__ import annotations

import time
from collections.abc import Iterator

from robo_rl.deploy.robot.link import PIECE, LinkError
from robo_rl.deploy.robot.link.messages import Hello, Message, Pull, Weights
from robo_rl.deploy.robot.link.port import Link

PATIENCE = 2.0
"""s for an answer."""
TRIES = 5
"""Questions for a piece before the line counts as dead."""
MOST_BYTES = 1 << 20
"""Of a slot: more than any microcontroller's learner has."""
LOOK = 0.002  # s


def heard(link: Link, seconds: float) -> Iterator[Message]:
    """The messages that arrive within some seconds."""
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        yield from (message for _, message in link.receive(round(now * 1e6)))
        time.sleep(LOOK)


def greet(link: Link) -> Hello:
    """Say hello until the device answers. LinkError if it does not, or has another contract."""
    for _ in range(TRIES):
        link.hello(round(time.monotonic() * 1e6))
        for message in heard(link, PATIENCE / TRIES):
            if isinstance(message, Hello):
                return message
    raise LinkError(
        f"{link.port.name}: no hello within {PATIENCE:g} s; expected a device that is on, at this baud rate"
    )


def pulled(link: Link) -> bytes:
    """The slot with what a device has learnt, which must be at rest. LinkError if it isn't, or does not answer."""
    greet(link)
    slot, total = b"", MOST_BYTES
    while len(slot) < total:
        found = _piece(link, len(slot))
        if found.total == 0:
            raise LinkError(
                f"{link.port.name}: the policy is active; disarm it: weights are sent only while it is not active"
            )
        if found.total > MOST_BYTES:
            raise LinkError(f"{link.port.name}: a slot of {found.total} bytes; expected at most {MOST_BYTES}")
        total = found.total
        slot += found.piece[: min(PIECE, total - len(slot))]
    return slot


def _piece(link: Link, offset: int) -> Weights:
    for _ in range(TRIES):
        link.send(Pull(offset))
        for message in heard(link, PATIENCE / TRIES):
            if isinstance(message, Weights) and message.offset == offset:
                return message
    raise LinkError(
        f"{link.port.name}: no answer about learnt weights within {PATIENCE:g} s; expected firmware made with --learn"
    )
