"""The report on any task, by a stranger's cart with a pole: its figures, what is drawn, and what it refuses."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import html
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import without_scripts
from matplotlib.patches import Rectangle

from robo_rl.commands.looking import evaluate, report
from robo_rl.commands.training import train
from robo_rl.contract import Network, Provenance
from robo_rl.contract.kinds import kinds_in
from robo_rl.evaluate.evaluation import Conditions, Episodes, rollout
from robo_rl.evaluate.transfer import kept
from robo_rl.learn.config import PpoConfig
from robo_rl.policies.loading import Loaded, load
from robo_rl.report import kind_report, plots
from robo_rl.report.findings import Findings, Subject
from robo_rl.report.general import (
    _is_clock,
    error_series,
    failures,
    gather,
    read_transfer,
    sections_of,
    summaries,
    write,
)
from robo_rl.report.page import duration, listed, rows, span
from robo_rl.report.worst import caption, films, rerun, worst
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import card_types
from robo_rl.sim.tasks import Measure, Task
from robo_rl.sim.tasks.loading import load_task

STRANGER = f"{Path(__file__).parents[1] / 'viewer' / 'cart_and_pole.py'}:Balance"
TASK = load_task(STRANGER)
CONTROLLER = load("classical", STRANGER)
CONTRACT = TASK.spec.contract(Provenance("ppo", 0, 1000, "0" * 64), Network((8,), "elu", False))


class Late:
    """The classical controller with a quarter of its force: the pole falls where it leans far at first."""

    def initial_state(self, n: int) -> Any:
        return CONTROLLER.policy.initial_state(n)

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        commands, state = CONTROLLER.policy(signals, state)
        return {"force": 0.25 * commands["force"]}, state


def subject(task: Task = TASK, count: int = 40, **conditions: Any) -> Subject:
    """The late controller as a policy."""
    loaded = Loaded("late", task, Late())
    return Subject("runs/late", loaded, rollout(task, Late(), Conditions(count, recorded=8, **conditions)), CONTRACT)


def lines(figure: Any) -> list[np.ndarray]:
    """Of the first axes, (points, 2) each."""
    return [line.get_xydata() for line in figure.axes[0].lines]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], str]:
    """The page about a run of the stranger's kind, what the command said, and the run."""
    runs, ranges = tmp_path_factory.mktemp("runs"), PpoConfig(updates=2)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert train.main(STRANGER, algorithm="ppo", ppo=ranges, runs=runs, episodes=0) == 0
        (run,) = runs.iterdir()
        assert report.main((str(run),), episodes=30, json=True) == 0
    result = json.loads(out.getvalue().splitlines()[-1])
    assert result["file"] == str(run / "report.html")
    return (run / "report.html").read_text(), result, str(run)


