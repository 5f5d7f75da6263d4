"""The success rate over two ranges, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from robo_rl.files.escaping import plot_label


def write(path: Path, axes: Mapping[str, list[float]], cells: Sequence[Mapping[str, Any]]) -> None:
    """A square for each pair of values of the first two ranges; its success rate is the mean over all others."""
    shape = [len(values) for values in axes.values()]
    success = np.array([cell["success"] for cell in cells]).reshape(*shape[:1], shape[1] if len(shape) > 1 else 1, -1)
    mean = success.mean(-1)
    (across, values), *more = axes.items()
    up, others = more[0] if more else ("", [0.0])
    with matplotlib.rc_context({"font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(1.8 + 0.55 * len(values), 1.3 + 0.45 * len(others)), layout="constrained")
        plot = figure.subplots()
        shown = plot.imshow(mean.T, origin="lower", aspect="auto", cmap="cividis", vmin=0, vmax=1)
        for i, j in np.ndindex(*mean.shape):
            ink = "black" if mean[i, j] > 0.6 else "white"
            plot.text(i, j, f"{100 * mean[i, j]:.0f}", ha="center", va="center", color=ink)
        plot.set_xticks(range(len(values)), [f"{value:.3g}" for value in values])
        plot.set_yticks(range(len(others)), [f"{value:.3g}" for value in others] if more else [""])
        plot.set_xlabel(plot_label(across))
        plot.set_ylabel(plot_label(up))
        figure.colorbar(shown, label="success rate")
        figure.savefig(path)
