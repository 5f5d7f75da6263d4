"""What a bundle's contract tells is enough to rebuild what its policy is connected to: simulators know nothing else.

``benchmarks/contract_only.py`` measures all of them in many episodes.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.contract_only.interface import Policy
from tests.contract_only.rebuilt import REBUILT, ZOO, figure

FOLDER = Path(__file__).parent
FEW = {"quadrotor-hover": 40, "quadrotor-rates": 40, "car-race": 1, "car-lanes": 1, "diff-nav": 2, "arm-reach": 2}
"""Episodes, in seconds; the others belong before a release."""
MANY = {"quadrotor-track": 40, "quadrotor-rates-crazyflie": 40, "diff-follow": 4, "arm-place": 4, "go2-flat": 3,
        "go2-rough": 3, "go2-recover": 4, "g1-walk": 3, "car-practice": 4, "car-traffic": 4, "car-traffic-lidar": 4,
        "arm-insert": 4, "arm-place-so101": 8, "mobile-place": 4}  # fmt: skip


def test_the_simulators_import_nothing_of_the_project_that_wrote_the_contract() -> None:
    for file in FOLDER.glob("*.py"):
        tree = ast.parse(file.read_text())
        found = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        found |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        roots = {name.split(".")[0] for name in found}
        assert not roots & {"robo_rl", "sim", "deploy", "controllers", "torch"}, file


@pytest.mark.parametrize(
    ("name", "episodes"),
    [*FEW.items(), *(pytest.param(name, n, marks=pytest.mark.release) for name, n in MANY.items())],
)
def test_a_policy_does_as_well_in_a_simulator_made_from_its_contract(name: str, episodes: int) -> None:
    """All but one of few episodes, or but a tenth of many."""
    assert REBUILT[name](episodes) >= 1.0 - max(1.0, 0.1 * episodes) / episodes * (episodes > 2)
    assert figure(name) > 0.94


@pytest.mark.parametrize("name", sorted(file.stem for file in ZOO.glob("*.onnx")))
def test_what_a_contract_does_not_say_of_a_signal_by_its_name_unit_and_frame_it_says_in_facts(name: str) -> None:
    contract = Policy(ZOO / f"{name}.onnx", 1).contract
    facts = contract["facts"]
    assert facts["episode"] > 0
    assert facts["success"]
    for signal in contract["signals"]:
        what = signal["name"]
        if signal["layout"] is not None:
            assert len(facts["mounting"][what]["position"]) == 3
            assert "range_max" in facts["nothing_seen"][what]
        if what in ("route", "path_points"):
            assert len(facts["along_path_m"][what]) == signal["shape"][0]
        if signal["source"] == "operator" or what.startswith(
            ("cube", "hole", "lane", "neighbour", "light", "waypoint")
        ):
            assert facts["references"][what], what
        if what == "lane_offset":
            assert facts["lane_width_m"] > 0
            assert len(facts["neighbour_size_m"]) == 2
        if what == "light_state":
            assert facts["yellow_s"] > 0
    for command in contract["commands"]:
        if command["name"] == "body_rate":
            assert command["law"]["kind"] == "rate"
        if command["name"] == "tool_position_target":
            assert len(facts["tool"]["turn"]["orientation"]) == 4
            assert len(facts["null_space"]["posture"]) == 7
    if name.endswith(("place", "so101")):
        assert {"size", "mass", "friction"} <= set(facts["object"])
