"""From a task to a trained policy. Imports nothing heavy, so that a robot without torch can import the contract."""

import os
from typing import TYPE_CHECKING, Any

from robo_rl import former_names

if TYPE_CHECKING:
    from robo_rl.adapters.modules import export as export

former_names.install()

if "OMP_WAIT_POLICY" not in os.environ:  # read once, when torch loads OpenMP
    # By GCC's default threads that wait for others spin for milliseconds. Where another program has a core, they spin
    # on the one that those others need. So many turns are some microseconds; then they sleep.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def __getattr__(name: str) -> Any:
    """``robo_rl.export``, which needs torch, when it is asked for: what a robot's computer imports does not."""
    if name == "export":
        from robo_rl.adapters.modules import export

        return export
    raise AttributeError(f"module 'robo_rl' has no attribute '{name}'")
