"""The plots of a page to look into: zoom, pan, values under the pointer, lines that are hidden by their legend.

Each figure of matplotlib is read and told again to Bokeh (BSD-3-Clause), whose script is part of the page. Whatever a
figure is made by, also a user's own section, needs nothing for it. A figure with something that is not known here
(an image, a patch that is neither rectangle nor polygon) stays as it is drawn.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.colors
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon, Rectangle
from matplotlib.ticker import FixedFormatter, FixedLocator

if TYPE_CHECKING:
    import bokeh.plotting

LOADER = Path(__file__).parent / "interactive.js"
HEIGHT = 380
"""Pixels of a row of plots; as wide as the page."""
DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dashdot", "None": "solid"}
MARKERS = {
    "o": "circle",
    "s": "square",
    "x": "x",
    "+": "cross",
    ".": "circle",
    "^": "triangle",
    "v": "inverted_triangle",
}
STEPS = {"steps-post": "after", "steps-pre": "before", "steps": "before", "steps-mid": "center"}
COLORBAR = "<colorbar>"
"""matplotlib's label of the axes that explain colours."""
DIGITS = "printf"
"""Bokeh's way to show numbers as the next two say."""


class UnknownArtistError(ValueError):
    """A figure has something that has no counterpart here."""


def told(figure: Figure) -> dict[str, Any] | None:
    """The figure as the JSON of a Bokeh document; None if it stays a drawing."""
    from bokeh.embed import json_item
    from bokeh.layouts import gridplot

    shown = [axes for axes in figure.axes if axes.get_label() != COLORBAR and axes.get_visible()]
    rows = [list(row) for _, row in groupby(sorted(shown, key=_place), lambda axes: _place(axes)[0])]
    try:
        plots = {id(axes): _plot(axes) for axes in shown}
    except UnknownArtistError:
        return None
    for axes in shown:
        for way, attribute in ((axes.get_shared_x_axes(), "x_range"), (axes.get_shared_y_axes(), "y_range")):
            first = next(other for other in shown if other is axes or way.joined(axes, other))
            setattr(plots[id(axes)], attribute, getattr(plots[id(first)], attribute))
    for row in rows:
        for axes in row:
            plots[id(axes)].height = HEIGHT // min(2, len(rows))
    grid = gridplot(
        [[plots[id(axes)] for axes in row] for row in rows],
        sizing_mode="stretch_width",
        merge_tools=False,
        toolbar_options={"logo": None},
    )
    return dict(json_item(grid))


def _place(axes: Axes) -> tuple[int, float]:
    """Where it comes in the figure: from above, then from the left (pixels)."""
    box = axes.get_window_extent()
    return -round(box.y1 / 10), float(box.x0)


def scripts() -> list[dict[str, str]]:
    """Bokeh's script and ours, each with its hash for the page's Content-Security-Policy."""
    from bokeh.resources import Resources

    library = Resources(mode="inline", components=["bokeh"]).js_raw[0]
    found = []
    for text in (library.replace("</script", r"<\/script"), LOADER.read_text()):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        found.append({"text": text, "hash": f"sha256-{digest}"})
    return found


