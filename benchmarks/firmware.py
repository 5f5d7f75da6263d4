"""Firmware: instructions, flash, RAM and error of two networks on an emulated Cortex-M4F, beside a peer.

Instructions are counted exactly (QEMU, -icount), the greatest count over eight inputs. The peer is emx-onnx-cgen
(PyPI), which writes plain C; it is left out where it isn't installed. Needs the Arm compiler and QEMU:

    apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
    pip install emx-onnx-cgen
    python benchmarks/firmware.py
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from firmware_networks import NETWORKS, write_network
from results import words, write

from robo_rl.deploy.build.c.generate import Generated, Options, generate
from robo_rl.deploy.build.firmware.build import build
from robo_rl.deploy.build.firmware.emulate import measure
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.robot.bundle import Bundle

TARGET = TARGETS["cortex-m4"]
PEER = "emx-onnx-cgen"
OURS = {
    "robo-rl, portable C": (Options(), ["-DPOLICY_PORTABLE"]),
    "robo-rl, FPU": (Options(), []),
    "robo-rl, int16": (Options(precision="int16", tolerance=0.1), []),
    "robo-rl, int8": (Options(precision="int8", tolerance=0.1), []),
}


def main() -> None:
    rows = [row for network in NETWORKS for row in _rows(network)]
    print(f"{TARGET.title}, QEMU {TARGET.machine}")
    print(f"{'network':<28}{'contender':<22}{'instructions':>13}{'flash':>9}{'RAM':>7}{'error':>10}")
    for row in rows:
        sizes, activation = NETWORKS[row["network"]]
        shape = f"{row['network']}  {'-'.join(map(str, sizes))} {activation.lower()}"
        figures = f"{row['instructions']:>13,}{row['flash_bytes']:>9,}{row['ram_bytes']:>7,}{row['error']:>10.1g}"
        print(f"{shape:<28}{row['contender']:<22}{figures}")
    write("firmware", {"target": TARGET.name, "rows": rows})


def _rows(network: str) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = write_network(network, folder / "network.onnx")
        for contender, (options, flags) in OURS.items():
            yield _row(network, contender, generate(bundle, folder / contender, options), flags)
        if shutil.which(PEER):
            # like the defaults of GCC, which let it multiply and add in one instruction
            yield _row(network, PEER, _peer(bundle, folder / "peer"), ["-ffp-contract=fast"])


def _row(network: str, contender: str, made: Generated, flags: list[str]) -> dict[str, Any]:
    images = build(made, TARGET, flags)
    found = measure(images.measure, TARGET)
    return {
        "network": network,
        "contender": contender,
        "instructions": max(found.instructions),
        "flash_bytes": images.policy.flash,
        "ram_bytes": images.policy.ram + found.stack_bytes,
        "error": found.self_test_error,
    }


def _peer(bundle: Bundle, folder: Path) -> Generated:
    """The peer's C inside our interface, so that both are measured by the same image."""
    made = generate(bundle, folder)
    model = onnx.load(str(bundle.path))
    graph = model.graph
    del graph.node[-1], graph.input[-1], graph.output[-1], model.metadata_props[:]
    for end in (*graph.input, *graph.output):
        end.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, str(folder / "network.onnx"))
    options = ["--model-name", "peer", "--large-temp-threshold", "0", "--large-weight-threshold", "0"]
    command = [PEER, "compile", *options, "network.onnx", "peer.c"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "peer.h").write_text("#pragma GCC system_header\n" + (folder / "peer.c").read_text())
    source = folder / "policy.c"
    head, _, tail = source.read_text().partition("policy_status policy_step(")
    call = "    (void)state;\n    (void)arena;\n"
    call += "    peer((const float(*)[])signals->signal, (float(*)[])commands->command);\n    return POLICY_OK;\n}\n"
    kept = '#include "peer.h"\n' + _without_weights(head)
    source.write_text(f"{kept}policy_status policy_step({tail[: tail.index('{') + 2]}{call}")
    return made


def _without_weights(head: str) -> str:
    """Our own constants and kernels, which the peer does not need, left out."""
    start, end = head.index('#include "linear.h"'), head.index("const policy_commands policy_lower")
    return head[:start] + head[end:]


if __name__ == "__main__":
    words(__doc__)
    main()
