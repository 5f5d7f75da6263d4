"""What diff-nav observes, against plain geometry."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robo_rl.policy import PolicyGraph
from sim.env import VecEnv
from sim.tasks.mobile_base.navigate import DiffNav


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