@pytest.mark.slow
@pytest.mark.release  # with every change that of the example: tests/examples/test_own_kind.py
def test_a_stranger_s_kind_gets_a_report_with_its_own_measures(made: tuple[str, dict[str, Any], str]) -> None:
    page, result, run = made
    with contextlib.redirect_stdout(io.StringIO()) as out:
        evaluate.main("classical", episodes=30, task=STRANGER, json=True)
    controller = json.loads(out.getvalue().splitlines()[-1])
    assert result["classical"] == {key: controller[key] for key in result["classical"]}
    assert {"cart_error_mean_m", "cart_error_p95_m", "angle_error_mean_rad", "decision"} <= set(result)
    shown = re.search(r'id="angle_error_mean_rad">(.*?)</b>', page)
    known = result["angle_error_mean_rad"]
    assert shown is not None
    assert shown[1] == ("n/a (no episode without failure)" if known is None else f"{known:.3f} rad")
    table = page.split('id="results"')[1].split("</table>")[0]
    assert f"<td>classical controller</td><td>{100 * controller['success']:.1f} %" in table
    assert "A failed episode counts as the largest angle error of" in page
    commands = html.unescape(page.split("<pre>")[1].split("</pre>")[0])
    assert f"robo-rl report {run} --episodes 30 --seed 0" in commands
    assert re.search(r"robo-rl evaluate classical --task \S*cart_and_pole.py:Balance --episodes 30", commands)
    assert "nan" not in re.sub(r"<svg.*?</svg>|base64,[^\"]*", "", without_scripts(page), flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", without_scripts(page))


def test_a_task_without_classical_controller_and_sweeps_gets_a_page_about_its_policies(tmp_path: Path) -> None:
    findings = Findings(TASK, Conditions(40), [subject(), subject()])
    assert sections_of(findings) == []
    write(findings, [], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "classical" not in page
    assert 'id="robustness"' not in page
    assert page.split('id="results"')[1].split("</table>")[0].count(": late</td>") == 2
    assert set(findings.figures()["targets"][0]) == {"target", "name", *findings.subjects[0].figures}


def test_limits_and_elements_of_many_joints_fit_into_a_cell() -> None:
    assert span((-1.0, -1.0), (2.0, 2.0)) == "-1 to 2"
    assert span((-1.0, 0.0), 2.0) == "-1 to 2; 0 to 2"
    assert span((-1.0, 0.0) * 6, (1.0, 3.0) * 6) == "-1 to 1; 0 to 3"
    assert span(tuple(range(-12, 0)), 5.0) == "within -12 to 5"
    assert listed([f"joint_{k}" for k in range(12)]) == "joint_0, joint_1, … (12)"
    assert listed((0.5, 0.5, 0.5)) == "0.5"
    assert listed(("x", "y")) == "x, y"


def test_every_kind_with_sections_is_a_known_kind_of_robots() -> None:
    assert {"arm", "motor"} <= set(kinds_in("robo_rl.report")) <= set(card_types())
    assert kind_report("cart") is None


def test_errors_over_time_are_those_of_the_recording_until_an_episode_ends() -> None:
    episodes = subject().episodes
    series = error_series(TASK, episodes)
    place, goal = (episodes.recording[name][..., 0] for name in ("cart_position", "cart_setpoint"))
    steps = np.round(episodes.duration[:8] / 0.02).astype(int)
    assert len(set(steps)) > 1, "some fail"
    for i, count in enumerate(steps):
        np.testing.assert_allclose(series["cart_error"][i], np.abs(place - goal)[:count, i], rtol=1e-6)
    failed = ~episodes.survived[:8]
    figure = plots.errors({"policy": series["cart_error"]}, {"policy": failed.tolist()}, TASK.measures[0], 0.02)
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert len(crosses) == failed.sum()
    drawn = [line for line in figure.axes[0].lines if line.get_marker() != "x"]
    for i, line in enumerate(drawn):
        assert line.get_xdata()[-1] == pytest.approx(episodes.duration[i] - 0.02)
        np.testing.assert_allclose(line.get_ydata(), 100 * series["cart_error"][i], rtol=1e-6)  # cm
    for i, cross in zip(np.flatnonzero(failed), crosses, strict=True):
        assert cross.get_ydata()[-1] == pytest.approx(100 * series["cart_error"][i][-1])


def ended(duration: list[float], failed: list[bool], success: list[bool] | None = None) -> Episodes:
    """Episodes that ended after these times (s)."""
    survived = ~np.array(failed)
    won = survived if success is None else np.array(success)
    return Episodes(survived, won, np.array(duration), (), {})


def test_survival_goes_down_at_each_failure_and_stays() -> None:
    figure = plots.survival({"policy": ended([20.0, 5.0, 2.0, 20.0], [False, True, True, False])}, 20.0)
    assert lines(figure)[0].tolist() == [[0, 100], [2, 75], [5, 50], [20, 50]]


def test_success_rises_where_episodes_reach_their_end() -> None:
    figure = plots.success(
        {"policy": ended([3.0, 20.0, 2.0, 5.0], [False] * 3 + [True], [True, False, True, False])}, 20
    )
    assert lines(figure)[0].tolist() == [[0, 0], [2, 25], [3, 50], [20, 50]]


def test_a_distribution_ends_at_the_part_that_did_not_fail() -> None:
    nan = float("nan")
    error = {"policy": np.array([0.3, nan, 0.1, 0.2]), "classical": np.array([0.2, 0.2, 0.4, nan])}
    classical, policy = lines(plots.distribution(error, Measure("reach_error", "m", "mean")))
    np.testing.assert_allclose(policy, [[10, 25], [20, 50], [30, 75]])
    np.testing.assert_allclose(classical, [[20, 25], [20, 50], [40, 75]])


def test_green_in_the_plot_of_a_sweep_is_what_training_drew() -> None:
    rows = [
        {"value": x, "success": 0.9, "success_low": 0.8, "success_high": 0.95, "reach_error_mean_m": 0.1 * x}
        for x in (0.0, 0.01, 0.03)
    ]
    trained, measure = Range.fixed(0.0, 0.02, unit="s"), Measure("reach_error", "m", "mean")
    figure = plots.perturbation("arm/delay", {"policy": rows}, measure, trained)
    upper, lower = figure.axes
    (green,) = [patch for patch in upper.patches if isinstance(patch, Rectangle)]
    assert (green.get_x(), green.get_width()) == pytest.approx((0.0, 20.0)), "ms"
    assert lower.get_xlabel() == "arm delay, ms"
    np.testing.assert_allclose(lower.lines[0].get_xydata(), [[0, 0], [10, 0.1], [30, 0.3]])
    np.testing.assert_allclose(upper.lines[0].get_ydata(), 90.0)


def test_failures_are_listed_with_what_was_drawn_for_them_the_telling_range_first() -> None:
    one = subject(count=200)
    rows = failures(Findings(TASK, Conditions(200), [one]))
    lost = np.flatnonzero(~one.episodes.survived)
    assert 12 < len(lost) < 180
    assert [row["episode"] for row in rows] == [int(i) + 1 for i in lost[:12]]
    assert list(rows[0]) == ["episode", "lasted, s", "initial angle, rad", "mass, × nominal"], "delay is one number"
    angle = one.episodes.recording["pole_angle"][0, :, 0]
    for row in rows:
        if row["episode"] <= len(angle):
            assert row["initial angle, rad"] == pytest.approx(angle[row["episode"] - 1], abs=1e-6)
    np.testing.assert_allclose([row["lasted, s"] for row in rows], one.episodes.duration[lost[:12]], rtol=1e-6)


def test_a_line_above_a_section_tells_what_it_shows() -> None:
    """Of the lowest success, of failures, of the reward and of the contract; known ones."""
    one = dataclasses.replace(
        subject(count=200), metrics=[{"environment_steps": k, "update": k, "reward": 0.1 * k} for k in (1, 2, 4, 3)]
    )
    rows = [{"value": x, "success": p, "success_low": 0.0, "success_high": 1.0} for x, p in ((0.5, 0.9), (2.0, 0.25))]
    told = summaries(Findings(TASK, Conditions(200), [one], sweeps={"policy": {"mass": rows}}))
    assert told["robustness"].startswith("Lowest rate (no failure): 25.0 %, with mass at 2 (training: ")
    assert told["training"] == "The reward per step went from 0.1 to 0.3, 0.4 at best."
    lost = ~one.episodes.survived
    half = np.median(one.episodes.duration[lost])
    assert told["failures"] == f"{lost.sum()} of 200 episodes failed, half of them within {half:.3g} s."
    errors = one.episodes.errors["angle_error"]
    assert told["episodes"].startswith(f"Angle error: {np.nanmedian(errors):.3f} rad in the median, below ")
    assert told["results"].startswith("Smallest angle error: policy (")
    assert "(no failure " in told["results"]
    assert told["contract"] == "Reads 5 numbers in 5 signals and commands 1 number at 50 Hz."


def test_an_error_that_is_the_time_is_not_plotted_over_time() -> None:
    assert _is_clock(np.arange(1, 50) * 0.1, 0.1)
    assert not _is_clock(np.linspace(3.0, 0.0, 49), 0.1)
    assert not _is_clock(np.array([0.1]), 0.1)


def test_the_worst_episodes_are_those_that_failed_soonest_and_then_those_with_the_largest_errors() -> None:
    alive, error = [True, True, False, False, True, True], [0.1, 0.5, np.nan, np.nan, 0.2, 0.3]
    found = dataclasses.replace(
        ended([20, 20, 9.0, 2.0, 20, 20], [not one for one in alive]), errors={"angle_error": np.array(error)}
    )
    assert worst(found, TASK.measures[-1]) == [3, 2, 1, 5, 4]


def test_an_episode_that_is_run_again_alone_is_the_same_and_its_film_shows_its_last_seconds() -> None:
    one = subject(count=40)
    found = rerun(TASK, one.loaded.policy, Conditions(40), one.episodes)
    assert [again.number for again in found] == worst(one.episodes, TASK.measures[-1])
    for again in found:
        assert again.episode.survived[0] == one.episodes.survived[again.number]
        assert again.episode.duration[0] == one.episodes.duration[again.number]
    assert caption(found[0]) == f"Episode {found[0].number + 1} fails after {found[0].episode.duration[0]:.3g} s."
    (film,) = films(found[:1])
    assert base64.b64decode(film["video"])[4:8] == b"ftyp"


def test_no_row_of_plots_has_a_hole() -> None:
    assert [[len(row) for row in rows(list(range(n)))] for n in (1, 3, 4, 5, 7)] == [
        [1],
        [3],
        [2, 2],
        [2, 3],
        [2, 2, 3],
    ]
    assert rows([]) == []


def test_the_page_can_be_about_robots_in_teams(tmp_path: Path) -> None:
    task = load_task(STRANGER)
    task.spec = dataclasses.replace(task.spec, team=2)
    one = subject(task, 6)
    series = error_series(task, one.episodes)["angle_error"]
    assert len(series) == 6
    steps = len(series[3])
    both = np.abs(one.episodes.recording["pole_angle"][:steps, 6:8, 0]).mean(1)
    np.testing.assert_allclose(series[3], both, rtol=1e-6)
    assert write(Findings(task, Conditions(6), [one]), [], tmp_path / "page.html") > 10_000


def transfer_file(folder: Path, **changed: object) -> Path:
    """What 'robo-rl transfer --json' prints, after other lines."""
    home = {"success": 1.0, "success_low": 0.9, "success_high": 1.0, "episodes": 40}
    there = {"success": 0.9, "success_low": 0.8, "success_high": 0.95, "episodes": 40}
    row = {"engine": "bullet", "summary": "PyBullet", **there, **kept(home, there)}
    steps = [{"value": value, **there, **kept(home, there)} for value in (1.3, 1.4)]
    found = {"task": "balance", "robot": "cart", "home": home, "engines": [row], "perturbations": {"mass": steps}}
    path = folder / "transfer.json"
    path.write_text("balance: 40/40\n" + json.dumps(found | changed))
    return path


def test_the_page_shows_what_transfer_found_and_the_curves_of_training(tmp_path: Path) -> None:
    metrics = [
        {"environment_steps": 1e6 * k, "reward": 0.1 * k, "alive": 1.0, "level/push/x": 0.2 * k} for k in range(3)
    ]
    one = dataclasses.replace(subject(), metrics=metrics)
    findings = Findings(TASK, Conditions(40), [one], transfer=read_transfer(transfer_file(tmp_path), TASK))
    write(findings, [], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert findings.figures()["least_kept"] == pytest.approx(0.9)
    assert re.search(r'id="transfer">Other simulators.*?keeps 90.0 % of.*?PyBullet', page, re.DOTALL)
    reward, alive, level = (lines(figure)[0] for figure, _ in plots.training({"policy": metrics}))
    np.testing.assert_allclose(reward, [[0, 0], [1, 0.1], [2, 0.2]])
    np.testing.assert_allclose(alive[:, 1], 1.0)
    np.testing.assert_allclose(level, [[0, 0], [1, 0.2], [2, 0.4]])


def test_a_transfer_of_another_task_or_a_broken_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"transfer\.json: it is of go2-rough and cart; expected what 'robo-rl transfer"
    ):
        read_transfer(transfer_file(tmp_path, task="go2-rough"), TASK)
    broken = tmp_path / "broken.json"
    broken.write_text("evaluating 3/4\n")
    with pytest.raises(
        ValueError, match=r"broken\.json: JSONDecodeError.*expected what 'robo-rl transfer --json' prints"
    ):
        read_transfer(broken, TASK)
    with pytest.raises(ValueError, match="the file does not exist"):
        read_transfer(tmp_path / "none.json", TASK)


@pytest.mark.parametrize("episodes", [0, 19, 100_000])
def test_too_few_or_too_many_episodes_are_refused(bundle_file: Path, episodes: int) -> None:
    with pytest.raises(ValueError, match="expected 20 to"):
        gather([str(bundle_file)], episodes)


def test_what_is_short_is_not_told_as_no_hours() -> None:
    told = [duration(seconds) for seconds in (12.0, 59.96, 60.0, 540.0, 3600.0, 90000.0)]
    assert told == ["12.0 seconds", "60.0 seconds", "1.0 minutes", "9.0 minutes", "1.0 hours", "25.0 hours"]
