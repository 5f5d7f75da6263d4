"""What a tape keeps is what was there."""

from __future__ import annotations

import numpy as np

from robo_rl.learn.experience.tape import Tape


def test_rows_are_those_of_their_steps_and_no_later_change_reaches_them() -> None:
    tape, now = Tape(5), np.zeros((2, 3), np.float32)
    for step in range(4):
        now += 1.0
        tape.note(step, {"place": now, "count": np.array([step])})
    found = tape.until(3)
    assert found.keys() == {"place", "count"}
    assert found["place"].shape == (3, 2, 3)
    assert found["place"].dtype == np.float32
    np.testing.assert_array_equal(found["place"][:, 0, 0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found["count"][:, 0], [0, 1, 2])
    assert Tape(5).until(3) == {}
