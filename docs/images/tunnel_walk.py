"""Make docs/images/tunnel_walk.png: rooms seen from above, with the planned path and the way that a Go2 walked.

python docs/images/tunnel_walk.py
"""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from robo_rl.controllers.rotation import heading
from robo_rl.learn.runs.folder import HELD_OUT
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.tasks.legged.tunnel import BODY, PERIOD, TunnelWalk

ROOMS = 3
SHOWN = 2.0  # s between outlines of the robot


def main() -> None:
    """Walk through the fullest of some held-out rooms, and draw them."""
    matplotlib.use("agg")
    task = TunnelWalk()
    env = VecEnv(task, ROOMS, seed=HELD_OUT, evaluation=True, fixed={"room/fill": 0.35})
    policy = load("zoo:go2-flat", task).policy
    state, running = policy.initial_state(env.n), torch.ones(env.n, dtype=torch.bool)
    rooms, walked = env.plant.rooms, []
    cells, planned = rooms.cells.numpy().copy(), rooms.planned.numpy().copy()
    while running.any() and len(walked) < env.episode_steps:
        truth = env.plant.truth()
        turn = torch.stack(heading(truth["orientation"].unbind(-1)), -1)
        pose = torch.cat([truth["position"][:, :2], turn], 1)
        walked.append(torch.where(running[:, None], pose, torch.nan).numpy())
        commands, state = policy(env.signals(), state)
        running[env.step(commands).ids] = False
    figure = Figure((9, 4.6))
    for k, axes in enumerate(np.atleast_1d(figure.subplots(1, ROOMS))):
        draw(axes, cells[k], planned[k], np.array(walked)[:, k], rooms.cell)
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    Image.open(buffer).convert("RGB").quantize(64).save(Path(__file__).with_name("tunnel_walk.png"), optimize=True)


def draw(axes: matplotlib.axes.Axes, cells: np.ndarray, planned: np.ndarray, walked: np.ndarray, cell: float) -> None:
    """One room: cells (ROWS, COLUMNS), the path (P, 2) m, and x, y (m), cosine and sine of the heading (steps, 4)."""
    rows, columns = cells.shape
    axes.imshow(cells > 0, cmap="Greys", origin="lower", extent=(0, columns * cell, 0, rows * cell), vmax=1.6)
    axes.plot(*planned.T, "--", color="#009e73", linewidth=1.2)
    axes.plot(*walked[:, :2].T, color="#e67300", linewidth=1.5)
    length, width = BODY
    for x, y, cosine, sine in walked[:: round(SHOWN / PERIOD)]:
        if np.isfinite(x):
            corner = x - 0.5 * (cosine * length - sine * width), y - 0.5 * (sine * length + cosine * width)
            angle = np.degrees(np.arctan2(sine, cosine))
            axes.add_patch(Rectangle(corner, length, width, angle=angle, fill=False, edgecolor="#0072b2"))
    axes.set_aspect("equal")
    axes.set_xlabel("m")


if __name__ == "__main__":
    main()
