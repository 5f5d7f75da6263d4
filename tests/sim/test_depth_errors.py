"""What a depth camera measures wrongly: how much, how often, where; and that a late image is of one moment."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from scipy import stats

from robo_rl.contract import Image, Signal
from robo_rl.sim.accelerate.fuse import streams
from robo_rl.sim.depth_errors import EDGE, DepthErrors, edges
from robo_rl.sim.env import VecEnv

N, SHAPE = 60, (20, 30)
DEPTH = Signal("depth", (), "m", "camera", 0.0, 2.0, shape=SHAPE, layout=Image("depth with holes", 1.0))


def measured(depth: torch.Tensor, **drawn: float) -> torch.Tensor:
    errors = DepthErrors.of(DEPTH, len(depth), torch.device("cpu"))
    assert errors is not None
    ids = torch.arange(len(depth))
    errors.begin(ids, {f"{name}/depth": torch.full((len(depth),), value) for name, value in drawn.items()})
    return errors.added(depth.flatten(1), streams(3, len(depth)), ids).unflatten(1, SHAPE)


@pytest.mark.parametrize("depth", [0.4, 1.2])
def test_noise_is_normal_and_grows_with_the_square_of_the_depth(depth: float) -> None:
    found = (measured(torch.full((N, *SHAPE), depth), grain=0.02) - depth) / (0.02 * depth**2)
    assert stats.kstest(found.double().flatten().numpy(), "norm").pvalue > 1e-3


def test_holes_are_as_frequent_as_drawn_and_independent_of_each_other() -> None:
    holes = (measured(torch.full((N, *SHAPE), 1.0), holes=0.1) == 0.0).double()
    count = holes.numel()
    assert abs(float(holes.mean()) - 0.1) < 5 * math.sqrt(0.09 / count)
    beside = (holes[:, :, 1:] * holes[:, :, :-1]).mean()
    assert abs(float(beside) - 0.01) < 5 * math.sqrt(0.0099 / count)


def test_at_the_edges_of_things_there_are_more_of_them() -> None:
    depth = torch.full((N, *SHAPE), 1.0)
    depth[:, 5:10, 8:20] = 0.8
    found = measured(depth, edge_holes=0.5) == 0.0
    edge = edges(depth)[0] > 0
    assert int(edge.sum()) == 2 * (5 + 12) - 4 + 2 * (5 + 12)  # pixels inside and outside of the outline
    assert 0.45 < float(found[:, edge].float().mean()) < 0.55
    assert not found[:, ~edge].any()
    assert not edges(depth * EDGE / 0.3).any()


def test_what_is_not_known_stays_so_and_what_is_beyond_reach_is_at_it() -> None:
    depth = torch.zeros(N, *SHAPE)
    depth[:, 10:] = 2.0
    found = measured(depth, grain=0.05)
    assert not found[:, :10].any()
    assert float(found.max()) == 2.0
    assert DepthErrors.of(Signal("scan", (), "m", "b", 0.0, 1.0, shape=(5,)), 1, torch.device("cpu")) is None


def test_a_late_image_is_of_one_moment(rail: Any, rail_with_scan: Any) -> None:
    """Of a camera that sees steps of 1 m; in between, depths would be of a scene that never was."""

    class Seeing(rail):
        name = "seeing"
        plant_class = rail_with_scan

    image = Signal(
        "image", (), "m", "body", 0.0, 1e6, shape=(16, 64), layout=Image("depth with holes", 1.0), delay=(0.0, 0.03)
    )
    scan = Signal("scan", (), "m", "body", -1e6, 1e6, shape=(1080,))
    for late, behind in ((0.0125, 1), (0.0175, 2)):
        env = VecEnv(Seeing(others=(scan, image)), 2, fixed={"start": 0.0, "mass": 1.0, "delay/image": late})
        env.plant.current.velocity[:] = 100.0
        for _ in range(6):
            signals = env.step({"force": torch.zeros(2, 1)}).signals
        assert float(signals["image"][0, 0, 0]) == pytest.approx(6 - behind, abs=1e-3)
