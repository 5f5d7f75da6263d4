"""Reports: one self-contained page about a policy, with plots, tables, pictures and a film.

``general`` reports on any task. A kind of robots that has more to tell has a folder here under its name, or a module of
a package that tells it by the entry point ``robo_rl.reports``.
"""

from __future__ import annotations

from robo_rl.contract.kinds import of_kind
from robo_rl.report.findings import KindReport


def kind_report(kind: str) -> KindReport | None:
    """What is special to a kind of robots; None where nothing is known of it."""
    found: KindReport | None = of_kind(__name__, kind, "robo_rl.reports")
    return found
