"""Forces in a report on an arm: what lasts is static, what does not is a peak, what comes after the end is neither."""

from __future__ import annotations

import numpy as np

from robo_rl.evaluate.evaluation import Episodes
from robo_rl.report.arm import forces, traces

PERIOD = 0.02  # s


def recorded() -> Episodes:
    """Two episodes: 20 N for a second with one blow of 300 N, then the end; and nothing at all."""
    force = np.zeros((100, 2, 2), np.float32)
    force[20:60, 0] = 20.0
    force[20, 0, 1] = 300.0
    force[80:, 0] = 1000.0  # after its end
    return Episodes(
        survived=np.ones(2, bool),
        success=np.ones(2, bool),
        duration=np.array([1.4, 2.0]),
        measures=(),
        errors={},
        recording={"pad_force": force},
    )


def test_a_static_force_is_a_median_of_a_fifth_of_a_second_and_a_peak_one_step() -> None:
    static, peak = forces(recorded(), PERIOD)
    np.testing.assert_allclose(static, [20.0, 0.0])
    np.testing.assert_allclose(peak, [300.0, 0.0])


def test_the_plot_has_one_line_for_each_episode_up_to_its_end() -> None:
    (axes,) = traces(recorded(), PERIOD).axes
    assert [len(line.get_xdata()) for line in axes.lines] == [70, 100]
    assert axes.lines[0].get_ydata().max() == 300.0