def _plot(axes: Axes) -> bokeh.plotting.figure:
    """One plot with the axes' scales, limits, names and ticks, and all that is drawn in them."""
    from bokeh.models import HoverTool, Legend, LegendItem, PlainText
    from bokeh.plotting import figure

    x, y = (_plain(axis.get_label_text()) for axis in (axes.xaxis, axes.yaxis))
    plot: Any = figure(
        x_axis_type=axes.get_xscale() if axes.get_xscale() == "log" else "linear",
        y_axis_type=axes.get_yscale() if axes.get_yscale() == "log" else "linear",
        x_range=axes.get_xlim(), y_range=axes.get_ylim(), match_aspect=axes.get_aspect() != "auto",
        tools="pan,box_zoom,wheel_zoom,reset,save", active_drag="box_zoom",
        background_fill_alpha=0, border_fill_alpha=0, outline_line_alpha=0,
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.xaxis.axis_label, plot.yaxis.axis_label = PlainText(text=x), PlainText(text=y)
    if axes.get_title():
        plot.title = _plain(axes.get_title())
    _ink(plot, axes)
    items: dict[tuple[str, ...], tuple[str, list[Any]]] = {}
    pointed = []
    for artist, look in _drawn(axes):
        if isinstance(artist, Line2D):
            drawn = _line(plot, axes, artist)
            key = (matplotlib.colors.to_hex(artist.get_color()), str(artist.get_linestyle()))
            label = str(artist.get_label())
            pointed += drawn
            if not label.startswith("_"):
                items[key] = _plain(label), [*items.get(key, ("", []))[1], *drawn]
            elif key in items:  # the other lines of the same name
                items[key][1].extend(drawn)
        elif isinstance(artist, Collection):
            pointed += _collection(plot, artist, look)
        else:
            _patch(plot, axes, artist, look)
    if axes.get_legend() is not None and items:
        legend = Legend(items=[LegendItem(label={"value": name}, renderers=drawn) for name, drawn in items.values()])
        legend.click_policy = "hide"
        legend.update(background_fill_alpha=0.0, border_line_alpha=0.0, label_text_color=axes.xaxis.label.get_color())
        plot.add_layout(legend, "right")
    rows = [(name or "", f"@{field}{{%.5g}}") for name, field in ((x, "x"), (y, "y"))]
    plot.add_tools(
        HoverTool(
            renderers=pointed,
            line_policy="nearest",
            formatters={"@x": DIGITS, "@y": DIGITS},
            tooltips=[("", "@name"), *rows],
        )
    )
    return plot


def _ink(plot: Any, axes: Axes) -> None:
    """Colour of axes and names, and fixed ticks with their words."""
    colour = axes.xaxis.label.get_color()
    for bokeh_axis, axis in ((plot.xaxis[0], axes.xaxis), (plot.yaxis[0], axes.yaxis)):
        bokeh_axis.update(
            axis_line_color=colour, major_tick_line_color=colour, minor_tick_line_color=None,
            major_label_text_color=colour, axis_label_text_color=colour, axis_label_text_font_style="normal",
            visible=axes.axison,
        )  # fmt: skip
        if isinstance(axis.get_major_formatter(), FixedFormatter) and isinstance(
            axis.get_major_locator(), FixedLocator
        ):
            places = [float(place) for place in axis.get_majorticklocs()]
            bokeh_axis.ticker = places
            words = [label.get_text() for label in axis.get_ticklabels()]
            bokeh_axis.major_label_overrides = dict(zip(places, map(_plain, words), strict=True))
    plot.grid.visible = axes.axison
    plot.grid.grid_line_color, plot.grid.grid_line_alpha = colour, 0.15


def _drawn(axes: Axes) -> Iterator[tuple[Artist, dict[str, Any]]]:
    """What is drawn, from behind to the front, with the colours of areas."""
    for artist in sorted((*axes.patches, *axes.collections, *axes.lines), key=lambda one: one.get_zorder()):
        if not artist.get_visible():
            continue
        look: dict[str, Any] = {}
        if isinstance(artist, Patch | PolyCollection):
            colours = matplotlib.colors.to_rgba_array(artist.get_facecolor())
            if len(colours):
                colour = matplotlib.colors.to_hex(colours[0])
                look = {"fill_color": colour, "fill_alpha": float(colours[0][3]), "line_color": None}
        yield artist, look
    if axes.images or axes.artists or axes.tables:
        raise UnknownArtistError


def _line(plot: Any, axes: Axes, line: Line2D) -> list[Any]:
    from bokeh.models import ColumnDataSource, Span

    look = {"line_color": matplotlib.colors.to_hex(line.get_color()), "line_alpha": line.get_alpha() or 1.0}
    stroke = {
        **look,
        "line_width": line.get_linewidth() * 1.4,
        "line_dash": DASHES.get(str(line.get_linestyle()), "solid"),
    }
    for across, way in ((axes.get_yaxis_transform(), "width"), (axes.get_xaxis_transform(), "height")):
        if line.get_transform() == across:  # axhline, axvline
            place = np.ravel(line.get_ydata() if way == "width" else line.get_xdata())
            plot.add_layout(Span(location=float(place[0]), dimension=way, level="underlay", **stroke))
            return []
    if line.get_transform() != axes.transData:
        raise UnknownArtistError
    x, y = (np.asarray(values, np.float32) for values in line.get_data())
    if not len(x):
        return []
    label = str(line.get_label())
    name = [] if label.startswith("_") else [_plain(label)]
    source = ColumnDataSource({"x": x, "y": y, "name": (name or [""]) * len(x)})
    drawn = []
    if line.get_linestyle() != "None":
        mode = STEPS.get(line.get_drawstyle())
        drawn.append(
            plot.step("x", "y", source=source, mode=mode, **stroke)
            if mode
            else plot.line("x", "y", source=source, **stroke)
        )
    marker = str(line.get_marker())
    if marker in MARKERS:
        size = 1.4 * line.get_markersize() * (0.5 if marker == "." else 1.0)
        drawn.append(
            plot.scatter(
                "x",
                "y",
                source=source,
                marker=MARKERS[marker],
                size=size,
                **look,
                fill_color=look["line_color"],
                fill_alpha=look["line_alpha"],
            )
        )
    return drawn


def _collection(plot: Any, of: Artist, look: dict[str, Any]) -> list[Any]:
    """Areas between lines and bars, and lines that are coloured piece by piece."""
    from bokeh.models import ColumnDataSource

    if isinstance(of, PolyCollection):
        outlines = [np.asarray(path.vertices, np.float32) for path in of.get_paths()]
        plot.patches([p[:, 0] for p in outlines], [p[:, 1] for p in outlines], **look)
        return []
    if not isinstance(of, LineCollection):
        raise UnknownArtistError
    pieces = [np.asarray(piece, np.float32) for piece in of.get_segments()]
    values = of.get_array()
    colours = np.broadcast_to(of.get_colors() if values is None else of.to_rgba(values), (len(pieces), 4))
    data = {
        "x": [piece[:, 0] for piece in pieces],
        "y": [piece[:, 1] for piece in pieces],
        "colour": [matplotlib.colors.to_hex(colour) for colour in colours],
    }
    width = 1.4 * float(np.atleast_1d(of.get_linewidth())[0])
    plot.multi_line("x", "y", source=ColumnDataSource(data), line_color="colour", line_width=width)
    return []


def _patch(plot: Any, axes: Axes, of: Artist, look: dict[str, Any]) -> None:
    """Bars, and spans over the whole height or width."""
    from bokeh.models import BoxAnnotation

    if isinstance(of, Rectangle):
        left, bottom, within = of.get_x(), of.get_y(), of.get_data_transform()
        right, top = left + of.get_width(), bottom + of.get_height()
        if within == axes.transData:
            plot.quad(left=[left], right=[right], bottom=[bottom], top=[top], **look)
        elif within == axes.get_xaxis_transform():
            plot.add_layout(BoxAnnotation(left=left, right=right, level="underlay", **look))
        elif within == axes.get_yaxis_transform():
            plot.add_layout(BoxAnnotation(bottom=bottom, top=top, level="underlay", **look))
        else:
            raise UnknownArtistError
    elif isinstance(of, Polygon) and of.get_data_transform() == axes.transData:
        x, y = np.asarray(of.get_xy(), np.float32).T
        plot.patch(x, y, **look)
    else:
        raise UnknownArtistError


def _plain(text: str) -> str:
    """A text of ``plot_label``, as it was before; never mathematics of Bokeh, which begins with ``$$``."""
    return text.replace(r"\$", "$").replace("$$", "$\u200b$")
