"""Parity of the exported file: torch against onnxruntime in closed loop, and a robot's environment without torch.

Trains a policy, exports it, and compares at every one of 500,000 control steps (1,000 flights). Then makes a new
virtual environment with nothing but robo-rl's base install and runs the file there.

    python benchmarks/parity.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from results import last_json, words, write

ROOT = Path(__file__).parent.parent
ON_THE_ROBOT = """
import importlib.util, json, sys
from robo_rl.deploy.robot.runtime import Policy
policy = Policy.load(sys.argv[1], rate_hz=100)
golden = policy.bundle.golden
for k in range(len(golden)):
    policy.step({name: value[k] for name, value in golden.signals.items()})
absent = [name for name in ("torch", "mujoco", "onnx", "scipy") if importlib.util.find_spec(name) is None]
print(json.dumps({"golden_error": policy.bundle.golden_error(), "steps": len(golden), "absent": absent}))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = ["robo-rl", "train", "quadrotor-hover", "--runs", folder, "--episodes", "0", "--json"]
        trained = last_json(subprocess.run(run, capture_output=True, text=True, check=True))
        file = str(Path(folder, "policy.onnx"))
        subprocess.run(["robo-rl", "export", trained["run"], "--out", file], check=True, capture_output=True)
        run = ["robo-rl", "verify", file, "--json"]
        verified = last_json(subprocess.run(run, capture_output=True, text=True, check=True))
        print(f"torch - onnxruntime: {verified['max_abs_error']:.2g} over {verified['steps']:,} closed-loop steps")
        robot = Path(folder, "robot")
        venv.create(robot, with_pip=True)
        python = str(robot / "bin" / "python")
        constraints = str(ROOT / "constraints.txt")
        subprocess.run([python, "-m", "pip", "install", "-q", "-c", constraints, str(ROOT)], check=True)
        ran = last_json(subprocess.run([python, "-c", ON_THE_ROBOT, file], capture_output=True, text=True, check=True))
        print(f"base install, without {', '.join(ran['absent'])}: golden error {ran['golden_error']:.2g}")
    keys = ("passed", "max_abs_error", "steps", "golden_error", "success")
    write("parity", {**{key: verified[key] for key in keys}, "base_install": ran})


if __name__ == "__main__":
    words(__doc__)
    sys.exit(main())
