"""The controller's side of RTDE, for one connection to an emulated arm."""

from __future__ import annotations

import math
import struct

from robo_rl.deploy.emulate.ur import FIELDS, INPUTS, TICK, Arm
from robo_rl.deploy.robot.drivers.rtde import messages as m

RELEASE = (5, 12, 0, 0)
"""Of URControl."""


class Controller:
    """One program's connection."""

    def __init__(self, arm: Arm) -> None:
        self.arm, self.started, self.every = arm, False, 1
        self._packages, self._ticks = m.Packages(), 0
        self.recipe: m.Recipe | None = None
        self.inputs: dict[int, m.Recipe] = {}

    def receive(self, data: bytes) -> bytes:
        """What is answered. ValueError for bytes that are not RTDE: the controller closes the connection then."""
        return b"".join(self._answer(kind, payload) for kind, payload in self._packages.feed(data))

    def tell(self) -> bytes:
        """What is sent in this tick."""
        self._ticks += 1
        if not self.started or self.recipe is None or self._ticks % self.every:
            return b""
        return m.package(m.DATA, self.recipe.encode(self.arm.values()))

    def close(self) -> None:
        """Others may write its registers now; they keep their values."""
        self.started = False
        self.arm.owners = {name: owner for name, owner in self.arm.owners.items() if owner is not self}

    def _answer(self, kind: bytes, payload: bytes) -> bytes:
        if kind == m.PROTOCOL:
            return m.package(kind, bytes([payload == struct.pack(">H", m.VERSION)]))
        if kind == m.CONTROLLER:
            return m.package(kind, struct.pack(">4I", *RELEASE))
        if kind == m.OUTPUTS and len(payload) > 8:
            return self._agree_outputs(struct.unpack_from(">d", payload)[0], _names(payload[8:]))
        if kind == m.INPUTS:
            return self._agree_inputs(_names(payload))
        if kind in (m.START, m.PAUSE):
            self.started = kind == m.START and self.recipe is not None
            return m.package(kind, bytes([self.started or kind == m.PAUSE]))
        if kind == m.DATA and self.started:
            self._write(payload)
            return b""
        raise ValueError(f"a package of the type {kind!r}")

    def _agree_outputs(self, rate: float, names: list[str]) -> bytes:
        types = [FIELDS.get(name, m.MISSING) for name in names]
        if not math.isfinite(rate) or not 1.0 <= rate <= 1 / TICK or m.MISSING in types:
            self.recipe = None
            return m.package(m.OUTPUTS, b"\0" + ",".join(types).encode())
        self.recipe, self.every = m.Recipe(1, names, types), round(1 / TICK / rate)
        return m.package(m.OUTPUTS, b"\1" + ",".join(types).encode())

    def _agree_inputs(self, names: list[str]) -> bytes:
        owners = self.arm.owners
        types = [
            m.TAKEN if owners.get(name, self) is not self else INPUTS.get(name, m.MISSING) for name in names
        ]  # fmt: skip
        number = 0
        if m.MISSING not in types and m.TAKEN not in types:
            number = len(self.inputs) + 1
            self.inputs[number] = m.Recipe(number, names, types)
            owners.update(dict.fromkeys(names, self))
        return m.package(m.INPUTS, bytes([number]) + ",".join(types).encode())

    def _write(self, payload: bytes) -> None:
        recipe = self.inputs.get(payload[0]) if payload else None
        if recipe is None:
            raise ValueError("data of no recipe")
        self.arm.inputs |= recipe.decode(payload)


def _names(payload: bytes) -> list[str]:
    return payload.decode("ascii", "replace").rstrip(",").split(",")  # ur-rtde ends its list with a comma
