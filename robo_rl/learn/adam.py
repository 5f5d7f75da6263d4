"""PyTorch's Adam without the tracer of torch.compile, whose import takes longer than a drone takes to learn to hover.

``torch.optim`` hides some of its methods from that tracer, and imports all of it to do so: 2,000 modules, 1 to 2 s of
each process that trains. Nothing here is compiled with it. The methods below are PyTorch's own, as they were before
they were hidden.
"""

from __future__ import annotations

import inspect

import torch
from torch.optim import Optimizer


class Adam(torch.optim.Adam):
    """``torch.optim.Adam``: the same numbers, the same state."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
    zero_grad = inspect.unwrap(Optimizer.zero_grad)
    add_param_group = inspect.unwrap(Optimizer.add_param_group)
    state_dict = inspect.unwrap(Optimizer.state_dict)
    load_state_dict = inspect.unwrap(Optimizer.load_state_dict)
