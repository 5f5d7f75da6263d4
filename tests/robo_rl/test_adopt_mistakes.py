"""A policy that falls because of one mistake in its description is told which one, by walking without it.

Three policies (orders of joints, histories and attitudes of three trainers) walk as they are described; each
description is then spoilt in one way, and the search has to name that way.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robo_rl.adapters.foreign import description, mistakes
from robo_rl.adapters.foreign.description import Description
from robo_rl.adapters.foreign.task import AdoptedWalk


def _beside(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


forms = _beside("adopted")
WALKERS: dict[str, dict[str, Any]] = {
    "mjlab": {"joints": forms.MJLAB},
    "Isaac Lab": {"joints": forms.ISAAC, "by": "frame", "quaternion": "wxyz", "scale": 0.5, "rates": (0.2, 1.0, 1.0)},
    "legged_gym": {"joints": forms.CARD, "by": "frame", "newest_first": True, "rates": (0.25, 2.0, 1.0)},
}


def described(walker: Any) -> Description:
    """As its trainer would."""
    frames, newest = walker.layout.get("by") == "frame", walker.layout.get("newest_first")
    data = {
        "network": "walk.onnx", "robot": "go2", "rate": 50.0, "joints": list(walker.joints),
        "default": [forms.STAND[name] for name in walker.joints], "action": {"scale": walker.scale, "remember": "raw"},
        "gains": {"stiffness": forms.STIFFNESS, "damping": forms.DAMPING}, "observations": walker.terms(),
        "history": {"by": "frame" if frames else "term", "order": "newest first" if newest else "oldest first"},
    }  # fmt: skip
    return description.understood(data, "policy.toml")


def _term(told: Description, which: str, **values: Any) -> Description | None:
    terms = [dataclasses.replace(t, **values) if t.name == which else t for t in told.observations]
    return None if tuple(terms) == told.observations else dataclasses.replace(told, observations=tuple(terms))


def _setting(told: Description, name: str, **values: Any) -> Description | None:
    terms = [dataclasses.replace(t, settings={**t.settings, **values}) if t.name == name else t
             for t in told.observations]  # fmt: skip
    return None if tuple(terms) == told.observations else dataclasses.replace(told, observations=tuple(terms))


def _joints(told: Description, order: list[str]) -> Description | None:
    return None if told.joints == tuple(order) else mistakes.reordered(told, tuple(order))


def _swapped(told: Description) -> Description:
    terms = list(told.observations)
    i, j = ([t.name for t in terms].index(name) for name in ("base_ang_vel", "velocity_commands"))
    terms[i], terms[j] = terms[j], terms[i]
    return dataclasses.replace(told, observations=tuple(terms))


def _history(told: Description, **values: Any) -> Description:
    return dataclasses.replace(told, history=dataclasses.replace(told.history, **values))


def _action(told: Description, factor: float) -> Description:
    return dataclasses.replace(told, action=dataclasses.replace(told.action, scale=told.action.scale * factor))


Spoil = Callable[[Description], Description | None]
PLANTED: dict[str, tuple[str, Spoil]] = {
    "joints by part": ("joint order", lambda t: _joints(t, forms.ISAAC)),
    "legs exchanged": ("joint order", lambda t: _joints(t, forms.MJLAB)),
    "scale 4 times": ("action scale", lambda t: _action(t, 4.0)),
    "scale a quarter": ("action scale", lambda t: _action(t, 0.25)),
    "zero pose": ("default pose", lambda t: dataclasses.replace(t, default=tuple(
        {0.0: 0.0, 0.9: 1.5, -1.8: -1.8}[x] for x in t.default))),
    "quaternion": ("quaternion order", lambda t: _setting(t, "orientation", order="xyzw")),
    "gravity": ("gravity sign", lambda t: _setting(t, "projected_gravity", direction="up")),
    "history reversed": ("order of history", lambda t: _history(
        t, order="newest first" if t.history.order == "oldest first" else "oldest first")),
    "history by term": ("history by", lambda t: _history(t, by="term") if t.history.by == "frame" else None),
    "phase": ("phase order", lambda t: _setting(t, "gait_phase", order="cos sin")),
    "phase period": ("phase period", lambda t: _setting(t, "gait_phase", period=0.8)),
    "absolute joints": ("joint positions", lambda t: _term(t, "joint_pos_rel", name="joint_pos")),
    "rate doubled": ("rate", lambda t: dataclasses.replace(t, rate=100.0)),
    "rate halved": ("rate", lambda t: dataclasses.replace(t, rate=25.0)),
    "terms exchanged": ("order of terms", _swapped),
    "hips reversed": ("joint sign", lambda t: dataclasses.replace(
        t, flipped=tuple(sorted(joint for joint in t.joints if "hip" in joint)))),
    "soft": ("gains", lambda t: dataclasses.replace(t, gains=dataclasses.replace(t.gains, stiffness=8.75))),
}  # fmt: skip
"""The mistake's name, and what spoils a description; None where it changes nothing of one."""


def outcomes(walker: str, planted: str) -> tuple[str, mistakes.Better | None] | None:
    """What should be named, and what is; None where the policy walks in spite of the mistake."""
    settings = dict(WALKERS[walker])
    network = forms.Walker(settings.pop("joints"), **settings)
    right, spoil = PLANTED[planted]
    spoilt = spoil(described(network))
    if spoilt is None:
        return None
    task = AdoptedWalk(None, spoilt)
    if mistakes.tried(task, network).walks:
        return None
    return right, mistakes.search(task, network)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("walker", "planted"),
    [
        pytest.param("legged_gym", "joints by part", marks=pytest.mark.release),
        ("Isaac Lab", "quaternion"),
    ],
)
def test_a_mistake_is_named(walker: str, planted: str) -> None:
    found = outcomes(walker, planted)
    assert found is not None
    right, better = found
    assert better is not None
    assert better.change.name == right


def test_what_is_described_rightly_walks() -> None:
    for settings in WALKERS.values():
        layout = dict(settings)
        network = forms.Walker(layout.pop("joints"), **layout)
        result = mistakes.tried(AdoptedWalk(None, described(network)), network)
        assert result.walks
        assert result.error < 0.15  # m/s and rad/s


@pytest.mark.release
def test_nine_of_ten_planted_mistakes_are_named() -> None:
    found = {(w, p): outcomes(w, p) for w in WALKERS for p in PLANTED}
    effective = {key: value for key, value in found.items() if value is not None}
    right = [key for key, (name, better) in effective.items() if better is not None and better.change.name == name]
    assert len({PLANTED[p][0] for _, p in effective}) >= 12
    assert len(right) >= 0.9 * len(effective), sorted(set(effective) - set(right))
