"""Several processes that train one policy: each simulates its share of the robots, and gradients are averaged.

    robo-rl train go2-flat --processes 2

``robo_rl.learn.distributed.launch``, or ``torchrun``, starts them and tells each its place in RANK, WORLD_SIZE and
LOCAL_RANK. The first
one writes the run's folder and talks; the others only compute. A process that was started by itself is the first of
one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, distributed


class LostError(ValueError):
    """Another process of the training has ended."""


@contextlib.contextmanager
def _all_there() -> Iterator[None]:
    """LostError where a message can't be sent, as another process is gone."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0][:200]
        raise LostError(f"another process of this training has ended; 'robo-rl resume' goes on ({reason})") from None


def rank() -> int:
    """The place of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """How many there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join(device: str) -> str:
    """Meet the others, if there are any; returns the device of this process, of which "cuda" gives one to each."""
    if count() == 1:
        return device
    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    if not distributed.is_initialized():
        distributed.init_process_group("gloo" if device == "cpu" else "nccl")
    return device


def leave() -> None:
    """Part from the others, when there is nothing left to do together."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def own_seed(seed: int) -> int:
    """A seed of its own for every process, that no other training has; the first one's is ``seed``.

    The others' are hashes of seed and rank. Environments' streams take all 48 bits, torch's own generator 32: there, of
    a thousand processes, two draw the same in one training of ten thousand.
    """
    return derived(seed, f"rank {rank()}") if rank() else seed


def derived(seed: int, use: str) -> int:
    """A seed for another use of a training's seed, that no other training has."""
    digest = hashlib.sha256(f"robo-rl seed {seed} {use}".encode()).digest()
    return int.from_bytes(digest[:6], "little")


def share(robots: int) -> int:
    """How many of so many robots this process simulates."""
    if robots % count():
        raise ValueError(f"environments is {robots}; expected a multiple of the {count()} processes")
    return robots // count()


def from_first(value: Any) -> Any:
    """The first process's ``value``, in all of them."""
    if count() == 1:
        return value
    values = [value]
    with _all_there():
        distributed.broadcast_object_list(values)
    return values[0]


def any_of(flag: bool) -> bool:
    """Whether ``flag`` is true in any process."""
    if count() == 1:
        return flag
    flags = torch.tensor(int(flag), device="cuda" if distributed.get_backend() == "nccl" else "cpu")
    with _all_there():
        distributed.all_reduce(flags)
    return bool(flags)


def counted(name: str, more: int) -> int:
    """Add to a counter that all processes share, without waiting for any; returns what it is then."""
    with _all_there():
        return distributed.distributed_c10d._get_default_store().add(name, more)


def total(x: Tensor) -> Tensor:
    """The sum of all processes' ``x``, in place."""
    if distributed.is_initialized():
        with _all_there():
            distributed.all_reduce(x)
    return x


def gathered(x: Tensor) -> Tensor:
    """(processes, …) of all processes' ``x``."""
    if not distributed.is_initialized():
        return x[None]
    found = [torch.empty_like(x) for _ in range(count())]
    with _all_there():
        distributed.all_gather(found, x)
    return torch.stack(found)


def average(x: Tensor) -> Tensor:
    """The mean of all processes' ``x``, in place; the same bits in all of them."""
    return total(x).div_(count()) if distributed.is_initialized() else x


def average_gradients(parameters: Sequence[Tensor], figure: Tensor) -> float:
    """Give all processes the mean of their gradients; returns the mean of a ``figure`` (), sent in the same message."""
    if distributed.is_initialized():
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        mean = average(torch.cat([*(gradient.flatten() for gradient in gradients), figure[None]]))
        *parts, (figure,) = mean.split([*(gradient.numel() for gradient in gradients), 1])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
    return float(figure)
