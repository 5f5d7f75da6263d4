"""The report on multirotors: its figures against the evaluation's, its contents in a real browser."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser import without_scripts
from scipy.spatial.transform import Rotation

from robo_rl.commands.looking import evaluate, report
from robo_rl.commands.training import train
from robo_rl.evaluate.evaluation import Conditions, quantity, rollout
from robo_rl.learn.config import ApgConfig
from robo_rl.policies.loading import Loaded, load
from robo_rl.report.findings import Findings, Subject
from robo_rl.report.general import RANGES_SHOWN, _compare, failures, gather
from robo_rl.report.multirotor import motion
from robo_rl.sim.tasks.loading import load_task

pytestmark = pytest.mark.slow
EPISODES = 60
SAME = ["episodes", "success", "success_low", "success_high", "position_error_mean_m", "tracking_error_rms_m"]


def said(command: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
    """What a command prints for machines."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command(*arguments, json=True, **options) == 0
    return json.loads(out.getvalue().splitlines()[-1])


@pytest.fixture(scope="module")
def made(trained_run: Path, bundle_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """The page about a run and its exported file, and what the command said."""
    out = tmp_path_factory.mktemp("report") / "report.html"
    result = said(report.main, (str(trained_run), str(bundle_file)), out=out, episodes=EPISODES)
    assert result["file"] == str(out)
    assert result["bytes"] == out.stat().st_size
    return out.read_text(), result


@pytest.fixture(scope="module")
def novice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of quadrotor-track that ended after one update: it can't fly."""
    folder = tmp_path_factory.mktemp("runs")
    assert train.main("quadrotor-track", runs=folder, episodes=0, apg=ApgConfig(updates=1)) == 0
    (run,) = folder.iterdir()
    return run


def text(page: str, element: str) -> str:
    """The text of the element with that id."""
    found = re.search(rf'id="{element}"[^>]*>(.*?)</', page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1]).strip()


def probed(page: str, probe: str) -> str:
    """The page with a script, which its own rules don't allow; what the script tells is the text of "found"."""
    tell = """<script>function tell(what) { document.body.append(
      Object.assign(document.createElement("pre"), { id: "found", textContent: what })); }</script>"""
    own = re.sub(r"; script-src [^\"]*", "", page, count=1)
    allowed = own.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
    before, _, after = allowed.rpartition("</body>")
    return f"{before}{tell}{probe}</body>{after}"


def test_the_page_tells_the_figures_that_the_command_gives(made):
    page, result = made
    embedded = json.loads(re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)[1])
    assert embedded == {key: value for key, value in result.items() if key not in ("file", "bytes")}
    assert text(page, "success") == f"{100 * result['success']:.1f} %"
    assert text(page, "position_error_mean_m") == f"{100 * result['position_error_mean_m']:.2f} cm"


def test_the_figures_are_those_of_robo_rl_evaluate(made, trained_run):
    _, result = made
    policy = said(evaluate.main, str(trained_run), episodes=EPISODES)
    controller = said(evaluate.main, "classical", episodes=EPISODES, task="quadrotor-hover")
    assert [result[key] for key in SAME] == [policy[key] for key in SAME]
    assert [result["classical"][key] for key in SAME] == [controller[key] for key in SAME]


def test_an_exported_file_gets_its_own_row_and_flies_like_its_run(made, bundle_file):
    page, result = made
    run, bundle = result["targets"]
    assert bundle["target"] == str(bundle_file)
    assert bundle["success"] == run["success"]
    assert bundle["position_error_mean_m"] == pytest.approx(run["position_error_mean_m"], rel=1e-3)
    table = page.split('id="results"')[1].split("</table>")[0]
    assert len(re.findall(r"<tr><td>", table)) == 3


def test_the_controller_is_a_baseline_and_nearer_than_a_policy_that_falls(made):
    page, result = made
    assert result["classical"]["success"] > 0.8
    assert "against the controller" in page
    task, conditions = load_task("quadrotor-hover"), Conditions(episodes=100)
    both = {"stone": Loaded("stone", task, Stone()), "classical": load("classical", task)}
    stone, classical = (Subject(k, one, rollout(task, one.policy, conditions)) for k, one in both.items())
    assert _compare(stone, classical, task.measures[-1])["decision"] == "smaller"
    assert _compare(classical, stone, task.measures[-1])["decision"] == "larger"


