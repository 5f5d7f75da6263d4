"""Write what a board needs beside the policy, if it reads its sensors itself: gate, held signals, link, and their loop.

    made = generate(bundle, "firmware")
    sources = made.sources + write_onboard(made)

``onboard.h`` (with the prefix of the policy) has the calls; ``device.py`` is for a board with signals over a wire.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from string import Template

from robo_rl.controllers.gate.config import GateConfig
from robo_rl.deploy.build.c.device import COPIED
from robo_rl.deploy.build.c.gate_header import gate_header
from robo_rl.deploy.build.c.generate import HERE, Generated, signal_names
from robo_rl.deploy.build.c.held_header import held_header
from robo_rl.deploy.build.c.hooks import hooks


def write_onboard(made: Generated) -> list[Path]:
    """Write the sources into the folder of a policy; the files to compile beside its own.

    ContractError for a contract that the gate can't watch, LinkError for signals that no frame of the link can hold.
    """
    contract, name = made.contract, made.name
    operator = GateConfig.from_contract(contract).operator_timeout
    texts = {
        "name": name,
        "guard": name.upper(),
        "stamps": "\n".join(f"    int64_t {member};" for member in signal_names(contract)),
        "operator": f"within {operator / 1e6:g} s" if operator else "this one does not",
        "signal_count": str(len(contract.signals)),
        "signal_size": str(sum(signal.size for signal in contract.signals)),
        "command_size": str(sum(command.size for command in contract.commands)),
        **hooks(name, made.learns),
    }
    headers = {"gate_config.h": gate_header(contract), "held_config.h": held_header(contract)}
    for file in COPIED:
        shutil.copyfile(HERE / file, made.folder / file)
    for file, text in headers.items():
        (made.folder / file).write_text(text)
    for ending in ("h", "c"):
        template = Template((HERE / "templates" / f"onboard.{ending}").read_text())
        (made.folder / f"{name}_onboard.{ending}").write_text(template.substitute(texts))
    return [made.folder / file for file in (*COPIED, f"{name}_onboard.c") if file.endswith(".c")]
