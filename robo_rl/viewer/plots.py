"""Plots of the last seconds: the errors of all robots, and any quantity of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robo_rl.viewer.live import Live, Moment
from robo_rl.viewer.tables import color

MOST_SERIES, LEGEND = 12, 6
HEIGHT = 150  # pixels


class Plots:
    """Three plots in viser's panel."""

    def __init__(self, gui: Any, tab: Any, live: Live) -> None:
        self.gui, self.tab, self.live = gui, tab, live
        task = live.task
        self.units = {channel.name: channel.unit for channel in (*task.spec.signals, *task.spec.commands)}
        self.elements = {channel.name: channel.elements for channel in (*task.spec.signals, *task.spec.commands)}
        self.measure = task.measures[-1]
        robots = [f"robot {i + 1}" for i in range(live.n)]
        title = f"{self.measure.error.replace('_', ' ')}, {self.measure.unit}"
        self._chosen: list[tuple[Any, Any, str]] = []
        first = live.frame.moment
        with tab:
            self._errors = self._plot(title, robots[: 2 * MOST_SERIES], 0.0)
            for place, name in enumerate(self._first_choices(first)):
                options = tuple(self._quantities(first))
                chooser = gui.add_dropdown(f"plot {place + 1}", options, initial_value=name, order=2.0 * place + 1)
                self._chosen.append((chooser, None, ""))

    def _quantities(self, moment: Moment) -> list[str]:
        """Names of commands and of true quantities that are not arrays."""
        commands = [command.name for command in self.live.task.spec.commands]
        return commands + [name for name, value in moment.truth.items() if value.ndim == 2]

    def _first_choices(self, moment: Moment) -> list[str]:
        """A command, and the first thing that is measured in its unit, or else the first of all."""
        names = self._quantities(moment)
        command = self.live.task.spec.commands[0]
        like = [s.name for s in self.live.task.spec.signals if s.unit == command.unit and s.name in names]
        return [command.name, (like or names[1:] or names)[0]]

    def _plot(self, title: str, names: Sequence[str], order: float) -> Any:
        lines = ({"label": name, "stroke": color(i), "width": 1.5} for i, name in enumerate(names))
        series = ({"label": "time, s"}, *lines)
        return self.gui.add_uplot(
            tuple(np.zeros(2) for _ in series),
            series,
            title=title,
            scales={"x": {"time": False}, "y": {"auto": True}},
            legend={"show": len(names) <= LEGEND},
            height=HEIGHT,
            order=order,
        )

    def update(self, robot: int) -> None:
        """Show the past of all robots' errors, and of one robot's chosen quantities."""
        past = list(self.live.past)
        if len(past) < 2:
            return
        time = np.array([moment.time for moment in past])
        errors = np.stack([moment.errors[self.measure.error] for moment in past], 1)
        self._errors.data = (time, *errors[: 2 * MOST_SERIES].astype(float))
        for place, (chooser, plot, shown) in enumerate(self._chosen):
            rows = [_of(moment, chooser.value) for moment in past]
            if any(row is None for row in rows):
                continue
            values = np.stack([row[robot] for row in rows if row is not None], 1)[:MOST_SERIES].astype(float)
            if chooser.value != shown:
                if plot is not None:
                    plot.remove()
                plot = self._add_chosen(place, chooser.value, len(values))
                self._chosen[place] = (chooser, plot, chooser.value)
            plot.data = (time, *values)

    def _add_chosen(self, place: int, name: str, count: int) -> Any:
        names = self.elements.get(name, ())
        names = names if len(names) >= count else tuple(str(i + 1) for i in range(count))
        unit = self.units.get(name, "1")
        title = f"{name.replace('_', ' ')}{'' if unit == '1' else f', {unit}'}"
        with self.tab:
            return self._plot(title, names[:count], 2.0 * place + 2)


def _of(moment: Moment, name: str) -> np.ndarray | None:
    """(n, k) of a command or a true quantity; None if there is none (yet)."""
    return moment.commands.get(name) if name in moment.commands else moment.truth.get(name)
