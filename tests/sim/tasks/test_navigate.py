"""What diff-nav observes and earns, against plain geometry."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.policy import PolicyGraph
from sim.env import VecEnv
from sim.tasks.mobile_base.navigate import BEAMS, STRIDE, TRAIL, DiffNav


def test_it_observes_how_far_the_robot_has_moved_and_turned_since_the_scan_came() -> None:
    task = DiffNav()
    env = VecEnv(task, 4, seed=1)
    policy = PolicyGraph(task)
    state, came = policy.initial_state(4), [None] * 4
    scans = torch.zeros_like(env.signals()["scan"])
    held = 0
    for _ in range(15):
        signals = env.signals()
        seen = task.observe(signals, policy.unpack(state))[:, -4:]
        x, y = signals["position"].double().unbind(1)
        heading = 2 * torch.atan2(signals["orientation"][:, 2], signals["orientation"][:, 3]).double()
        for e in range(4):
            if not torch.equal(signals["scan"][e], scans[e]):
                came[e] = (float(x[e]), float(y[e]), float(heading[e]))
            dx, dy, turned = float(x[e]) - came[e][0], float(y[e]) - came[e][1], float(heading[e]) - came[e][2]
            cosine, sine = np.cos(float(heading[e])), np.sin(float(heading[e]))
            expected = [(cosine * dx + sine * dy) / 0.05, (cosine * dy - sine * dx) / 0.05]
            expected += [2 * np.sin(turned), 1 - np.cos(turned)]
            assert seen[e].tolist() == pytest.approx(expected, abs=1e-4)
            held += dx != 0.0
        scans = signals["scan"].clone()
        _, state = policy(signals, state)
        env.step({"forward_speed": torch.full((4, 1), 0.2), "turn_rate": torch.full((4, 1), 1.0)})
    assert held > 15


@torch.no_grad()
def test_it_remembers_the_places_that_it_came_by_a_stride_apart() -> None:
    """Of a robot that drives straight ahead, they lie behind it, so far apart."""
    task = DiffNav()
    policy = PolicyGraph(task)
    state = policy.initial_state(1)
    scan = torch.full((1, BEAMS), 1.0)
    still = {"orientation": torch.tensor([[0.0, 0.0, 2**-0.5, 2**-0.5]]), "scan": scan}  # it looks along y
    rest = {"wheel_speed": torch.zeros(1, 1), "yaw_rate": torch.zeros(1, 1)}
    for k in range(200):
        at = {"position": torch.tensor([[1.0, 2.0 + 0.02 * k]]), "position_setpoint": torch.tensor([[1.0, 9.0]])}
        signals = {**still, **rest, **at}
        memory = policy.unpack(state)
        seen = task.observe(signals, memory)
        _, state = policy(signals, state)
    here = 2.0 + 0.02 * 199
    behind = here - memory["trail_y"][0]
    assert (memory["trail_x"] == 1.0).all()
    assert 0.0 <= float(behind[0]) <= STRIDE + 0.02
    np.testing.assert_allclose(behind.diff(), STRIDE + 0.01, atol=0.011)
    first = 2 * BEAMS + 2 + 6
    ahead, left = seen[0, first : first + TRAIL], seen[0, first + TRAIL : first + 2 * TRAIL]
    np.testing.assert_allclose(ahead, -behind / (1.0 + behind), atol=1e-5)
    np.testing.assert_allclose(left, 0.0, atol=1e-5)
