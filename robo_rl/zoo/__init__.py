"""Trained policies that come with robo-rl. ``zoo:quadrotor-hover`` stands for a bundle's path wherever one is taken.

Beside each bundle is a .json with the commands that trained it and what ``robo-rl evaluate`` gave for it then.
``make reports`` writes a page for each, with plots, tables and a film.
"""

from __future__ import annotations

from pathlib import Path

from robo_rl.files.suggestions import expected_one_of

FOLDER = Path(__file__).parent
PREFIX = "zoo:"
ENDLESS = (
    "g1-walk", "go2-flat", "go2-recover", "go2-rough", "quadrotor-hover", "quadrotor-rates",
    "quadrotor-rates-crazyflie", "quadrotor-track",
)  # fmt: skip
"""Policies of tasks that know no success, so that their rate is that of episodes without failure: known here, since
tasks are made of torch, whose import takes a second."""


def names() -> list[str]:
    """All policies of the zoo."""
    return sorted(path.stem for path in FOLDER.glob("*.onnx"))


def located(target: str | Path) -> Path:
    """The path of a bundle: that of the zoo's policy for ``zoo:NAME``, else the target itself."""
    text = str(target)
    if not text.startswith(PREFIX):
        return Path(target)
    name = text.removeprefix(PREFIX)
    if name not in names():
        raise ValueError(f"'{name}' is not one of the zoo's policies{expected_one_of(name, names())}")
    return FOLDER / f"{name}.onnx"
