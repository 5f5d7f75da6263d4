"""A simulator of multirotors by others, to compare speeds with: rl_tools' l2f."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

L2F_VEHICLES = 8192  # the largest batch that l2f has


def l2f_stepper() -> tuple[int, Callable[[], None]] | None:
    """rl_tools' l2f simulator (C++, PyPI) if it is installed: ``vector8192.step``, parameters drawn per vehicle."""
    try:
        import l2f
        from l2f import vector8192 as vector
    except ImportError:
        return None
    device = l2f.Device()
    rng, environment, parameters = vector.VectorRng(), vector.VectorEnvironment(), vector.VectorParameters()
    state, following = vector.VectorState(), vector.VectorState()
    vector.initialize_rng(device, rng, 0)
    vector.initialize_environment(device, environment)
    vector.sample_initial_parameters(device, environment, parameters, rng)
    vector.sample_initial_state(device, environment, parameters, state, rng)
    action = np.zeros((L2F_VEHICLES, 4), np.float32)
    return L2F_VEHICLES, lambda: vector.step(device, environment, parameters, state, action, following, rng)


PEER = ("l2f", l2f_stepper)
