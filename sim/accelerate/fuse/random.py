"""Random numbers that are a function of where they are drawn: Philox, counted and not generated in turn.

A stream (n, 4) tells environments apart: a seed in two parts, the environment's number, and how often it has begun
anew, each a whole number below 2²⁴, which a float holds exactly. With a step within the episode and the number of a
draw within the step these are key and counter of Philox4x32-10 (Salmon et al. 2011, Parallel Random Numbers: As Easy
as 1, 2, 3). So what an environment draws depends on its own row alone, and a stream that was copied repeats itself.

Within fused functions the numbers are computed in the native loop; they are the same, bit by bit, as here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

LIMIT = 1 << 24
"""Whole numbers below are exact in a float."""
WORD = 0xFFFFFFFF
FACTORS = (0xD2511F53, 0xCD9E8D57)
ADDITIONS = (0x9E3779B9, 0xBB67AE85)


def streams(seed: int, n: int, first: int = 0, device: str | torch.device = "cpu") -> Tensor:
    """(n, 4): of environments number ``first``, …, none of which has begun. The lower 48 bits of ``seed`` count."""
    if first + n > LIMIT:
        raise ValueError(
            f"there are {first + n} environments; expected at most {LIMIT}, each with its own random numbers"
        )
    stream = torch.zeros(4, n, device=device)
    stream[0], stream[1] = float(seed % LIMIT), float(seed // LIMIT % LIMIT)
    stream[2] = torch.arange(first, first + n, device=device)
    return stream.mT


def uniforms(stream: Tensor, step: Tensor, count: int, first: int = 0) -> Tensor:
    """(n, count) from 0 to below 1, in steps of 2⁻²⁴: numbers ``first``, … of a ``step`` (n,) of streams (n, 4)."""
    if has_torch_function((stream, step)):
        return handle_torch_function(uniforms, (stream, step), stream, step, count, first)
    key0, key1, number, episode = stream.long().unsqueeze(-1).unbind(1)
    fours = torch.arange(first // 4, (first + count + 3) // 4, device=stream.device)
    words = philox((step.long()[:, None], number, episode, fours), (key0, key1))
    drawn = torch.stack(torch.broadcast_tensors(*words), -1).flatten(1)[:, first % 4 : first % 4 + count]
    return (drawn >> 8).float() * 2.0**-24


def normals(stream: Tensor, step: Tensor, count: int, first: int = 0) -> Tensor:
    """(n, count) standard normal numbers, by the method of Box and Muller, of ``uniforms`` from ``first`` on."""
    drawn = uniforms(stream, step, normal_uniforms(count), first)
    radius = torch.sqrt(-2.0 * torch.log(1.0 - drawn[:, 0::2]))
    angle = (2 * math.pi) * drawn[:, 1::2]
    return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], -1).flatten(1)[:, :count]


def normal_uniforms(count: int) -> int:
    """How many uniform numbers ``count`` normal ones are made of."""
    return count + count % 2


def philox(counter: tuple[Tensor, ...], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Philox4x32-10 of a counter of four and a key of two words of 32 bits: four words. All are whole tensors."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        (first, lower), (second, low) = (_product(x, factor) for x, factor in zip((a, c), FACTORS, strict=True))
        a, b, c, d = second ^ b ^ k0, low, first ^ d ^ k1, lower
        k0, k1 = (k0 + ADDITIONS[0]) & WORD, (k1 + ADDITIONS[1]) & WORD
    return a, b, c, d


def _product(x: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """The upper and the lower 32 bits of x times ``factor``, in numbers below 2⁶³ throughout."""
    low = (x & 0xFFFF) * factor
    high = (x >> 16) * factor + (low >> 16)
    return high >> 16, (high & 0xFFFF) << 16 | low & 0xFFFF
