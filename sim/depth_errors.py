"""What a depth camera measures wrongly: noise that grows with the square of the depth, as of all stereo cameras, and
pixels whose depth is not known, anywhere and more often at the edges of things, where the two views differ.

How much is drawn for each episode, from ranges of the task, by the signal's name: "grain/NAME" (1/m, the noise's
standard deviation over the square of the depth), "holes/NAME" and "edge_holes/NAME" (probability of a pixel).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from robo_rl.contract import Image, Signal
from robo_rl.sim.accelerate.fuse import fuse, normals, uniforms

PARTS = ("grain", "holes", "edge_holes")
EDGE = 0.02
"""m, between the depths of two pixels beside each other: an edge is there."""

_normals = fuse(lambda stream, step: normals(stream, step, 4))
_uniforms = fuse(lambda stream, step: uniforms(stream, step, 4))


class DepthErrors(NamedTuple):
    """Of the images of n environments."""

    signal: Signal
    drawn: Tensor
    """(n, 3) of ``PARTS``, each episode's."""

    @staticmethod
    def of(signal: Signal, n: int, device: torch.device) -> DepthErrors | None:
        """Where the signal is an image of depth that may have holes."""
        layout = signal.layout
        seen = isinstance(layout, Image) and layout.encoding == "depth with holes"
        return DepthErrors(signal, torch.zeros(n, len(PARTS), device=device)) if seen else None

    def begin(self, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        """New episodes of ``ids`` (m,)."""
        for k, part in enumerate(PARTS):
            self.drawn[ids, k] = drawn.get(f"{part}/{self.signal.name}", torch.zeros(len(ids))).to(self.drawn)

    def added(self, depth: Tensor, own: Tensor, ids: Tensor | slice = slice(None)) -> Tensor:
        """(m, pixels) measured, of true ``depth`` (m, pixels), 0 where it is not known; ``own`` (m, 4) are streams."""
        m, pixels = depth.shape
        fours = -(-pixels // 4)
        rows = own.mT[:, :, None].expand(4, m, fours).reshape(4, -1).mT
        number = torch.arange(fours, device=depth.device, dtype=torch.float32).repeat(m)
        grain, holes, edge_holes = self.drawn[ids].T[:, :, None]
        noise = _normals(rows, number + fours).reshape(m, -1)[:, :pixels]
        chance = _uniforms(rows, number + 2 * fours).reshape(m, -1)[:, :pixels]
        measured = torch.addcmul(depth, depth.square() * grain, noise)
        measured = torch.where(chance < holes, 0.0, measured)
        if edge_holes.any():
            at_edge = chance < holes + edge_holes * edges(depth.unflatten(1, self.signal.dimensions)).flatten(1)
            measured = torch.where(at_edge, 0.0, measured)
        return measured.clamp(0.0, float(self.signal.bounds[1].max()))


def edges(depth: Tensor) -> Tensor:
    """(m, rows, columns) 1 where the depth (m, rows, columns) of a pixel beside it is another one, else 0."""
    across = (depth[:, :, 1:] - depth[:, :, :-1]).abs() > EDGE
    down = (depth[:, 1:] - depth[:, :-1]).abs() > EDGE
    found = functional.pad(across, (0, 1)) | functional.pad(across, (1, 0))
    return (found | functional.pad(down, (0, 0, 0, 1)) | functional.pad(down, (0, 0, 1, 0))).float()
