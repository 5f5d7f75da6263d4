"""Adam that starts at once: PyTorch's numbers and state, without what PyTorch imports for torch.compile."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from robo_rl.learn.adam import Adam

STEPS = """
import sys, torch
from robo_rl.learn.adam import Adam
network = torch.nn.Linear(3, 2)
optimizer = Adam(network.parameters(), fused=True)
network(torch.ones(1, 3)).sum().backward()
optimizer.step()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("given", [{}, {"fused": True}, {"betas": (0.7, 0.95), "lr": 0.1}], ids=str)
def test_its_weights_and_state_are_those_of_pytorch(given: dict[str, object]) -> None:
    data = torch.randn(8, 16, 5, generator=torch.Generator().manual_seed(0))
    ends = []
    for kind in (torch.optim.Adam, Adam):
        torch.manual_seed(1)
        network = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))
        optimizer = kind(network.parameters(), **given)  # type: ignore[arg-type]
        for step, batch in enumerate(data):
            if step == 4:  # as after a resume
                kept, optimizer = optimizer.state_dict(), kind(network.parameters(), **given)  # type: ignore[arg-type]
                optimizer.load_state_dict(kept)
            optimizer.zero_grad()
            network(batch).square().mean().backward()
            optimizer.step()
        state = optimizer.state_dict()
        ends.append([*network.parameters(), *(value for part in state["state"].values() for value in part.values())])
        assert state["param_groups"][0]["betas"] == given.get("betas", (0.9, 0.999))
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))
    assert len(ends[0]) == 4 + 4 * 3


def test_its_steps_import_no_tracer() -> None:
    ran = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout == "False\n"
