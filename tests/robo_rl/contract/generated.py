"""Contracts for tests: one with one of everything, and hypothesis strategies for all that there can be."""

from __future__ import annotations

import json
import math
import string
from typing import Any

from hypothesis import strategies as st

from robo_rl.contract import (
    UNITS,
    Actuator,
    Command,
    Contract,
    CurrentLaw,
    Encoder,
    Envelope,
    Image,
    ImpedanceLaw,
    Network,
    PositionLaw,
    Provenance,
    RateLaw,
    Robot,
    Safety,
    Scan,
    Signal,
    StateBlock,
    TorqueLaw,
    VelocityLaw,
)

ROTORS = ("front_right", "back_left", "front_left", "back_right")
JOINTS = ("shoulder-1", "elbow:2", "3.wrist")


def full_contract() -> Contract:
    """A contract with one of everything; many numbers without short decimal forms."""
    return Contract(
        task="inspection",
        control_period=0.01,
        signals=(
            Signal("position", tuple("xyz"), "m", "world", (-0.1,) * 3, (1 / 3,) * 3, noise=(0.002,) * 3),
            Signal(
                "orientation", tuple("xyzw"), "1", "body to world", (-1.01,) * 4, (1.01,) * 4, kind="quaternion",
                delay=(0.0, 0.02), seen_low=(-0.5,) * 4, seen_high=(0.5,) * 4,
            ),
            Signal("joint_position", ("base", *JOINTS[::-1]), "rad", "joint", (-3.0,) * 4, (3.0,) * 4, timeout=0.015),
            Signal("scan", (), "m", "laser", 0.0, 30.0, noise=0.01, seen_low=0.1, seen_high=29.0, shape=(16,),
                   period=0.1, timeout=0.25, layout=Scan(-math.pi, math.pi / 8, 0.05, 30.0)),
            Signal("depth", (), "m", "camera", 0.0, 10.0, shape=(4, 6), period=1 / 30, layout=Image("depth", 1.2)),
            Signal("neighbours", ("ahead", "left"), "m", "body", (-9.0, -8.0), (9.0, 8.0), shape=(3, 2)),
            Signal("neighbours_age", ("age",), "s", "none", (0.0,), (2.0,), source="runtime", age_of="neighbours"),
            Signal("position_setpoint", ("x",), "m", "world", (-1.0,), (1.0,), source="operator"),
        ),
        commands=(
            Command("rotor_speed", ROTORS, "rad/s", "rotor", (0.0,) * 4, (2618.0,) * 4, (0.0,) * 4),
            Command(
                "joint_target", JOINTS, "rad", "joint", (-2.0,) * 3, (2.0,) * 3, (0.0,) * 3, rate=(6.25, 3.0, 1 / 7),
                start=(0.25, 0.0, -0.5), stop="ramp", law=PositionLaw((40.0,) * 3, (1.5, 1.0, 0.5)),
                feedback="joint_position",
            ),
            Command("base", ("base",), "rad", "joint", (-2.0,), (2.0,), "hold", stop="hold", law=VelocityLaw((0.3,))),
            Command("pull", ("cable",), "N", "cable", (0.0,), (9.0,), (0.0,), law=TorqueLaw(compensated=True)),
            Command("coil", ("a",), "A", "coil", (-2.0,), (2.0,), (0.0,), law=CurrentLaw(850.0)),
            Command(
                "tool", tuple("xyz"), "m", "base", (-1.0,) * 3, (1.0,) * 3, (0.0,) * 3,
                law=ImpedanceLaw((300.0,) * 3 + (20.0,) * 3, (30.0,) * 6, (0.05,) * 3 + (0.1,) * 3, "gripper-tip"),
            ),
            Command(
                "turn", tuple("xyz"), "rad/s", "body", (-1.0,) * 3, (1.0,) * 3, (0.0,) * 3,
                law=RateLaw((14.0, 1 / 3, 2.0), ((14.0, 1.0, 2.5), (40.0, 2.0, 1 / 0.3))),
            ),
        ),
        state=(StateBlock("command_history", (2, 4), (0.25,) * 8), StateBlock("integral", (1,), (0.0,))),
        safety=Safety(
            0.02, 1.1, "controller", 0.5, (Envelope("position", (-0.05,) * 3, 0.3), Envelope("scan", 0.2, norm=90.0))
        ),
        robot=Robot(
            "inspector-1",
            "aerial_arm",
            tuple(Actuator(name, "velocity", "rad/s", 0.0, 2618.0, 0.0, rate=9e3) for name in ROTORS)
            + tuple(Actuator(name, "position", "rad", -2.0, 2.0, "hold", effort=1 / 3, speed=7.0) for name in JOINTS),
            {"mass": 0.027, "inertia": [1.657e-5, 1.665e-5, 2.926e-5], "rotors": [{"name": "m1", "ccw": True}]},
        ),
        network=Network(
            (64, 64), "tanh", True, 32,
            (Encoder("depth", (4, 6), "convolution", (8, 16), 24), Encoder("others", (3, 2), "attention", (16,), 8, 1)),
        ),
        provenance=Provenance("apg", 3, 675_840, "0" * 64, {"torch": "2.13.0"}, "circle.py:Circle", "f" * 64),
        facts={"episode": 20.0, "object": {"size": [0.04, 1 / 3], "position": "its centre", "held": True}},
    )  # fmt: skip


