"""Policies of the zoo in simulators that were made from their contracts alone, against their own evaluations.

The simulators are those of tests/contract_only: they import nothing of robo_rl, read the bundle with onnxruntime, and
know of the task what docs/bundle.md and the contract tell. Rooms and tracks are of their own kind, easier than those of
training; arms and robots on legs are moved by MuJoCo, arms begin at home, and robots walk on a plane, not pushed.

    python benchmarks/contract_only.py [EPISODES]        50 of each, 200 of multirotors
"""

from __future__ import annotations

import sys
from pathlib import Path

from results import words, write

from robo_rl.evaluate.proportion import wilson


def main() -> None:
    given = words(__doc__, 1)
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.contract_only.rebuilt import REBUILT, figure

    rows = {}
    for name, run in REBUILT.items():
        episodes = int(given[0]) if given else 200 if name.startswith("quadrotor") else 50
        success = run(episodes, seed=1)
        low, high = wilson(round(success * episodes), episodes)
        own = figure(name)
        rows[name] = {"episodes": episodes, "success": success, "low": low, "high": high, "own": own}
        span = f"{100 * low:.1f} to {100 * high:.1f}"
        print(f"{name:<28}{100 * success:6.1f} % of {episodes} ({span}); its own evaluation {100 * own:.1f} %")
    write("contract_only", {"rows": rows})


if __name__ == "__main__":
    main()