def test_every_plot_is_followed_by_a_sentence(made):
    page, _ = made
    plots = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert len(plots) >= 15
    assert all(re.search(r"<figcaption>.{20,}\.</figcaption></figure>$", plot, re.DOTALL) for plot in plots)


def test_every_axis_has_a_label(made):
    page, _ = made
    for plot in re.findall(r"<svg.*?</svg>", without_scripts(page), re.DOTALL):
        assert len(re.findall(r"<text[^>]*>[^<]*[a-z][^<]*</text>", plot)) >= 2


def test_the_page_asks_nothing_of_the_network(made):
    page = without_scripts(made[0])
    assert not re.findall(r"""(?:src|href|srcset|action)\s*=\s*["'](?!data:|#)""", page)
    assert not re.findall(r"https?:|@import|<script(?! type=\"application/json\")|url\((?!#)", page)


def test_ids_of_all_drawings_differ(made):
    page, _ = made
    drawings = [
        set(re.findall(r' id="([^"]+)"', plot))
        for plot in re.findall(r"<svg.*?</svg>", without_scripts(page), re.DOTALL)
    ]
    clips = [
        {
            name
            for name in names
            if not re.match(r"(figure|axes|patch|line2d|text|matplotlib|xtick|ytick|leg|Fill|Path)", name)
        }
        for names in drawings
    ]
    assert any(clips)
    assert sum(map(len, clips)) == len(set().union(*clips))


def test_the_contract_table_has_every_signal_and_command(made):
    page, _ = made
    table = page.split('id="contract"')[1].split("</table>")[0]
    spec = load("classical", "quadrotor-hover").task.spec
    for channel in (*spec.signals, *spec.commands):
        assert f"<td>{channel.name}</td><td>{', '.join(channel.elements)}</td><td>{channel.unit}</td>" in table


def test_commands_to_repeat_it_are_commands(made, trained_run):
    page, _ = made
    commands = re.search(r"<pre>(.*?)</pre>", page, re.DOTALL)[1].strip().splitlines()
    assert f"robo-rl evaluate {trained_run} --episodes {EPISODES} --seed 0" in commands
    assert all(re.match(r"robo-rl (report|evaluate|transfer|play) \S", command) for command in commands)


@pytest.mark.browser
def test_in_chromium_pictures_film_and_drawings_are_there_and_nothing_is_fetched(made, chromium, tmp_path):
    page, result = made
    probe = """<script>
      const video = document.querySelector("video"), found = {};
      async function look() {
        found.pictures = [...document.images].map(image => image.naturalWidth);
        found.drawings = [...document.querySelectorAll("svg")].map(svg => svg.getBBox().width);
        found.video = [video.videoWidth, video.videoHeight, video.duration, String(video.error)];
        found.fetched = performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith("data:"));
        found.success = document.getElementById("success").textContent;
        tell(JSON.stringify(found));
      }
      if (video.readyState) look(); else video.onloadedmetadata = video.onerror = look;
    </script>"""
    copy = tmp_path / "page.html"
    copy.write_text(probed(page, probe))
    whole = tmp_path / "whole.html"
    whole.write_text(page)
    seen = chromium("--dump-dom", copy.as_uri())
    assert "CONSOLE" not in seen.stderr
    found = json.loads(text(seen.stdout, "found"))
    assert found["pictures"] == [960]
    assert min(found["drawings"]) > 100
    assert found["video"] == [480, 360, pytest.approx(5.0, abs=0.1), "null"]
    assert found["fetched"] == []
    assert found["success"] == f"{100 * result['success']:.1f} %"
    assert "CONSOLE" not in chromium("--dump-dom", whole.as_uri()).stderr


@pytest.mark.browser
def test_on_a_phone_the_page_is_no_wider_than_the_screen(made, chromium, tmp_path):
    page, _ = made
    probe = "<script>tell(`${document.documentElement.scrollWidth} ${innerWidth}`)</script>"
    copy = tmp_path / "page.html"
    copy.write_text(probed(page, probe))
    width, screen = map(
        int, text(chromium("--window-size=500,900", "--dump-dom", copy.as_uri()).stdout, "found").split()
    )
    assert width <= screen <= 500