def small_contract(**changes: Any) -> Contract:
    """As little as a contract can have, with some of it changed."""
    parts: dict[str, Any] = {
        "task": "hold",
        "control_period": 0.01,
        "signals": (Signal("angle", ("wheel",), "rad", "joint", (-3.0,), (3.0,)),),
        "commands": (Command("torque", ("wheel",), "N*m", "joint", (-1.0,), (1.0,), (0.0,)),),
        "state": (),
        "safety": Safety(0.05),
        "robot": Robot("wheel", "motor", (Actuator("wheel", "effort", "N*m", -1.0, 1.0, 0.0),)),
        "network": Network((8,), "tanh", False),
        "provenance": Provenance("none", 0, 0, "0" * 64),
    }
    return Contract(**{**parts, **changes})


def data_of(contract: Contract) -> dict[str, Any]:
    return json.loads(contract.to_json())


finite = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.sampled_from([5e-324, -5e-324, 1e299, -0.0])
positive = st.floats(min_value=5e-324, max_value=1e299)
not_negative = st.floats(0, 1e299)
_WORD = string.ascii_letters + string.digits + "_"


def _texts(first: str, alphabet: str, most: int) -> Any:
    rest = st.text(alphabet, max_size=most - 1)
    return st.builds(str.__add__, st.sampled_from(first), rest)


identifiers = _texts(string.ascii_letters, _WORD, 64)
labels = _texts(_WORD, _WORD + ".:-", 64)
plain_names = _texts(_WORD, _WORD + ".-", 63).map(lambda text: f"{text}_")
phrases = _texts(string.ascii_letters + string.digits, _WORD + " .,:;()/+-", 128).map(str.strip)


def unique(texts: Any, least: int, most: int) -> Any:
    return st.lists(texts, min_size=least, max_size=most, unique=True).map(tuple)


def some(count: int, numbers: Any = finite) -> Any:
    return st.tuples(*[numbers] * count)


def one_or(count: int, numbers: Any = finite) -> Any:
    """A number for all, or one each."""
    return numbers | some(count, numbers)


pairs = some(2).filter(lambda p: p[0] != p[1]).map(lambda p: tuple(sorted(p)))


@st.composite
def limits(draw: Any, count: int, single: bool) -> tuple[Any, Any]:
    """Lower and upper limits, one for all where ``single``."""
    if single:
        return draw(pairs)
    both = [draw(pairs) for _ in range(count)]
    return tuple(low for low, _ in both), tuple(high for _, high in both)


scans = st.builds(
    lambda first, step, reach: Scan(first, step, *reach),
    finite, finite.filter(bool), some(2, not_negative).filter(lambda p: p[0] < p[1]),
)  # fmt: skip
images = st.builds(Image, st.sampled_from(["depth", "gray"]), st.floats(5e-324, 3.14))


@st.composite
def signals(draw: Any, name: str, control_period: float) -> Signal:
    what = draw(st.sampled_from(["vector", "quaternion", "array", "scan", "image"]))
    shape = layout = None
    if what in ("vector", "quaternion"):
        elements = tuple("xyzw") if what == "quaternion" else draw(unique(labels, 1, 4))
        count, single = len(elements), False
    else:
        dimensions = {"scan": 1, "image": 2}.get(what) or draw(st.integers(1, 4))
        shape = tuple(draw(st.lists(st.integers(1, 4), min_size=dimensions, max_size=dimensions)))
        layout = draw(st.none() | {"scan": scans, "image": images}.get(what, st.none()))
        count, single = shape[-1], draw(st.booleans())
        elements = draw(st.just(()) | unique(labels, count, count))
    low, high = draw(limits(count, single))
    period = draw(st.none() | st.floats(control_period, 1e6))
    slack = draw(st.none() | not_negative.filter(bool))
    return Signal(
        name,
        elements,
        draw(st.sampled_from(sorted(UNITS))),
        draw(phrases),
        low,
        high,
        kind="quaternion" if what == "quaternion" else "vector",
        source=draw(st.sampled_from(["sensor", "operator"])),
        noise=draw(st.none() | (one_or if shape else some)(count, not_negative)),
        delay=tuple(sorted(draw(some(2, not_negative)))),
        seen_low=draw(st.none() | (one_or if shape else some)(count)),
        seen_high=draw(st.none() | (one_or if shape else some)(count)),
        shape=shape,
        period=period,
        timeout=slack if slack is None or period is None else max(period, slack),
        layout=layout,
    )


