"""Write the figures of benchmarks/results into docs/results.md.

A sentence of the page has the same words as one in ``sentences``, with numbers in place of its braces; the numbers are
replaced by those that were measured last. A sentence that the page does not have exactly once is refused.

    python benchmarks/results_page.py
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from results import FOLDER, words

PAGE = FOLDER.parent.parent / "docs" / "results.md"
NUMBER = r"[\d.,]*\d"


def sentences() -> Iterator[tuple[str, list[str]]]:
    """Texts with braces, and the numbers that belong there."""
    seeds = read("time_to_fly")["seeds"]
    yield (
        "{} to {} s of training, {} to {} s from the prompt with an empty compiler cache",
        [*span([s["train_seconds"] for s in seeds], ".1f"), *span([s["wall_seconds"] for s in seeds], ".0f")],
    )
    yield (
        "success rate {} to {} % of 1,000 episodes, {} to {} cm from the set-point at the end",
        [
            *span([100 * s["success"] for s in seeds], ".1f"),
            *span([100 * s["position_error_mean_m"] for s in seeds], ".1f"),
        ],
    )
    geometric, *policies = read("tracking")["rows"]
    yield (
        "root mean square error {} to {} cm, success rate {} to {} %; a tuned geometric controller with integral "
        "action in the same episodes: {} cm, {} %",
        [
            *span([100 * p["tracking_error_rms_m"] for p in policies], ".1f"),
            *span([100 * p["success"] for p in policies], ".3g"),
            f"{100 * geometric['tracking_error_rms_m']:.1f}",
            f"{100 * geometric['success']:.3g}",
        ],
    )
    counts = {row["contender"]: row["instructions"] for row in read("firmware")["rows"] if row["network"] == "A"}
    yield (
        "{} instructions for a network 146-64-64-4, a generic generator's {}",
        [f"{counts['robo-rl, FPU']:,}", f"{counts['emx-onnx-cgen']:,}"],
    )
    flights, soak = read("ros_loop")["flights"], read("ros_soak")
    missed = sum(flight["missed_periods"] for flight in flights)
    yield (f"{missed or 'no'} period missed of {{}}", [f"{sum(flight['steps'] for flight in flights):,}"])
    yield (
        "{} steps in the log, none missing, {} of {} periods missed, memory growth of every process at most {} MB",
        [
            f"{soak['log_steps']:,}",
            f"{soak['missed_periods']}",
            f"{soak['steps']:,}",
            f"{max(soak['growth_after_the_first_minute_mb'].values()):.1f}",
        ],
    )
    rigid = read("rigid")["steps_per_second"]
    yield (
        "{} control steps/s of randomized robots, {} with observation, reward and resets, {} in training",
        [f"{rigid[name]:,.0f}" for name in ("plant", "environment", "training")],
    )
    tasks = read("envpool")["tasks"]
    yield (
        "{} and {} times the steps per second of EnvPool in the same run",
        [f"{tasks[name]['ours_over_peer']:.2f}" for name in ("HalfCheetah-v5", "Ant-v5")],
    )


def read(name: str) -> Any:
    """What a benchmark has written."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def span(values: Sequence[float], form: str) -> list[str]:
    """The least and the greatest."""
    return [format(min(values), form), format(max(values), form)]


def with_figures(page: str) -> str:
    """The page with the newest figures; ValueError for a sentence that it does not have exactly once."""
    for text, numbers in sentences():
        parts = [re.escape(part) for part in text.split("{}")]
        found = re.findall(NUMBER.join(parts), page)
        if len(found) != 1:
            raise ValueError(
                f"docs/results.md: '{text}' is there {len(found)} times; expected once, with numbers for {{}}"
            )
        page = page.replace(found[0], text.format(*numbers))
    return page


def main() -> None:
    before = PAGE.read_text()
    try:
        after = with_figures(before)
    except ValueError as error:
        sys.exit(str(error))
    PAGE.write_text(after)
    print(
        "docs/results.md: its figures were those of benchmarks/results"
        if before == after
        else "docs/results.md: written"
    )


if __name__ == "__main__":
    words(__doc__)
    main()
