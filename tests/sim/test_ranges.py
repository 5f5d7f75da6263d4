"""Ranges and the rules that move them."""

from __future__ import annotations

import math
import re

import pytest
import torch

from robo_rl.sim.accelerate.fuse import streams
from robo_rl.sim.ranges import Levels, Range, Rule, replaced
from robo_rl.sim.tasks.loading import load_task

RANGES = {"mass": Range((0.9, 1.1), (0.5, 2.0)), "wind": Range.fixed(-1.0, 1.0, count=3), "tilt": Range((0, 0), (0, 1))}
TILT = Rule("tilt", metric="survived", up=0.5, down=0.5, step=0.25)


def draw(levels: Levels, ids: list[int] | range) -> dict[str, torch.Tensor]:
    rows = list(ids)
    fixed = {name: value[rows] for name, value in levels.fixed.items()}
    return levels.named(levels.draw(levels.level[rows], streams(0, len(levels.level))[rows], fixed))


def move(levels: Levels, ids: list[int], **metrics: list[float]) -> None:
    values = {name: torch.tensor(value) for name, value in metrics.items()}
    levels.level[ids] = levels.moved(levels.level[ids], values)


def test_ranges_without_a_rule_stand_at_their_end_and_fill_it() -> None:
    drawn = draw(Levels(RANGES, (), 20_000), range(20_000))
    assert drawn["mass"].shape == (20_000,)
    assert drawn["wind"].shape == (20_000, 3)
    for name, low, high in (("mass", 0.5, 2.0), ("wind", -1.0, 1.0)):
        assert low <= drawn[name].min() < low + 0.01
        assert high - 0.01 < drawn[name].max() <= high
    assert float(drawn["mass"].mean()) == pytest.approx(1.25, abs=0.02)
    assert float(torch.corrcoef(drawn["wind"].T)[0, 1].abs()) < 0.03


def test_bounds_widen_linearly_with_the_level() -> None:
    levels = Levels(RANGES, (Rule("mass", "survived", 0.5, 0.5, 0.1),), 20_000)
    for level, low, high in ((0.0, 0.9, 1.1), (0.5, 0.7, 1.55), (1.0, 0.5, 2.0)):
        levels.level[:, levels.names.index("mass")] = level
        mass = draw(levels, range(20_000))["mass"]
        assert float(mass.min()) == pytest.approx(low, abs=0.01)
        assert float(mass.max()) == pytest.approx(high, abs=0.01)


def test_rules_raise_and_lower_the_level_of_single_environments_within_0_and_1() -> None:
    levels = Levels(RANGES, (TILT,), 3)
    for _ in range(3):
        move(levels, [0, 2], survived=[1.0, 0.0])
    assert levels.level[:, levels.names.index("tilt")].tolist() == [0.75, 0.0, 0.0]
    for _ in range(3):
        move(levels, [0, 2], survived=[1.0, 1.0])
    assert levels.level[:, levels.names.index("tilt")].tolist() == [1.0, 0.0, 0.75]
    assert levels.mean() == {"tilt": pytest.approx(1.75 / 3)}


