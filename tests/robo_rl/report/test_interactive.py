"""Plots to look into: the same numbers as in the drawing, in a page that asks for nothing."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from robo_rl.contract import Network, Provenance
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.files.escaping import plot_label
from robo_rl.policies.loading import Loaded, load
from robo_rl.report import interactive
from robo_rl.report.findings import Findings, Plot, Section, Subject
from robo_rl.report.general import write
from robo_rl.report.plots import small_axes, styled
from robo_rl.sim.tasks.loading import load_task

STRANGER = f"{Path(__file__).parents[1] / 'viewer' / 'cart_and_pole.py'}:Balance"

NAME = r"</script><b>$$x$$"
"""What a stranger may call something."""


@styled
def drawn() -> Figure:
    """Lines, steps, areas, bars, and lines over the whole plot."""
    figure, axes = small_axes((4, 2.7), "time, s", plot_label(NAME))
    axes.plot([0.0, 1.0, 2.0], [0.5, 2.0, 1.0], label=plot_label(NAME), color="#0072B2")
    axes.plot([0.0, 1.0], [0.0, 0.25], color="#0072B2")
    axes.step([0.0, 2.0], [1.0, 3.0], "--", where="post", label="classical", color="#D55E00")
    axes.plot([1.0], [1.5], "x", color="#D55E00")
    axes.fill_between([0.0, 1.0], [0.0, 0.0], [1.0, 2.0], alpha=0.2)
    axes.bar([0.5], [1.25], width=0.5)
    axes.axhline(2.5)
    axes.axvspan(0.5, 0.75, alpha=0.1)
    axes.set_yticks([0.0, 1.0, 2.0], ["none", "one", "two"])
    axes.legend()
    return figure


def models(item: Any, kind: str) -> list[dict[str, Any]]:
    """All of a kind in a document, with their attributes."""
    found = []
    if isinstance(item, dict):
        if item.get("name") == kind and item.get("type") == "object":
            found.append(item.get("attributes", {}))
        parts = list(item.values())
    else:
        parts = item if isinstance(item, list) else []
    return found + [model for part in parts for model in models(part, kind)]


def numbers(array: Any) -> list[float]:
    """Of a column."""
    return np.frombuffer(gzip.decompress(base64.b64decode(array["array"]["data"])), array["dtype"]).tolist()


def columns(item: Any, name: str) -> list[list[float]]:
    """All with this name that are arrays."""
    found = []
    for source in models(item, "ColumnDataSource"):
        for key, value in source["data"]["entries"]:
            if key == name and isinstance(value, dict) and value.get("type") == "ndarray":
                found.append(numbers(value))
    return found


def test_the_plot_has_the_points_of_the_drawing() -> None:
    item = interactive.told(drawn())
    assert columns(item, "x") == [[0.0, 1.0, 2.0], [0.0, 1.0], [0.0, 2.0], [1.0]]
    assert columns(item, "y") == [[0.5, 2.0, 1.0], [0.0, 0.25], [1.0, 3.0], [1.5]]
    assert len(models(item, "Step")) > 0
    (span,) = models(item, "Span")
    assert span["location"] == 2.5
    assert (0.5, 0.75) in [(box.get("left"), box.get("right")) for box in models(item, "BoxAnnotation")]
    (quad,) = models(item, "Quad")[:1]
    assert quad["fill_color"]["value"].startswith("#")


def test_lines_of_one_name_are_hidden_together_and_names_are_not_mathematics() -> None:
    (legend,) = models(interactive.told(drawn()), "Legend")
    assert legend["click_policy"] == "hide"
    items = [model["attributes"] for model in legend["items"]]
    assert [item["label"]["value"].replace("\u200b", "") for item in items] == [NAME, "classical"]
    assert "$$" not in items[0]["label"]["value"]
    assert [len(item["renderers"]) for item in items] == [2, 1]


def test_axes_that_are_shared_are_zoomed_together() -> None:
    figure = Figure()
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot([1, 10], [1, 2])
    lower.plot([1, 10], [3, 4])
    lower.set_xscale("log")
    item = interactive.told(figure)
    plots = models(item, "Figure")
    assert len(plots) == 2
    assert len({plot["x_range"].get("id") for plot in plots}) == 1
    assert len({plot["y_range"].get("id") for plot in plots}) == 2
    assert len(models(item, "LogScale")) >= 1


def test_lines_coloured_piece_by_piece_keep_their_colours() -> None:
    figure = Figure()
    axes = figure.subplots()
    pieces = LineCollection([np.array([[0, 0], [1, 1]]), np.array([[1, 1], [2, 0]])], cmap="viridis")
    pieces.set_array(np.array([0.0, 1.0]))
    axes.add_collection(pieces)
    figure.colorbar(pieces, ax=axes)
    item = interactive.told(figure)
    assert len(models(item, "Figure")) == 1, "the colour bar is none"
    (source,) = models(item, "ColumnDataSource")
    assert dict(source["data"]["entries"])["colour"] == ["#440154", "#fde725"]


def test_what_is_not_known_stays_a_drawing() -> None:
    for draw in (lambda axes: axes.imshow(np.eye(2)), lambda axes: axes.add_patch(Ellipse((0, 0), 1, 1))):
        figure = Figure()
        draw(figure.subplots())
        assert interactive.told(figure) is None


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with the plot, in a section of a user's own; beside it the same, plain."""
    folder = tmp_path_factory.mktemp("page")
    task, policy = load_task(STRANGER), load("classical", STRANGER).policy
    contract = task.spec.contract(Provenance("ppo", 0, 1000, "0" * 64), Network((8,), "elu", False))
    episodes = rollout(task, policy, Conditions(40, recorded=8))
    subjects = [Subject("runs/late", Loaded("late", task, policy), episodes, contract)] * 2
    findings = Findings(task, Conditions(40), subjects)
    write(findings, [Section("own", "Own", plots=[Plot(drawn(), "caption")])], folder / "page.html")
    write(findings, [], folder / "plain.html", plain=True)
    return folder / "page.html"


