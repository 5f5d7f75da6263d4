"""Who receives the commands: topics without a subscriber, subscribers of another type, and commands without effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.node import Node

from robo_rl.ros.effects import EffectMonitor


class Receivers:
    """The other end of a node's command topics."""

    def __init__(self, node: Node, publishers: Sequence[Any], effects: EffectMonitor) -> None:
        self._node, self._publishers, self._effects = node, publishers, effects
        self._logged: list[str] = []

    def look(self, commanding: bool) -> list[str]:
        """What is wrong at present, as sentences; new ones are logged. ``commanding``: the policy is in control, and
        the robot hears it by topics alone.
        """
        found = self._effects.complaints()
        for publisher in self._publishers:
            topic, kind = publisher.topic_name, _name(publisher.msg_type)
            others = self._node.get_subscriptions_info_by_topic(topic)
            found += [
                f"'{one.node_name}' subscribes to '{topic}' as {one.topic_type}; this node sends {kind}, which never "
                "arrives there: choose the other type"
                for one in others
                if one.topic_type != kind
            ]
            if commanding and not others:
                found.append(f"nobody subscribes to '{topic}': no command arrives")
        for sentence in found:
            if sentence.partition(":")[0] not in self._logged:
                self._node.get_logger().error(sentence)
        self._logged = [sentence.partition(":")[0] for sentence in found]
        return found


def _name(kind: Any) -> str:
    """package/msg/Name of a message's class."""
    package, group, _ = kind.__module__.split(".", 2)
    return f"{package}/{group}/{kind.__name__}"
