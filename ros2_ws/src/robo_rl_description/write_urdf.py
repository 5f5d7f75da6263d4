"""Write the URDF of the robots that come with robo-rl, from their cards: python write_urdf.py"""

from __future__ import annotations

from pathlib import Path

from robo_rl.sim.robots import load_robot, robot_names

FOLDER = Path(__file__).parent / "urdf"


def main() -> None:
    """Write one file per robot."""
    for name in robot_names():
        (FOLDER / f"{name}.urdf").write_text(load_robot(name).urdf())


if __name__ == "__main__":
    main()