def test_two_policies_are_compared_in_the_same_plots(page: Path) -> None:
    text = page.read_text()
    survival = re.search(r'id="episodes">.*?</svg>', text, re.DOTALL)
    assert survival is not None
    assert ">policy<" in survival[0]
    assert ">policy 2<" in survival[0]
    assert text.split('id="results"')[1].count("policy 2: late") == 1


def test_a_plain_page_has_no_script(page: Path) -> None:
    plain = (page.parent / "plain.html").read_text()
    assert "script-src" not in plain
    assert set(re.findall(r"<script[^>]*>", plain)) == {'<script type="application/json" id="figures">'}
    assert len(plain) + 1_200_000 < page.stat().st_size < 2_500_000


@pytest.mark.browser
@pytest.mark.slow
def test_a_press_shows_the_plot_and_the_pointer_reads_it(page: Path, open_page: Callable[..., Browser]) -> None:
    opened = open_page(page.as_uri())
    opened.until("document.readyState == 'complete'")
    first = "document.querySelector('button.look-into').closest('figure')"
    assert opened.run(f"getComputedStyle({first}.querySelector('svg')).display") != "none"
    opened.run("document.querySelector('button.look-into').scrollIntoView({block: 'end'})")
    opened.click("button.look-into")
    opened.until("Bokeh.documents.length == 1 && Bokeh.documents[0].is_idle")
    assert opened.run(f"getComputedStyle({first}.querySelector('svg')).display") == "none"
    view = "Bokeh.index.roots[0]"
    frame = f"[...{view}.child_views].flatMap(v => [v, ...(v.child_views ?? [])]).find(v => v.frame)"
    x, y = opened.run(
        f"(v => {{ const b = v.el.getBoundingClientRect(), s = v.frame;"
        "return [b.x + s.bbox.left + s.x_scale.compute(1) - s.bbox.left, b.y + s.y_scale.compute(2)] })"
        f"({frame})"
    )
    for step in (3, 0):
        opened.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x + step, y=y)
    opened.run(
        "said = e => (e.textContent ?? '') +"
        "[...e.querySelectorAll('*')].map(x => x.shadowRoot ? said(x.shadowRoot) : '').join(' ')"
    )
    opened.until("said(document).includes('time, s: 1')")
    assert opened.run("[...document.querySelectorAll('b')].every(e => e.closest('.cards'))"), "names are no markup"
    opened.run("document.querySelector('button.look-into').scrollIntoView({block: 'center'})")
    opened.click("button.look-into")
    assert opened.run(f"getComputedStyle({first}.querySelector('svg')).display") != "none"
    assert [asked for asked in opened.requests if not asked.startswith(("data:", "file:"))] == []
    assert opened.complaints == []
