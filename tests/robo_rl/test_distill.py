"""Distillation: widths that fit, and a student that flies like its teacher."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_rl.commands.exporting.compress import main
from robo_rl.learn.distill import CODE_BYTES, CompressError, largest_width
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task


@pytest.mark.parametrize("flash", [8 << 10, 16 << 10, 64 << 10])
def test_weights_of_the_chosen_width_fit_and_are_counted_as_torch_does(flash: int) -> None:
    task = load_task("quadrotor-hover")
    width = largest_width(task, 2, flash)
    weights = sum(parameter.numel() for parameter in PolicyGraph(task, (width, width)).network.parameters())
    assert 4 * weights + CODE_BYTES <= flash


def test_a_flash_that_holds_no_policy_is_refused() -> None:
    with pytest.raises(CompressError, match="flash is 2048 bytes; even hidden layers of 8 need more"):
        largest_width(load_task("quadrotor-hover"), 2, 2048)


def test_a_size_that_is_no_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="flash is 'much'; expected bytes, like 8192 or 8k"):
        main(tmp_path / "teacher.onnx", flash="much")


@pytest.mark.release
def test_a_student_of_eight_kibibytes_flies_almost_like_its_teacher(bundle_file: Path, tmp_path: Path) -> None:
    from robo_rl.deploy.build.verify import verify

    small = tmp_path / "small.onnx"
    assert main(bundle_file, flash="8k", updates=1500, out=small, episodes=100) == 0
    found = verify(small, episodes=300, min_success=0.95)
    assert found.passed, found.failures
    assert small.stat().st_size < bundle_file.stat().st_size
