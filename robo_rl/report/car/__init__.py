"""What reports on cars have of their own: the track with the line that was driven, coloured by speed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from robo_rl.evaluate.evaluation import Episodes
from robo_rl.report.findings import Findings, Plot, Section
from robo_rl.report.plots import INK, courses, styled

SHOWN = 6
"""Episodes on the map."""
HINTS: Mapping[str, str] = {
    "friction": "Look at the left end: less grip than the policy has met means a slide into the outer wall.",
    "stiffness": "Look at both ends: how fast the tyres answer the steering.",
    "steering_gain": "Look at both ends: a linkage that steers more or less than it is told.",
    "delay": "Look at where the upper line falls: the latency limit of the policy.",
    "noise": "Look at how the lap time rises: the accuracy that the lidar needs.",
    "traffic/density": "Look at the right end: how full a road may be.",
    "traffic/speed": "Look at both ends: traffic that is much slower or faster than the policy has met.",
    "road/bends": "Look at the right end: bends of up to 40 m radius.",
    "track/width": "Look at the left end: how narrow a track may be.",
}


def sections(findings: Findings) -> list[Section]:
    """The way of the policy around its first tracks, or along its first routes."""
    episodes, period = findings.episodes["policy"], findings.task.spec.control_period
    if "marks" in episodes.recording:
        plot = Plot(
            lines(episodes, period),
            f"The policy's first {SHOWN} routes, each on a road of its own, from the left. A cross is a failure. Look "
            "at where it slows down, and at where it changes lanes.",
            wide=True,
        )
        text = "An episode ends with the route, or fails at a collision, a red light, off the road, or in a wrong lane."
        return [Section("routes", "Routes", text, plots=[plot], summary=_speeds(episodes, period))]
    if "left_wall" not in episodes.recording:
        return []
    plot = Plot(
        lines(episodes, period),
        f"The policy's first {SHOWN} episodes, each on a track of its own. A cross is a contact. Look at where it "
        "slows down, and at whether it uses the width of the track in bends.",
        wide=True,
    )
    text = "An episode ends with a lap, or fails at the first contact with a wall."
    return [Section("tracks", "Tracks", text, plots=[plot], summary=_speeds(episodes, period))]


def _speeds(episodes: Episodes, period: float) -> str:
    """How fast it is in the episodes on the map."""
    speed = np.concatenate([course["velocity"][:, 0] for course in courses(episodes, period)[:SHOWN]])
    return f"{speed.mean():.1f} m/s on average, {speed.max():.1f} m/s at most."


def borders(course: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """(P, 3) m each: the walls of a track, closed; or the edges of a road."""
    if "marks" in course:
        return [course["marks"][0, 0], course["marks"][0, -1]]
    walls = [course[name][0] for name in ("left_wall", "right_wall")]
    return [np.concatenate([points, points[:1]]) for points in walls]


@styled
def lines(episodes: Episodes, period: float) -> Figure:
    """Tracks or roads from above, with the line that was driven coloured by speed."""
    figure = Figure((9.0, 6.0))
    driven = courses(episodes, period)[:SHOWN]
    fastest = max(float(course["velocity"][:, 0].max()) for course in driven)
    every = figure.subplots(2, SHOWN // 2).ravel()
    for i, (axes, course) in enumerate(zip(every, driven, strict=False)):
        for points in borders(course):
            axes.plot(*points[:, :2].T, color=INK, lw=1)
        way, speed = course["position"], course["velocity"][:, 0]
        collection = LineCollection(list(np.stack([way[:-1], way[1:]], 1)), cmap="viridis", lw=1.8)
        collection.set_array(speed[:-1])
        collection.set_clim(0.0, fastest)
        axes.add_collection(collection)
        if not episodes.survived[i]:
            axes.plot(*way[-1], "x", color="crimson", ms=8, mew=2)
        axes.set_aspect("equal", "datalim")
        axes.tick_params(labelsize=7)
    for axes in every[len(driven) :]:
        axes.axis("off")
    figure.colorbar(collection, ax=list(every), label="speed, m/s", shrink=0.7)
    return figure
