"""What a planar lidar measures of the vehicles around: exact ranges to their rectangles, in native code (scan.cpp)."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.accelerate.fuse.native import build
from robo_rl.sim.scenes.lanes import FEW, VEHICLE
from robo_rl.sim.scenes.tracks import Lidar


def scan(lidar: Lidar, places: Tensor, vehicles: np.ndarray) -> Tensor:
    """(m, beams) m, of sensors at ``places`` (m, 3) among ``vehicles`` (m, k, 3): x, y (m), heading (rad).

    A vehicle whose x is NaN is not there; where nothing is met, the range is the lidar's greatest.
    """
    places, vehicles = places.contiguous(), np.ascontiguousarray(vehicles, np.float32)
    m, k, _ = vehicles.shape
    out = torch.empty(m, lidar.beams)
    threads = max(1, min(torch.get_num_threads(), m // FEW))
    sensors, boxes, ranges = (ctypes.c_void_p(x) for x in (places.data_ptr(), vehicles.ctypes.data, out.data_ptr()))
    _library().scan(m, k, sensors, boxes, *VEHICLE, ctypes.byref(lidar), ranges, threads)
    return out


@functools.cache
def _library() -> Any:
    library = build(Path(__file__).with_name("scan.cpp").read_text(), "-O3")
    pointer, number = ctypes.c_void_p, ctypes.c_float
    library.scan.argtypes = [ctypes.c_int64, ctypes.c_int, *[pointer] * 2, *[number] * 2, *[pointer] * 2, ctypes.c_int]
    return library
