"""onnxruntime on another trainer's ONNX file: opened and run once in a process of its own, before it is in this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime

from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.files.escaping import printable

KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
"""Types of inputs that can be adopted."""


def open_session(data: bytes) -> Any:
    """onnxruntime with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def zeros(session: Any, first: int = 0) -> dict[str, np.ndarray]:
    """For a session's inputs from the one at ``first`` on; a dimension of any size is 1. ValueError for other types."""
    inputs = session.get_inputs()[first:]
    for one in inputs:
        if one.type not in KINDS:
            raise ValueError(f"its input {printable(one.name)[:100]!r} is a {one.type}; expected one of {list(KINDS)}")
    return {
        one.name: np.zeros([size if isinstance(size, int) else 1 for size in one.shape], KINDS[one.type])
        for one in inputs
    }


def trial(data: bytes) -> bytes:
    """Open a file and, if it tells all sizes but the first, run it on zeros: what a process that is confined does."""
    session = open_session(data)
    given = zeros(session)
    if all(isinstance(size, int) for one in session.get_inputs() for size in one.shape[1:]):
        session.run(None, given)
    return b""


def ask(session: Any, outputs: Sequence[str], given: Mapping[str, np.ndarray]) -> list[Any]:
    """What a session answers; AdoptionError where it does not."""
    try:
        return session.run(outputs, given)
    except Exception as error:  # onnxruntime's errors share no type below Exception
        raise AdoptionError(f"onnxruntime can't run the policy: {printable(str(error))[:300]}") from None
