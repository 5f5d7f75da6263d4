"""Which targets move a Franka's hand: what holds for any of them, and what arming and a policy's first step do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from robo_rl.deploy.robot.drivers.fci.hand_targets import LASTING, SAME, Action, HandTargets

POLL = 0.004  # s
OPENING = st.floats(0.0, 0.04)


def hand(targets: HandTargets, wanted: float, here: float, since: float, seconds: float = 1.0) -> list[Action]:
    """What is sent while a target stands, asked as often as the driver does; the fingers stay."""
    found = [targets.decide(since + k * POLL, wanted, here, False) for k in range(round(seconds / POLL))]
    return [one for one in found if one is not None]


@given(OPENING, st.floats(-0.5 * SAME, 0.5 * SAME))
def test_arming_moves_nothing_wherever_the_hand_is(here: float, noise: float) -> None:
    assert hand(HandTargets(), here + noise, here, 0.0) == []


@given(OPENING, OPENING)
def test_a_policys_first_step_does_not_move_an_open_hand(first: float, here: float) -> None:
    targets = HandTargets()
    sent = hand(targets, here, here, 0.0) + hand(targets, first, here, 1.0, 0.02) + hand(targets, here, here, 1.02)
    assert sent == []


@given(OPENING, OPENING)
def test_a_target_that_stands_is_sent_once_and_not_before_it_has_lasted(wanted: float, here: float) -> None:
    targets = HandTargets()
    assert hand(targets, wanted, here, 0.0, LASTING - POLL) == []
    sent = hand(targets, wanted, here, LASTING)
    expected = [] if abs(wanted - here) < SAME else [Action.GRASP if wanted < here else Action.MOVE]
    assert sent == expected


def test_what_is_grasped_stays_grasped_when_the_robot_is_armed_again() -> None:
    targets = HandTargets()
    assert hand(targets, 0.0, 0.04, 0.0) == [Action.GRASP]
    assert hand(targets, 0.01, 0.02, 1.0) == []  # it holds something of 4 cm
    assert hand(targets, 0.0201, 0.02, 2.0) == []  # armed again: where it is
    assert hand(targets, 0.04, 0.02, 3.0) == [Action.MOVE]


def test_commands_wait_for_the_one_before_them() -> None:
    targets = HandTargets()
    assert [targets.decide(k * POLL, 0.0, 0.04, True) for k in range(100)] == [None] * 100
    assert targets.decide(100 * POLL, 0.0, 0.04, False) is Action.GRASP
