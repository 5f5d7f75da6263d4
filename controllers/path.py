"""Paths in the plane: how far along one a robot is, and the points that come next. Arrays of any library.

A path is P points (n, P, 2) m, of n robots; the last one may be repeated. Places on it are lengths along it (m).
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

SIZE = 0.105
"""m, the radius of a robot (TurtleBot3) for which the lengths here are meant; others scale them by theirs."""
AHEAD = (0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.6)
"""m along the path from where the robot is: the points that a policy is told."""
SEARCHED = (0.3, 0.6)
"""m behind and ahead of the place where the robot was last, where it may be now: a path may pass by the same place
twice."""


def lengths(path: Any) -> tuple[Any, Any]:
    """(n, P − 1) m each: of the segments of paths, and along the paths to where they begin."""
    xp = array_namespace(path)
    apart = xp.sqrt(xp.sum(xp.square(path[:, 1:] - path[:, :-1]), axis=-1))
    return apart, xp.cumulative_sum(apart, axis=-1) - apart


def progress(
    path: Any, measured: tuple[Any, Any], place: Any, last: Any, scale: float = 1.0, back: float = SEARCHED[0]
) -> Any:
    """(n,) m along the paths: the place that is nearest to ``place`` (n, 2) m, about ``last`` (n,) m.

    ``measured`` are ``lengths`` of the paths; ``scale`` is a factor on ``back`` and on what is searched ahead. With
    ``back`` 0 progress never decreases.
    """
    xp = array_namespace(path)
    apart, begin = measured
    low, high = last[:, None] - scale * back, last[:, None] + scale * SEARCHED[1]
    way, off = path[:, 1:] - path[:, :-1], place[:, None] - path[:, :-1]
    along = xp.sum(way * off, axis=-1) / xp.clip(apart, 1e-9, None)
    least, most = xp.clip(low - begin, 0.0, None), xp.minimum(high - begin, apart)
    allowed = least <= most
    along = xp.clip(along, least, xp.maximum(least, most))
    part = (along / xp.clip(apart, 1e-9, None))[..., None]
    distance = xp.sum(xp.square(off - part * way), axis=-1)
    distance = xp.where(allowed, distance, xp.full_like(distance, xp.inf))
    best = xp.argmin(distance, axis=-1)
    chosen = xp.arange(apart.shape[1])[None] == best[:, None]
    return xp.sum(xp.where(chosen, begin + along, 0.0 * begin), axis=-1)


def points(path: Any, measured: tuple[Any, Any], at: Any) -> Any:
    """(n, k, 2) m: the points of paths at lengths ``at`` (n, k) m; their ends where a length is beyond them."""
    xp = array_namespace(path)
    apart, begin = measured
    part = (at[:, :, None] - begin[:, None]) / xp.clip(apart, 1e-9, None)[:, None]
    part = xp.clip(part, 0.0, 1.0)  # (n, k, P − 1)
    return path[:, :1] + part @ (path[:, 1:] - path[:, :-1])


def in_frame(found: Any, place: Any, heading: Any) -> Any:
    """Points (n, k, 2) m in the frames of robots at ``place`` (n, 2) m with a ``heading`` (n,) rad."""
    xp = array_namespace(found)
    cosine, sine = xp.cos(heading)[:, None], xp.sin(heading)[:, None]
    x, y = (found[..., i] - place[:, None, i] for i in range(2))
    return xp.stack([cosine * x + sine * y, cosine * y - sine * x], axis=-1)


def distance(path: Any, places: Any) -> Any:
    """(n, m) m: from ``places`` (n, m, 2) m to the nearest point of paths."""
    xp = array_namespace(path)
    way = path[:, None, 1:] - path[:, None, :-1]
    off = places[:, :, None] - path[:, None, :-1]
    part = xp.sum(way * off, axis=-1) / xp.clip(xp.sum(way * way, axis=-1), 1e-12, None)
    apart = off - xp.clip(part, 0.0, 1.0)[..., None] * way
    return xp.sqrt(xp.min(xp.sum(apart * apart, axis=-1), axis=-1))
