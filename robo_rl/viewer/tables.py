"""Texts and tables of the live page: state of the robots, signals, and the contract."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from robo_rl.contract import Command, Signal
from robo_rl.evaluate.evaluation import quantity
from robo_rl.sim.tasks import Task
from robo_rl.viewer.live import Frame

COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a5c00", "#555555")
"""Of robots and of series, after Okabe and Ito."""
STYLE = """<style>.r { font: 12px/1.5 system-ui, sans-serif; padding: 0 .8em } .r h1 { font-size: 15px; margin: .2em 0 }
.r table { width: 100%; border-collapse: collapse } .r td, .r th { text-align: right; padding: 0 .3em; font-weight: 400;
font-variant-numeric: tabular-nums } .r th { opacity: .65 } .r td:first-child, .r th:first-child { text-align: left }
.r .bar { position: relative; height: 6px; background: #8883; border-radius: 3px; min-width: 70px }
.r .bar i { position: absolute; top: -2px; width: 3px; height: 10px; background: #0072b2; border-radius: 1px }
.r.robots td { white-space: nowrap } .r.robots td, .r.robots th { padding: 0 .2em }
.r .dot { display: inline-block; width: 9px; height: 9px; border-radius: 5px; margin-right: .4em }</style>"""


def color(number: int) -> str:
    """Of the robot or series of that number."""
    return COLORS[number % len(COLORS)]


def heading(title: str, task: Task, drawable: bool) -> str:
    """What runs here."""
    spec = task.spec
    lost = "" if drawable else "<p>This plant has no drawing() and poses(), so its robots can't be shown.</p>"
    return (
        f"{STYLE}<div class=r><h1>{escape(title)}</h1>{escape(spec.summary)}; {escape(spec.robot.title)}, "
        f"{1 / spec.control_period:g} Hz{lost}</div>"
    )


def status(frame: Frame, task: Task, drawn: int) -> str:
    """How robots are doing: errors, episodes, failures. ``drawn``: browsers that have shown the scene."""
    measures, counters = task.measures, frame.counters
    names = "".join(f"<th>{escape(m.error.replace('_', ' '))}</th>" for m in measures)
    rows = []
    for robot in range(len(counters.begun)):
        errors = "".join(f"<td>{_error(frame.moment.errors[m.error][robot], m.unit)}</td>" for m in measures)
        dot = f'<span class=dot style="background: {color(robot)}"></span>{robot + 1}'
        rows.append(f"<tr><td>{dot}</td>{errors}<td>{counters.begun[robot]}</td><td>{counters.failed[robot]}</td></tr>")
    success = counters.success
    sum_up = "no episode has ended" if success is None else f"{100 * success:.1f} % of {counters.ended} without failure"
    pace = "paused" if frame.paused else f"{frame.speed:.2f} × real time"
    return (
        f"{STYLE}<div class='r robots' data-drawn={drawn}><table>"
        f"<tr><th></th><th colspan={len(measures)}>at this moment</th>"
        "<th colspan=2>since this page was opened</th></tr>"
        f"<tr><th>robot</th>{names}<th>episodes</th><th>failed</th></tr>"
        f"{''.join(rows)}</table>{frame.moment.time:.1f} s simulated, {pace}; {sum_up}</div>"
    )


def _error(value: float, unit: str) -> str:
    """What is 0 or 1 of its own, such as whether something was hit, has no decimals."""
    if unit == "1" and value in (0.0, 1.0):
        return str(int(value))
    return quantity(float(value), unit) if np.isfinite(value) else "–"


def measured(frame: Frame, task: Task, robot: int) -> str:
    """What one robot's signals and commands are, beside their limits."""
    groups: list[tuple[Signal | Command, np.ndarray | None]] = [
        (signal, frame.moment.truth.get(signal.name)) for signal in task.spec.signals if signal.shape is None
    ]
    groups += [(command, frame.moment.commands.get(command.name)) for command in task.spec.commands]
    rows = []
    for channel, values in groups:
        if values is None:
            continue
        rows.append(f"<tr><th colspan=3>{escape(_title(channel))}</th></tr>")
        for element, value, low, high in zip(channel.elements, values[robot], *channel.bounds, strict=True):
            part = 100 * min(max((float(value) - low) / (high - low), 0.0), 1.0) if np.isfinite(value) else 0.0
            bar = f'<div class=bar><i style="left: calc({part:.1f}% - 1px)"></i></div>'
            rows.append(f"<tr><td>{escape(element)}</td><td>{value:.3g}</td><td>{bar}</td></tr>")
    return f"{STYLE}<div class=r><table>{''.join(rows)}</table></div>"


def _title(channel: Signal | Command) -> str:
    unit = "" if channel.unit == "1" else f", {channel.unit}"
    return f"{channel.name.replace('_', ' ')}{unit} ({channel.frame})"


def facts(task: Task) -> str:
    """A policy's contract, as Markdown."""
    spec = task.spec
    robot, safety = spec.robot.facts(), spec.safety
    lines = [
        f"**{spec.name}** on **{robot.name}** ({robot.kind}), {1 / spec.control_period:g} Hz",
        "",
        "| signal | unit | frame | from |",
        "| --- | --- | --- | --- |",
        *(f"| {_counted(s)} | {s.unit} | {s.frame} | {s.source} |" for s in spec.signals),
        "",
        "| command | unit | from | to | on stop |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {_counted(c)} | {c.unit} | {_span(c.lower)} | {_span(c.upper)} | {c.stop} |" for c in spec.commands),
        "",
        f"Signals may be {safety.signal_timeout:g} s old; on a fault: {safety.on_fault}.",
    ]
    if spec.memory:
        kept = ", ".join(f"{block.name} {'×'.join(map(str, block.shape))}" for block in spec.memory)
        lines += ["", f"Memory: {kept}."]
    return "\n".join(lines)


def _counted(channel: Signal | Command) -> str:
    return f"{channel.name} ({channel.size})" if channel.size > 1 else channel.name


def _span(numbers: float | Sequence[float]) -> str:
    values = np.atleast_1d(np.asarray(numbers, float))
    return f"{values[0]:.4g}" if (values == values[0]).all() else f"{values.min():.3g} … {values.max():.3g}"
