"""Give every policy of the zoo the contract that its task has today: the same graph, weights and golden vectors.

    python -m robo_rl.commands.renew_zoo

For whoever changes a task's contract, such as how its robot is stopped. It notes the new digests.
"""

from __future__ import annotations

import json

from robo_rl.deploy.build.pack import repack
from robo_rl.deploy.build.verify import renewed, task_of
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.zoo import FOLDER, names


def main() -> None:
    """Write the files again where their contract is another one."""
    for name in names():
        file, about = FOLDER / f"{name}.onnx", FOLDER / f"{name}.json"
        contract = Bundle.read(file).contract
        now = renewed(contract, task_of(contract))
        if contract.text is None and contract == now:
            continue
        bundle = repack(file, now, file)
        told = json.loads(about.read_text()) | {"digest": bundle.digest}
        about.write_text(json.dumps(told, indent=2) + "\n")
        print(f"{file}: {bundle.digest}")


if __name__ == "__main__":
    main()
