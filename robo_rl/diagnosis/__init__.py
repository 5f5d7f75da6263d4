"""Why a training does not learn: its metrics, and a look at its newest policy, turned into sentences.

``look`` measures what a policy does over some seconds, ``checks`` says what is conspicuous about it.
"""

from __future__ import annotations

from robo_rl.diagnosis.checks import Finding, diagnose
from robo_rl.diagnosis.look import Look, look

__all__ = ["Finding", "Look", "diagnose", "look"]
