"""Make files of another trainer for docs/bring-your-policy.md, and fill in what they do not say, as its reader does.

    python tests/walk/foreign.py TRAINER

They are in the current folder. Those of the trainers before are removed: YAML beside a policy is taken for its own.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "robo_rl"))
import test_adopt_leapp
import test_adopt_recording
import trainers
from adopted import CARD, PERIOD, STAND, TERMS

from robo_rl.commands.exporting import adopt

LEAPP = "Isaac-Velocity-Flat-Go2"
GO2 = {"robot": "go2", "rate": 50.0}


def mjlab() -> None:
    """The period of the clock is filled in."""
    trainers.mjlab("walk.onnx")
    shutil.copy("walk.onnx", "policy.onnx")
    for name in ("walk", "policy"):
        adopt.main(Path(f"{name}.onnx"), **GO2)
        trainers.fill(Path(f"{name}-adopted/policy.toml"), period=PERIOD)


def isaac_lab() -> None:
    """The order of joints, which is all that is missing, is in the command."""
    trainers.isaac_lab("logs/rsl_rl/go2/model_1000.pt")


def leapp() -> None:
    """The pose is filled in."""
    folder = Path("logs/rsl_rl/go2") / LEAPP
    folder.mkdir(parents=True)
    file = test_adopt_leapp.write(folder)[0].rename(folder / f"{LEAPP}.yaml")
    adopt.main(file, **GO2)
    trainers.fill(Path(f"{LEAPP}-adopted/policy.toml"), default=test_adopt_leapp.DEFAULT)


def unitree_rl_lab() -> None:
    """Nothing is missing."""
    trainers.unitree_rl_lab("exported/policy.onnx")


def unitree_rl_gym() -> None:
    """The order of joints, which is all that is missing, is in the command."""
    trainers.unitree_rl_gym("motion.pt", "go2.yaml")


def stable_baselines3() -> None:
    """The network is all that the file has, and the statistics of its observations are beside it."""
    _, env = trainers.stable_baselines3("ppo_walk.zip")
    env.save("vecnormalize.pkl")
    adopt.main(Path("ppo_walk.zip"), **GO2)
    values = {
        "joints": CARD,
        "default": [STAND[name] for name in CARD],
        "scale": 0.25,
        "stiffness": 35.0,
        "damping": 0.5,
    }
    trainers.fill(Path("ppo_walk-adopted/policy.toml"), TERMS, **values)


def lerobot() -> None:
    """What the numbers are, and the calibration, are filled in."""
    folder, _ = test_adopt_recording.recorded(Path(), use_degrees=False)
    folder.rename("so101-pick")
    adopt.main(Path("so101-pick"), robot="so101")
    test_adopt_recording.fill(Path("so101-pick-adopted/policy.toml"), units="percent", calibration="arm.json")
    Path("arm.json").rename("so101-pick-adopted/arm.json")


KINDS = (mjlab, isaac_lab, leapp, unitree_rl_lab, unitree_rl_gym, stable_baselines3, lerobot)

if __name__ == "__main__":
    for made in ("params", "logs", "exported"):
        shutil.rmtree(made, ignore_errors=True)
    {kind.__name__: kind for kind in KINDS}[sys.argv[1]]()
