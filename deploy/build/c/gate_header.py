"""The gate's configuration of a contract as a C header, for ``gate.c``.

    Path("gate_config.h").write_text(gate_header(contract))

The header defines GATE_CONFIG, the sizes of the arrays that a gate needs (GATE_SIGNAL_SIZE, …), and
GATE_CONTRACT_DIGEST, which the link compares. Floats are written in hexadecimal, so no bit is lost.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from robo_rl.contract import Contract, ContractError
from robo_rl.controllers.gate.codes import REACTIONS
from robo_rl.controllers.gate.config import Ahead, Bounds, GateConfig

MOST = (1 << 15) - 1
"""Signals, commands and their elements are counted in 16 bits with a sign."""


def gate_header(contract: Contract) -> str:
    """The text of gate_config.h. ContractError for a contract that can't be watched."""
    config = GateConfig.from_contract(contract)
    sizes = {
        "GATE_SIGNAL_COUNT": len(config.signals),
        "GATE_SIGNAL_SIZE": len(config.signal_lower),
        "GATE_COMMAND_COUNT": len(config.commands),
        "GATE_COMMAND_SIZE": len(config.safe),
        "GATE_BOUNDS_COUNT": len(config.envelope),
    }
    for name, size in sizes.items():
        if size > MOST:
            raise ContractError(f"{name} is {size}; expected at most {MOST}")
    return "\n".join(
        [
            f"/* The gate of the contract {contract.digest}. Made by deploy.c.gate_header; don't edit. */",
            "#ifndef ROBO_RL_GATE_CONFIG_H",
            "#define ROBO_RL_GATE_CONFIG_H",
            "",
            "#include <math.h>",
            "",
            '#include "gate.h"',
            "",
            *(f"#define {name} {size}" for name, size in sizes.items()),
            f"#define GATE_RELEASES {released(contract):d} /* 1: a stop disables the actuators */",
            "",
            _array("uint8_t", "GATE_CONTRACT_DIGEST", (f"0x{byte:02x}" for byte in bytes.fromhex(contract.digest))),
            "static const gate_watch GATE_SIGNALS[] = {",
            *(
                f"    {{.timeout = {w.timeout}, .offset = {w.offset}, .size = {w.size}, .optional = {w.optional:d}, "
                f".sensor = {w.sensor:d}, .quaternion = {w.quaternion:d}, .upright = {w.upright:d}, "
                f".noisy = {w.noisy:d}}},"
                for w in config.signals
            ),
            "};",
            _array("uint16_t", "GATE_COMMAND_OFFSET", (str(span.offset) for span in config.commands)),
            _array("int16_t", "GATE_FEEDBACK", map(str, config.feedback)),
            _array("int16_t", "GATE_FEEDBACK_SIGNAL", map(str, config.feedback_signal)),
            _array("uint8_t", "GATE_STOP", map(str, config.stop)),
            *(_array("float", f"GATE_{name.upper()}", map(_float, getattr(config, name))) for name in FLOATS),
            *_bounds(config.envelope),
            *_ahead(config.ahead),
            "",
            "static const gate_config GATE_CONFIG = {",
            *(f"    .{name} = {getattr(config, name)}," for name in TIMES),
            *(f"    .{name} = {_float(getattr(config, name))}," for name in ("norm_low", "norm_high", "tilt")),
            "    .signal_count = GATE_SIGNAL_COUNT,",
            "    .command_count = GATE_COMMAND_COUNT,",
            "    .command_size = GATE_COMMAND_SIZE,",
            "    .bounds_count = GATE_BOUNDS_COUNT,",
            f"    .reaction = GATE_SOURCE_{REACTIONS[config.on_fault].name},",
            f"    .stopped = GATE_SOURCE_{config.stopped.name},",
            "    .signals = GATE_SIGNALS,",
            f"    .bounds = {'GATE_BOUNDS' if config.envelope else 'NULL'},",
            f"    .ahead = {'NULL' if config.ahead is None else '&GATE_AHEAD'},",
            "    .command_offset = GATE_COMMAND_OFFSET,",
            *(f"    .{name} = GATE_{name.upper()}," for name in POINTERS),
            "};",
            "",
            "#endif",
            "",
        ]
    )


def released(contract: Contract) -> bool:
    """Whether a stop has to disable the actuators: of a motor whose command is a voltage or a duty, 0 is no rest.

    It is a zero vector, which shorts the windings, and the back-EMF of a shaft that turns drives a current through
    them.
    """
    voltages = [command.unit in ("V", "1") and command.stop == "off" for command in contract.commands]
    return contract.robot.kind == "motor" and all(voltages)


TIMES = ("period", "slack", "late_limit", "timeout", "operator_timeout")
FLOATS = (
    "signal_lower", "signal_upper", "command_lower", "command_upper", "safe", "start", "rate_step", "slow_step",
    "reach",
)  # fmt: skip
POINTERS = (*FLOATS[:4], "stop", *FLOATS[4:], "feedback", "feedback_signal")
"""In the order of the structure's members, as C++ wants them."""


def _float(x: np.float32) -> str:
    if np.isnan(x):
        return "NAN"
    return f"{float(x).hex()}f" if np.isfinite(x) else "-INFINITY" if x < 0 else "INFINITY"


def _bounds(envelope: Iterable[Bounds]) -> list[str]:
    """The tables of the envelope; C has no empty arrays."""
    lines, rows = [], []
    for i, bounds in enumerate(envelope):
        lines += [_array("float", f"GATE_BOUNDS_{end.upper()}_{i}", map(_float, getattr(bounds, end))) for end in ENDS]
        rows.append(
            f"    {{.signal = {bounds.signal}, .square = {_float(bounds.square)}, .lower = GATE_BOUNDS_LOWER_{i}, "
            f".upper = GATE_BOUNDS_UPPER_{i}}},"
        )
    return [*lines, "static const gate_bounds GATE_BOUNDS[] = {", *rows, "};"] if rows else []


ENDS = ("lower", "upper")


def _ahead(ahead: Ahead | None) -> list[str]:
    """The table of the way ahead, where it is watched."""
    if ahead is None:
        return []
    numbers = ", ".join(f".{name} = {getattr(ahead, name)}" for name in ("scan", "speed", "yaw_rate"))
    limits = ", ".join(f".{name} = {_float(getattr(ahead, name))}" for name in ("time", "half_width", "front"))
    return [
        *(_array("float", f"GATE_AHEAD_{name.upper()}", map(_float, getattr(ahead, name))) for name in BEAMS),
        f"static const gate_ahead GATE_AHEAD = {{{numbers}, {limits}, "
        ".cosine = GATE_AHEAD_COSINE, .sine = GATE_AHEAD_SINE};",
    ]


BEAMS = ("cosine", "sine")


def _array(kind: str, name: str, values: Iterable[str]) -> str:
    return f"static const {kind} {name}[] = {{{', '.join(values)}}};"
