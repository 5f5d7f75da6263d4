"""Counted random numbers: the published generator, the same in the native loop, and as good as independent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from robo_rl.sim.accelerate.fuse import fuse, normals, streams, uniforms
from robo_rl.sim.accelerate.fuse.random import LIMIT, philox

FULL = 0xFFFFFFFF

# Random123 1.09 (Salmon et al.), kat_vectors, philox4x32-10: counter, key, result
PUBLISHED = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((FULL,) * 4, (FULL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]

fused = fuse(lambda stream, step: {"u": uniforms(stream, step, 14), "n": normals(stream, step, 13, 4)})


@pytest.mark.parametrize(("counter", "key", "expected"), PUBLISHED)
def test_philox_gives_the_published_numbers(counter: tuple, key: tuple, expected: tuple) -> None:
    words = philox(tuple(torch.tensor([x]) for x in counter), tuple(torch.tensor([x]) for x in key))  # type: ignore[arg-type]
    assert tuple(int(word) for word in words) == expected


def some(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Streams with large numbers in all places, and steps."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(0, LIMIT, (n, k), generator=generator).float() for k in (4, 1))  # type: ignore[return-value]


@pytest.mark.parametrize("n", [1, 16, 333])
def test_numbers_of_the_native_loop_are_those_of_tensors(n: int) -> None:
    stream, step = some(n)
    native = fused(stream, step[:, 0])
    assert torch.equal(native["u"], uniforms(stream, step[:, 0], 14))
    torch.testing.assert_close(native["n"], normals(stream, step[:, 0], 13, 4), atol=2e-6, rtol=2e-6)


def test_any_part_of_a_steps_numbers_is_the_same_as_in_the_whole() -> None:
    stream, step = some(5)
    whole = uniforms(stream, step[:, 0], 20)
    for first, count in ((0, 3), (1, 1), (2, 9), (7, 13)):
        assert torch.equal(uniforms(stream, step[:, 0], count, first), whole[:, first : first + count])


def test_every_environment_and_every_part_of_a_seed_has_a_stream_of_its_own() -> None:
    zero = torch.zeros(3)
    seeds = [0, 1, 1 << 24, (1 << 24) + 1, 1 << 47]
    found = torch.cat([uniforms(streams(seed, 3), zero, 4) for seed in seeds])
    assert len(torch.unique(found, dim=0)) == 3 * len(seeds)
    assert torch.equal(uniforms(streams(7, 2, first=5), zero[:2], 4), uniforms(streams(7, 7), torch.zeros(7), 4)[5:])
    with pytest.raises(ValueError, match="expected at most 16777216"):
        streams(0, 2, first=LIMIT - 1)


def drawn(along: str) -> np.ndarray:
    """200,000 uniform numbers where one word of the counter or the key counts up and all else stands still."""
    n = 50_000
    stream, step, count = torch.zeros(n, 4), torch.zeros(n), torch.arange(n).float()
    if along == "step":
        step = count
    elif along == "place":
        return uniforms(stream[:1], step[:1], 200_000).numpy().ravel()
    else:
        stream[:, ("seed", "seed, upper", "environment", "episode").index(along)] = count
    return uniforms(stream, step, 4).numpy().ravel()


@pytest.mark.parametrize("along", ["seed", "seed, upper", "environment", "episode", "step", "place"])
def test_uniform_numbers_are_uniform_and_independent_whatever_counts_up(along: str) -> None:
    u = drawn(along).astype(np.float64)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    for distance in (1, 2, 3, 4, 5, 8, 64):  # neighbours in one step, and from row to row
        pairs, _, _ = np.histogram2d(u[:-distance], u[distance:], bins=16, range=[[0, 1], [0, 1]])
        assert stats.chisquare(pairs.ravel()).pvalue > 1e-4, distance
        assert abs(np.corrcoef(u[:-distance], u[distance:])[0, 1]) < 0.01
    bits = (u * LIMIT).astype(np.int64)
    shares = np.array([((bits >> k) & 1).mean() for k in range(24)])
    assert np.abs(shares - 0.5).max() < 0.006  # five deviations of 200,000 coins


def test_normal_numbers_are_normal_and_independent() -> None:
    n = 20_000
    x = fused(streams(3, n), torch.full((n,), 5.0))["n"].numpy().astype(np.float64)
    for column in x.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    flat = x.ravel()
    assert abs(flat.mean()) < 0.01
    assert abs(flat.std() - 1) < 0.01
    assert abs(stats.skew(flat)) < 0.03
    assert abs(stats.kurtosis(flat)) < 0.05
    correlations = np.corrcoef(x.T) - np.eye(13)
    assert np.abs(correlations).max() < 0.03
    assert np.abs(np.corrcoef((x**2).T) - np.eye(13)).max() < 0.03
    assert 4.0 < np.abs(flat).max() < 5.77  # sqrt(-2 log 2^-24)
