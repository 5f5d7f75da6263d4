"""Whether a fit may be believed: what must hold of a record and of what is left of it, besides small uncertainties.

A fit always gives numbers. They mean something if the record moves the robot, if the model follows the record nearly as
closely as its sensors' noise lets it, if what is left has no pattern, if the fit predicts better than the card, if
either half of the record would have given the same, and if the search ends in the same place from another start.
"""

from __future__ import annotations

import numpy as np

from robo_rl.identification.excitation import joint_speed
from robo_rl.identification.fit import AHEAD, Identified
from robo_rl.identification.following import Recorded

SLOWEST = 0.5
"""rad/s, root mean square over all joints. A slow walk has 1, a robot that stands 0.16, most of it noise."""
LARGEST = 3.0
"""Times the sensors' noise, of any axis or joint. Walks that were fitted well have up to 2.2 of the joint angles, where
contacts are hard to follow; nonsense 5 and more."""
PATTERN = 0.85
"""Correlation of errors with those of the step before. Well fitted: up to 0.72 of joint angles, else 0.35."""
WORSE = 1.25
"""Times the error of joint angles predicted by the card's figures. Of a robot as on its card, a fit had 1.03 times."""
APART = 5.0
"""Standard deviations of the difference between what the halves of the record would give. Well fitted: up to 4."""
ELSEWHERE = 1.0
"""Standard deviations between ends of two searches. Most have up to 0.1, one 0.7; a wrong friction, 4.9."""
WALK = "record a walk of a minute, fast and slow, with turns and changes of speed"


def faults(record: Recorded, found: Identified, slowest: float = SLOWEST, move: str = WALK) -> list[str]:
    """Sentences on why a fit must not be believed, each with what to do; empty if it may.

    ``slowest`` (rad/s) is how fast joints have to move, and ``move`` says what to record instead.
    """
    told = []
    speed = float(np.sqrt(np.mean(np.square(joint_speed(record)))))
    if not speed >= slowest:
        told.append(f"the joints move at {speed:.2g} rad/s on average; expected at least {slowest:g}: {move}")
    large = {name: left.worst for name, left in found.residuals.items() if not left.worst <= LARGEST}
    if large:
        listed = ", ".join(f"{name} {size:.3g}" for name, size in large.items())
        told.append(
            f"what is left of {listed} times the sensors' noise at worst; expected at most {LARGEST:g}: the robot did "
            "not do what the model does under these targets. Check the joints' order, signs, units and offsets, the "
            "frames, the stamps, and that robot and surroundings are the task's"
        )
    patterned = {name: left.correlation for name, left in found.residuals.items() if not left.correlation <= PATTERN}
    if patterned:
        listed = ", ".join(f"{name} {value:.2f}" for name, value in patterned.items())
        told.append(
            f"errors go on from step to step (correlation of {listed}); expected at most {PATTERN:g}: the robot has "
            "something that the model has not, such as an offset, a delay or play"
        )
    if not found.error_fitted <= WORSE * found.error_nominal:
        told.append(
            f"what was found predicts joint angles {AHEAD} steps ahead worse than the card's figures do, by "
            f"{1000 * found.error_fitted:.3g} mrad instead of {1000 * found.error_nominal:.3g}: {move}"
        )
    fitted = [estimate for estimate in found.estimates if estimate.unknown.name in found.fitted]
    ends = [estimate.unknown.name for estimate in fitted if estimate.reason]
    if ends:
        told.append(f"{', '.join(ends)} came out at the end of what is possible: the model can't explain the record")
    pairs = zip(fitted, found.halves, strict=True)
    apart = [estimate.unknown.name for estimate, far in pairs if estimate.determined and not far <= APART]
    if apart:
        told.append(
            f"the halves of the record disagree about {', '.join(apart)} by more than {APART:g} standard deviations: "
            "something changed on the way, or the ground did; record again"
        )
    pairs = zip(fitted, found.starts, strict=True)
    lost = [estimate.unknown.name for estimate, far in pairs if estimate.determined and not far <= ELSEWHERE]
    if lost:
        told.append(
            f"a search from another start ended elsewhere in {', '.join(lost)}, by more than {ELSEWHERE:g} standard "
            f"deviations: what is here is no minimum; {move}"
        )
    if not any(estimate.determined for estimate in found.estimates):
        told.append(f"nothing is determined: {move}")
    return told
