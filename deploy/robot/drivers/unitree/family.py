"""The two families of Unitree's robots: the same topics, with messages of other layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from robo_rl.deploy.robot.drivers.unitree import humanoid_messages, messages
from robo_rl.deploy.robot.drivers.unitree.messages import LowCommand, LowState


@dataclass(frozen=True)
class Family:
    """How commands and states are written. ``name`` is that of the package of the maker's message types."""

    name: str
    encode_command: Callable[[LowCommand], bytes]
    decode_command: Callable[[bytes, int], LowCommand]
    encode_state: Callable[[LowState], bytes]
    decode_state: Callable[[bytes, int], LowState]
    tick_of: Callable[[bytes], int]


def _of(name: str, module: object) -> Family:
    parts = ("encode_command", "decode_command", "encode_state", "decode_state", "tick_of")
    return Family(name, *(getattr(module, part) for part in parts))


GO = _of("go", messages)
"""Go2, B2, H1."""
HG = _of("hg", humanoid_messages)
"""G1, H1-2."""


def family(name: str) -> Family:
    """Of that name, as it stands in a command line."""
    return {one.name: one for one in (GO, HG)}[name]
