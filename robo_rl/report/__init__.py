"""Reports: one self-contained page about a policy, with plots, tables, pictures and a film.

``general`` reports on any task. A kind of robots that has more to tell has a module here under its name, or in a
package that tells it by the entry point ``robo_rl.reports``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points

from robo_rl.report import arm, car, legged, motor, multirotor
from robo_rl.report.findings import KindReport

KINDS: Mapping[str, KindReport] = {
    "arm": arm, "car": car, "legged": legged, "mobile_manipulator": arm, "motor": motor,
    "multirotor": multirotor,
}  # fmt: skip


def kind_report(kind: str) -> KindReport | None:
    """What is special to a kind of robots; None where nothing is known of it."""
    points = [point for point in entry_points(group="robo_rl.reports") if point.name == kind]
    return KINDS.get(kind) or (points[0].load() if points else None)
