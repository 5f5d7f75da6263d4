"""Progress along paths and the points ahead, against densely sampled paths."""

from __future__ import annotations

import numpy as np
import torch

from robo_rl.controllers import path

RANDOM = np.random.default_rng(0)


def made(n: int = 4, points: int = 30) -> np.ndarray:
    """(n, points, 2) m: paths that turn at random, and wait at their end."""
    turns = np.cumsum(RANDOM.uniform(-0.5, 0.5, (n, points - 1)), axis=1)
    steps = RANDOM.uniform(0.05, 0.15, (n, points - 1, 1)) * np.stack([np.cos(turns), np.sin(turns)], -1)
    whole = np.concatenate([np.zeros((n, 1, 2)), np.cumsum(steps, axis=1)], axis=1)
    return np.concatenate([whole, np.repeat(whole[:, -1:], 3, axis=1)], axis=1)


def dense(one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and places, a millimetre and less apart."""
    at = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(one, axis=0).T))])
    fine = np.linspace(0.0, at[-1], 20_000)
    return fine, np.column_stack([np.interp(fine, at, one[:, k]) for k in range(2)])


def test_points_lie_at_their_lengths_along_the_path_and_stay_at_its_ends() -> None:
    paths = made()
    at = RANDOM.uniform(-0.5, 4.5, (4, 7))
    found = path.points(paths, path.lengths(paths), at)
    for one, lengths, places in zip(paths, at, found, strict=True):
        fine, expected = dense(one)
        index = np.abs(fine[:, None] - lengths).argmin(0)
        np.testing.assert_allclose(places, expected[index], atol=1e-3)


def test_progress_is_the_nearest_place_among_those_about_the_last_one_and_the_same_in_torch() -> None:
    paths = made()
    measured = path.lengths(paths)
    for last in (0.0, 0.7, 1.9):
        place = path.points(paths, measured, np.full((4, 1), last + 0.2))[:, 0] + RANDOM.uniform(-0.1, 0.1, (4, 2))
        found = path.progress(paths, measured, place, np.full(4, last))
        for k, one in enumerate(paths):
            fine, places = dense(one)
            near = (fine >= last - path.SEARCHED[0]) & (fine <= last + path.SEARCHED[1])
            apart = np.hypot(*(places[near] - place[k]).T)
            assert abs(np.hypot(*(places[np.abs(fine - found[k]).argmin()] - place[k])) - apart.min()) < 1e-3
            assert last - path.SEARCHED[0] - 1e-3 <= found[k] <= last + path.SEARCHED[1] + 1e-3
        tensors = (torch.tensor(x) for x in (paths, place, np.full(4, last)))
        given = next(tensors)
        torch.testing.assert_close(path.progress(given, path.lengths(given), *tensors), torch.tensor(found))


def test_the_distance_to_a_path_is_that_to_its_nearest_place() -> None:
    paths = made(1)
    places = RANDOM.uniform(-1.0, 3.0, (1, 20, 2))
    _, fine = dense(paths[0])
    expected = np.hypot(*(fine[:, None] - places[0]).transpose(2, 0, 1)).min(0)
    np.testing.assert_allclose(path.distance(paths, places)[0], expected, atol=1e-3)