@st.composite
def laws(draw: Any, count: int) -> Any:
    gains = lambda n: some(n, not_negative)  # noqa: E731
    return draw(
        st.none()
        | st.builds(PositionLaw, gains(count), gains(count))
        | st.builds(VelocityLaw, gains(count))
        | st.builds(TorqueLaw, st.booleans())
        | st.builds(ImpedanceLaw, gains(6), gains(6), gains(6), labels)
        | st.builds(CurrentLaw, positive)
    )


@st.composite
def commands(draw: Any, name: str, elements: tuple[str, ...], measured: Signal) -> Command:
    """One that ``measured`` can measure."""
    count = len(elements)
    low, high = draw(limits(count, False))
    stop = draw(st.sampled_from(["off", "ramp", "hold", "damp"]))
    safe = "hold" if stop in ("hold", "damp") else draw(st.sampled_from([low, high]))
    start = draw(st.none() | st.sampled_from([low, high]))
    return Command(
        name, elements, measured.unit, draw(phrases), low, high, safe, draw(st.none() | some(count, positive)), start,
        stop, draw(laws(count)), measured.name,
    )  # fmt: skip


@st.composite
def blocks(draw: Any, name: str) -> StateBlock:
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    return StateBlock(name, shape, draw(some(math.prod(shape))))


@st.composite
def actuators(draw: Any, name: str) -> Actuator:
    units = {
        "position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "effort": ("N*m", "N"), "current": ("A",),
        "voltage": ("V",),
    }  # fmt: skip
    quantity = draw(st.sampled_from(sorted(units)))
    low, high = draw(pairs)
    others = [draw(st.none() | positive) for _ in range(3)]
    safe = draw(st.sampled_from(["hold", low, high]))
    return Actuator(name, quantity, draw(st.sampled_from(units[quantity])), low, high, safe, *others)


plain_texts = st.text(st.characters(exclude_categories=("C", "Z")), max_size=12)
facts = st.dictionaries(
    labels,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | finite | plain_texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(labels, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)
robots = unique(labels, 1, 4).flatmap(
    lambda names: st.builds(Robot, plain_names, identifiers, st.tuples(*[actuators(name) for name in names]), facts)
)
digests = st.just("") | st.text("0123456789abcdef", min_size=64, max_size=64)
widths = st.lists(st.integers(1, 4096), max_size=3).map(tuple)
small_widths = st.lists(st.integers(1, 64), min_size=1, max_size=3).map(tuple)
shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
networks = unique(identifiers, 0, 2).flatmap(
    lambda groups: st.builds(
        Network, widths, identifiers, st.booleans(), st.integers(0, 4096),
        st.tuples(*[
            st.builds(
                Encoder, st.just(group), shapes, st.sampled_from(["convolution", "attention"]), small_widths,
                st.integers(1, 64), st.integers(1, 5),
            )
            for group in groups
        ]),
    )
)  # fmt: skip


@st.composite
def envelopes(draw: Any, signal: Signal) -> Envelope:
    count = signal.dimensions[-1]
    low, high = draw(limits(count, draw(st.booleans())))
    norm = draw(positive)
    given = draw(st.sampled_from([(low, high, None), (low, None, norm), (None, high, None), (None, None, norm)]))
    return Envelope(signal.name, *given)


@st.composite
def contracts(draw: Any) -> Contract:
    robot, period = draw(robots), draw(st.floats(1e-5, 10))
    taken = {"state", "next_state"}
    given, used, measured, age = draw(unique(identifiers.filter(lambda n: n not in taken), 4, 4))
    made = [draw(signals(given, period))]
    driven = tuple(name for name in robot.actuator_names if draw(st.booleans())) or robot.actuator_names
    order = tuple(draw(st.permutations(driven)))
    low, high = draw(limits(len(order), False))
    made.append(Signal(measured, order, draw(st.sampled_from(sorted(UNITS))), draw(phrases), low, high))
    if made[0].source == "sensor" and draw(st.booleans()):
        made.append(Signal(age, ("age",), "s", "none", (0.0,), (draw(positive),), source="runtime", age_of=given))
    sensed = [signal for signal in made if signal.source == "sensor"]
    return Contract(
        task=draw(plain_names),
        control_period=period,
        signals=tuple(made),
        commands=(draw(commands(used, driven, made[1])),),
        state=tuple(draw(blocks(name)) for name in draw(unique(identifiers, 0, 3))),
        safety=Safety(
            draw(positive), draw(st.none() | positive), draw(st.sampled_from(["stop", "hold", "controller"])),
            draw(st.none() | positive), tuple(draw(envelopes(signal)) for signal in sensed if draw(st.booleans())),
        ),
        robot=robot,
        network=draw(networks),
        provenance=Provenance(
            draw(labels),
            draw(st.integers(-(2**53) + 1, 2**53 - 1)),
            draw(st.integers(0, 2**53 - 1)),
            draw(digests),
            draw(st.dictionaries(plain_texts, plain_texts, max_size=3)),
            draw(st.just("") | labels),
            draw(digests),
        ),
    )  # fmt: skip
