"""What a robot's page counts of its emulator's faults is what the emulator has."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[3] / "docs" / "robots"
EMULATORS = {  # page: module of its faults, and the library that this needs
    "so-101": ("servos.feetech_wire", ""), "dynamixel": ("servos.dynamixel_wire", ""), "go2": ("go2.wire", ""),
    "g1": ("g1.wire", ""), "f1tenth": ("f1tenth.wire", ""), "ur": ("ur.wire", ""), "px4": ("px4.wire", "pymavlink"),
    "crazyflie": ("crazyflie.wire", "cflib"), "franka": ("franka.wire", "franky_sim"),
}  # fmt: skip
COUNTED = r"Of (?:its|the) (\d+) faults(?: \(`--fault list`\))?,(?: with either kind of version,)? (\d+) are"


def text_of(page: str) -> str:
    return " ".join((PAGES / f"{page}.md").read_text().split())


@pytest.mark.parametrize("page", EMULATORS)
def test_a_page_counts_the_faults_and_those_that_are_tolerated(page: str) -> None:
    module, library = EMULATORS[page]
    if library:
        pytest.importorskip(library, reason=f"{library} is missing: pip install 'robo-rl[dev]'")
    faults = importlib.import_module(f"robo_rl.deploy.emulate.{module}").FAULTS
    named = [one for name, one in faults.items() if name]
    assert re.findall(COUNTED, text_of(page)) == [(str(len(named)), str(sum(one.borne for one in named)))]


def test_the_parts_of_what_becomes_of_a_vehicle_with_px4_are_all_of_it() -> None:
    (numbers,) = re.findall(
        r"After (\d+) of the other (\d+) PX4 lands.*?\((\d)\).*?\((\d)\).*?\((\d)\)", text_of("px4")
    )
    slowly, others, *rest = map(int, numbers)
    assert slowly + sum(rest) == others