def test_fixed_ranges_give_one_value_or_one_per_environment() -> None:
    levels = Levels(RANGES, (TILT,), 4)
    levels.fix("wind", 2.5)
    assert (draw(levels, range(4))["wind"] == 2.5).all()
    levels.fix("mass", torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert draw(levels, [3, 1])["mass"].tolist() == [4.0, 2.0]
    levels.fix("mass", torch.tensor([1.0, float("nan"), 3.0, 4.0]))
    assert draw(levels, [3, 1])["mass"][0] == 4.0
    assert 0.5 <= draw(levels, [3, 1])["mass"][1] <= 2.0
    with pytest.raises(ValueError, match="'wnid' is not one of the task's ranges"):
        levels.fix("wnid", 0.0)


def test_a_draw_depends_on_its_own_stream_and_level_alone() -> None:
    levels = Levels(RANGES, (), 50)
    whole, some = draw(levels, range(50)), draw(levels, [7, 31, 2])
    for name, value in whole.items():
        assert torch.equal(some[name], value[[7, 31, 2]])
    assert len(torch.unique(whole["mass"])) == 50


@pytest.mark.parametrize("bounds", [((1.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, 0.0))])
def test_swapped_bounds_are_refused(bounds: tuple) -> None:
    with pytest.raises(ValueError, match="low <= high"):
        Range(*bounds)


def test_a_rule_that_matches_nothing_or_lacks_its_metric_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rule 'tlit' matches none"):
        Levels(RANGES, (Rule("tlit", "survived", 0.5, 0.5, 0.1),), 2)
    with pytest.raises(ValueError, match="needs metric 'survived'"):
        move(Levels(RANGES, (TILT,), 2), [0], alive=[1.0])


def test_a_pattern_moves_all_ranges_that_it_matches() -> None:
    levels = Levels({"initial/a": RANGES["tilt"], "initial/b": RANGES["tilt"]}, (Rule("initial/*", "x", 1, 0, 0.5),), 2)
    move(levels, [1], x=[1.0])
    assert levels.mean() == {"initial/a": 0.25, "initial/b": 0.25}


def test_ranges_survive_a_file_and_replace_those_of_a_task(tmp_path):
    from robo_rl.sim.ranges import read_ranges, write_ranges

    known = {"mass": Range.fixed(0.9, 1.1), "bias": Range.fixed(-1.0, 1.0, count=3)}
    file = tmp_path / "fitted.toml"
    write_ranges(file, "walk", {"bias": (0.25, 0.5)}, "from a test")
    found = replaced(known, read_ranges(file, "walk", known))
    assert found["mass"] == known["mass"]
    assert (found["bias"].start, found["bias"].end, found["bias"].count) == ((0.25, 0.5), (0.25, 0.5), 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ranges]\nweight = [0, 1]", r"'weight' is not one of the ranges of task 'walk'; expected one of \['mass'\]"),
        ("[ranges]\nmass = [2, 1]", r"mass is \[2, 1\]; expected two finite numbers, the lower one first"),
        ("[ranges]\nmass = [nan, 1]", "expected two finite numbers"),
        ("[ranges]\nmass = 3", "expected two finite numbers"),
        ("task = 'fly'\n[ranges]\nmass = [0, 1]", "task is 'fly'; expected 'walk'"),
        ("masses = 3\n[ranges]\nmass = [0, 1]", "masses is an unknown field"),
        ("ranges = {}", "expected a table with at least one range"),
        ("[ranges", "expected TOML"),
    ],
)
def test_a_file_of_ranges_that_is_wrong_is_refused_with_what_was_expected(tmp_path, text, said):
    from robo_rl.sim.ranges import read_ranges

    file = tmp_path / "ranges.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_ranges(file, "walk", {"mass": Range.fixed(0.9, 1.1)})


@pytest.mark.parametrize(
    ("task", "name", "value", "sentence"),
    [
        ("quadrotor-hover", "delay", -1.0, "delay is -1 s; expected at least 0"),
        ("quadrotor-hover", "mass", -0.1, "mass is -0.1 ×; expected at least 0"),
        ("go2-flat", "payload", -0.5, "payload is -0.5 kg; expected at least 0"),
        ("go2-flat", "ground_friction", -0.1, "ground_friction is -0.1; expected at least 0"),
        ("arm-place", "dropout/cube_position", 1.5, "dropout/cube_position is 1.5; expected 0 to 1"),
        ("swarm-swap", "columns", 0.4, "columns is 0.4 × cells; expected 0 to 0.203"),
    ],
)
def test_what_there_can_not_be_is_refused_as_one_value_and_as_bounds(
    task: str, name: str, value: float, sentence: str
) -> None:
    spec = load_task(task).spec
    for refused in (
        lambda: Levels(spec.ranges, [], 4).fix(name, value),
        lambda: Levels(spec.ranges, [], 4).fix(name, torch.tensor([math.nan, value, math.nan, math.nan])),
        lambda: replaced(spec.ranges, {name: (value, value)}),
    ):
        with pytest.raises(ValueError, match=re.escape(f"ranges: {sentence}")):
            refused()


def test_beyond_training_is_possible_where_it_has_a_meaning() -> None:
    ranges = load_task("go2-flat").spec.ranges
    for name, value in (("command/x", -2.0), ("payload", 8.0), ("center_of_mass", -0.1), ("base_mass", 0.3)):
        Levels(ranges, [], 4).fix(name, value)
    again = replaced(replaced(ranges, {"payload": (1.0, 2.0)}), {"payload": (0.0, 3.0)})
    assert again["payload"].end == (0.0, 3.0)
