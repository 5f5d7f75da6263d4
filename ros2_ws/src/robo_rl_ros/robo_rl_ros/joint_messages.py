"""Joints that come in one JointState or in several: an arm's and its gripper's, or two arms'. Nothing of ROS here."""

from __future__ import annotations

from typing import Any

import numpy as np

from robo_rl.ros.frames import View
from robo_rl.ros.reading import Channel, read
from robo_rl.ros.wiring import Wire

JOINT_STATE = "sensor_msgs/msg/JointState"


class JointCollector:
    """The elements of one signal, collected by name until all of them have come anew."""

    def __init__(self, wire: Wire, channel: Channel, view: View) -> None:
        self.wire, self.channel, self.view = wire, channel, view
        self._found: dict[str, tuple[float, int]] = {}
        """Values and stamps of the elements that have come since the last sample."""

    def read(self, message: Any, stamp: int) -> tuple[np.ndarray, int] | None:
        """(values (k,), the oldest of their stamps), or None as long as elements are missing.

        ``stamp`` is the message's, of any clock and unit. MessageError where names and values do not fit.
        """
        wanted = self.channel.elements
        present = [name for name in wanted if name in message.name]
        if len(present) == len(wanted):
            self._found.clear()
            return read(self.wire.kind, self.wire.field, message, self.channel, self.view), stamp
        if not present:
            return None
        values = getattr(message, self.wire.field)
        if len(values) != len(message.name) or len(set(message.name)) != len(message.name):
            read(self.wire.kind, self.wire.field, message, self.channel, self.view)  # says what is wrong
        self._found |= {name: (values[list(message.name).index(name)], stamp) for name in present}
        if len(self._found) < len(wanted):
            return None
        found, self._found = self._found, {}
        return np.array([found[name][0] for name in wanted], np.float32), min(stamp for _, stamp in found.values())

    def lacking(self, message: Any) -> str:
        """Which elements have not come, neither in this message nor in one before."""
        missing = [name for name in self.channel.elements if name not in message.name and name not in self._found]
        return f"'{self.channel.name}': no element {missing} in the message; it has {list(message.name)[:20]}"