@pytest.mark.release
def test_a_policy_that_can_not_fly_gets_a_page_too(novice, tmp_path):
    out = tmp_path / "report.html"
    result = said(report.main, (str(novice),), out=out, episodes=20)
    page = out.read_text()
    assert result["success"] < 0.5
    assert result["figure_eight_policy_rms_m"] is None or result["figure_eight_policy_rms_m"] > 0.1
    assert result["figure_eight_geometric_rms_m"] < 0.2
    error = quantity(result["figure_eight_geometric_rms_m"], "m")
    assert f'<th>classical controller</th><td class="number">{error}' in page
    lost = round(20 * (1 - result["success"]))
    rows = page.split('id="failures"')[1].split("</table>")[0].count("<tr>") - 1
    assert rows == min(lost, 12)
    assert "nan" not in re.sub(r"<svg.*?</svg>|base64,[^\"]*", "", without_scripts(page), flags=re.DOTALL)


class Stone:
    """A policy that stops all rotors."""

    def initial_state(self, n: int) -> torch.Tensor:
        return torch.zeros(n, 1)

    def __call__(self, signals: Any, state: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return {"rotor_speed": torch.zeros(len(state), 4)}, state


@pytest.fixture(scope="module")
def stone() -> Findings:
    """Of eight episodes in which all rotors stop."""
    task, conditions = load_task("quadrotor-hover"), Conditions(episodes=10, seed=3, recorded=8)
    return Findings(
        task, conditions, [Subject("stone", Loaded("stone", task, Stone()), rollout(task, Stone(), conditions))]
    )


def test_failures_are_listed_with_the_conditions_under_which_they_flew(stone):
    episodes, rows = stone.episodes["policy"], failures(stone)
    assert [row["episode"] for row in rows] == list(range(1, 11))
    upright = Rotation.from_quat(episodes.recording["orientation"][0]).as_matrix()[:, 2, 2]
    np.testing.assert_allclose([row["initial tilt, rad"] for row in rows[:8]], np.arccos(upright), atol=1e-3)
    np.testing.assert_allclose([row["lasted, s"] for row in rows], episodes.duration, rtol=1e-6)
    wind, column = np.linalg.norm(episodes.drawn["wind"], axis=1), "wind (each of 3), m/s"
    shown = [name for name in rows[0] if name not in ("episode", "lasted, s", "initial tilt, rad")]
    assert 1 <= len(shown) <= RANGES_SHOWN
    for name in {column} & set(shown):  # it is among those in which failures differ most, or is left out
        np.testing.assert_allclose([row[name] for row in rows], wind, rtol=1e-6)


def test_plots_of_motion_show_what_was_recorded(stone):
    episodes = stone.episodes["policy"]
    recording, steps = episodes.recording, np.round(100 * episodes.duration[:8]).astype(int)
    above, tilts, heights, speeds = (plot.figure.axes[0] for plot in motion(stone).plots)
    ways = [line for line in above.lines if line.get_linestyle() == "-"]
    for i, (way, tilt, height) in enumerate(zip(ways, tilts.lines, heights.lines[:8], strict=True)):
        np.testing.assert_array_equal(way.get_xydata(), recording["position"][: steps[i] : 2, i, :2])
        upright = Rotation.from_quat(recording["orientation"][: steps[i], i]).as_matrix()[:, 2, 2]
        np.testing.assert_allclose(tilt.get_ydata(), np.degrees(np.arccos(upright))[:150], atol=1e-6)
        away = (recording["position"] - recording["position_setpoint"])[: steps[i], i, 2]
        np.testing.assert_allclose(height.get_ydata(), away[:250], atol=1e-6)
    drawn = [line.get_ydata() for line in speeds.lines[:8:2]]
    np.testing.assert_array_equal(drawn, recording["rotor_speed"][: min(steps[0], 150), 0].T)


def test_targets_of_different_tasks_are_refused(trained_run, novice):
    with pytest.raises(ValueError, match="quadrotor-track"):
        gather([str(trained_run), str(novice)], 20)
