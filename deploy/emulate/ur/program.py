"""The one program that an emulated UR5e runs, as its own interpreter would; any other text is not known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from robo_rl.deploy.robot.drivers.rtde.program import INPUTS, TAKEN, TEMPLATE, Following

STEP = 0.002  # s: get_steptime() of the e-Series
NUMBER = r"-?\d+\.\d+"
LISTS, NUMBERS = ("lowest", "highest", "furthest"), ("lookahead", "gain", "deceleration", "patience")


def _pattern() -> re.Pattern[str]:
    text = re.escape(TEMPLATE)
    for name in (*LISTS, *NUMBERS):
        found = rf"\[(?:{NUMBER}, ){{5}}{NUMBER}\]" if name in LISTS else NUMBER
        place = re.escape(f"{{{name}}}")
        text = text.replace(place, f"(?P<{name}>{found})", 1).replace(place, f"(?P={name})")
    return re.compile(text)


PATTERN = _pattern()


def recognised(text: str) -> Following | None:
    """What our program is told; None for any other text."""
    if (found := PATTERN.fullmatch(text)) is None:
        return None
    lowest, highest, furthest = (tuple(map(float, found[name][1:-1].split(", "))) for name in LISTS)
    lookahead, gain, deceleration, patience = (float(found[name]) for name in NUMBERS)
    return Following(lowest, highest, furthest, lookahead, gain, deceleration, patience)


class Program:
    """It runs: see the text of ``TEMPLATE``, line by line."""

    def __init__(self, told: Following, arm: Any) -> None:
        self.told, self.goal, self.quiet = told, arm.joints.copy(), 0.0
        self.taken = self._number(arm)
        self.out_of_bounds = False

    def tick(self, arm: Any) -> None:
        """One turn of its loop, until servoj returns; it stops the arm where it ends."""
        number = self._number(arm)
        if self.quiet >= self.told.patience or number < 0:
            arm.stop(self.told.deceleration)
            return
        if number == self.taken:
            self.quiet += STEP
        else:
            wanted = np.array([arm.inputs[name][0] for name in INPUTS[:6]])
            within = (wanted >= self.told.lowest) & (wanted <= self.told.highest)
            within &= np.abs(wanted - arm.joints) <= self.told.furthest
            if not within.all():
                self.out_of_bounds = True
                arm.stop(self.told.deceleration)
                return
            self.goal, self.taken, self.quiet = wanted, number, 0.0
            arm.outputs[f"output_int_register_{TAKEN}"] = (number,)
        arm.target = self.goal

    @staticmethod
    def _number(arm: Any) -> int:
        return int(arm.inputs[INPUTS[6]][0])
