"""How a contract's signals are held, as a C header for ``held.c``; and the sizes of samples on the link.

    Path("held_config.h").write_text(held_header(contract))

The header defines HELD_CONFIG, LINK_SAMPLE_SIZES for ``link_session_samples``, and how many signals and floats come
together on the link. Floats are written in hexadecimal, so no bit is lost.
"""

from __future__ import annotations

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.held import Holding
from robo_rl.deploy.robot.link import Layout, sample_sizes


def held_header(contract: Contract) -> str:
    """The text of held_config.h. LinkError for signals that no frame can hold."""
    layout, sizes = Layout.of(contract), sample_sizes(contract)
    return held_table(
        contract,
        "/* Floats of each signal that comes alone, as a sample; 0: one that comes with the others, or an age. */",
        f"static const uint16_t LINK_SAMPLE_SIZES[] = {{{', '.join(map(str, sizes))}}};",
        f"#define LINK_SAMPLE_LONGEST {max(sizes)} /* floats of the largest of them; 0: there are none */",
        "",
        "/* Signals that come together, at every step, and their floats. */",
        f"#define LINK_TOGETHER_COUNT {layout.signal_count}",
        f"#define LINK_TOGETHER_SIZE {layout.signal_size}",
        "",
    )


def held_table(contract: Contract, *more: str) -> str:
    """The text of a held_config.h for a program without the link; ``more``: its last lines."""
    names = [signal.name for signal in contract.signals]
    blanks, rows, offset = [], [], 0
    for i, (slot, signal) in enumerate(zip(Holding.from_contract(contract).slots, contract.signals, strict=True)):
        blank = "NULL"
        if slot.blank is not None:
            blank, values = f"HELD_BLANK_{i}", ", ".join(map(_float, slot.blank.ravel()))
            blanks.append(f"static const float {blank}[] = {{{values}}};")
        of = -1 if slot.age_of is None else names.index(slot.age_of)
        rows.append(
            f"    {{.timeout = {slot.timeout}, .blank = {blank}, .lower = {_float(slot.lower)}, .upper = "
            f"{_float(slot.upper)}, .offset = {offset}, .size = {signal.size}, .age_of = {of}}},"
        )
        offset += signal.size
    return "\n".join(
        [
            f"/* How signals of the contract {contract.digest} are held. Made by deploy.c.held_header; don't edit. */",
            "#ifndef ROBO_RL_HELD_CONFIG_H",
            "#define ROBO_RL_HELD_CONFIG_H",
            "",
            '#include "held.h"',
            "",
            *blanks,
            "static const held_signal HELD_SIGNALS[] = {",
            *rows,
            "};",
            "",
            f"static const held_config HELD_CONFIG = {{.signals = HELD_SIGNALS, .count = {len(names)}}};",
            "",
            *more,
            "#endif",
            "",
        ]
    )


def _float(x: np.float32) -> str:
    return f"{float(x).hex()}f"
