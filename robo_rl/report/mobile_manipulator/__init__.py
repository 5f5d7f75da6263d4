"""What reports on arms on mobile bases have of their own: what those on arms have."""

from __future__ import annotations

from robo_rl.report.arm import HINTS, sections

__all__ = ["HINTS", "sections"]
