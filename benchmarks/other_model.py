"""A walking policy of the zoo in another model of its robot, in a simulator that was made from the contract alone.

    pip download --no-deps mjlab==1.6.0 && unzip mjlab-*.whl
    python benchmarks/other_model.py g1-walk mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml [EPISODES]

The model (MJCF) gives bodies, inertias, axes, and the shapes that touch the ground; joints that the policy does not
command are fixed as the model has them. All else is the contract's, drawn as it says (tests/contract_only/walking.py):
motors, armature, friction, payload, sensors, commands that jump every 5 s. Nothing pushes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import mujoco
from results import words, write

from robo_rl.evaluate.proportion import wilson
from robo_rl.zoo import located


def main() -> None:
    given = words(__doc__, 3)
    if len(given) < 2:
        sys.exit("other_model.py: expected the name of a policy of the zoo, and the file of a model")
    name, model, *count = given
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.contract_only import walking
    from tests.contract_only.interface import Policy

    file, episodes = located(f"zoo:{name}"), int(count[0]) if count else 100
    driven = set(Policy(file, 1).facts["joints"]["names"])
    with tempfile.TemporaryDirectory() as folder:
        rewritten = Path(folder) / "model.xml"
        rewritten.write_text(with_joints(Path(model), driven))
        success = walking.success(file, rewritten, episodes, seed=1)
    low, high = wilson(round(success * episodes), episodes)
    print(f"{name} in {Path(model).name}: {100 * success:.1f} % of {episodes} do not fall ({low:.3f} to {high:.3f})")
    write(f"other_model_{name}", {"episodes": episodes, "success": success, "low": low, "high": high})


def with_joints(model: Path, driven: set[str]) -> str:
    """The model with the joints of a policy and of its base alone, and with shapes that touch something."""
    spec = mujoco.MjSpec.from_file(str(model))
    free = mujoco.mjtJoint.mjJNT_FREE
    parts = [joint for joint in spec.joints if joint.name not in driven and joint.type != free]
    parts += [shape for shape in spec.geoms if not (shape.contype or shape.conaffinity)]
    parts += [*spec.sensors, *spec.actuators, *spec.keys, *spec.pairs, *spec.excludes, *spec.meshes]
    for part in parts:
        spec.delete(part)
    spec.compile()
    return spec.to_xml()


if __name__ == "__main__":
    main()
