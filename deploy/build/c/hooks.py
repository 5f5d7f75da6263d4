"""What the sources of a policy that goes on learning say in addition, by the place in a template; else nothing."""

from __future__ import annotations


def hooks(name: str, learns: bool) -> dict[str, str]:
    """Texts for ``templates/policy.c``, ``templates/device.c`` and ``templates/onboard.c``."""
    places = (
        "learn_header", "learn_reset", "learn_allow", "learn_onboard", "learn_functions", "learn_post", "learn_pull",
        "learn_size",
    )  # fmt: skip
    if not learns:
        return {**dict.fromkeys(places, ""), "learn_size": "0"}
    texts = (
        f'\n\n#include "{name}_learn.h"',
        f"\n    {name}_learn_pause();",
        _allow(name, "out"),
        _allow(name, "robot->gate"),
        FUNCTIONS.replace("NAME", name).replace("GUARD", name.upper()),
        "\n        post_progress(d, now);",
        "\n        } else if (frame.type == (uint8_t)LINK_PULL) {\n"
        "            post_weights(d, link_unpack_pull(&frame));",
        "(DEVICE_FRAME(36) + DEVICE_FRAME(8 + LINK_PIECE))",
    )
    return dict(zip(places, texts, strict=True))


def _allow(name: str, out: str) -> str:
    """Learning is allowed while the gate sends the policy's commands as they are; ``out`` is the gate's output."""
    active = f"{out}.state == (uint8_t)GATE_ACTIVE && {out}.source == (uint8_t)GATE_SOURCE_POLICY"
    unchanged = f"({out}.events & (uint8_t)GATE_EVENT_RATE_LIMITED) == 0u"
    return f"\n    {name}_learn_allow(({active} &&\n        {unchanged}) ? 1u : 0u);"


FUNCTIONS = """
static void post_progress(device *d, int64_t now) {
    uint8_t payload[36];
    NAME_learn_progress seen;
    NAME_learn_progress_now(&seen);
    const link_progress progress = {.time = now,
                                    .steps = seen.steps,
                                    .learnt = seen.learnt,
                                    .spikes = seen.spikes,
                                    .returns = seen.returns,
                                    .off = seen.off,
                                    .first = seen.first,
                                    .last = seen.last};
    post(d, LINK_PROGRESS, payload, link_pack_progress(&progress, payload));
}

/* A piece of the slot, while the weights don't change. */
static void post_weights(device *d, uint32_t offset) {
    uint8_t payload[8 + LINK_PIECE];
    link_weights weights = {.total = 0u, .offset = offset};
    if (d->gate.state != (uint8_t)GATE_ACTIVE) {
        weights.total = GUARD_LEARN_SLOT;
        NAME_learn_piece(NAME_learn_sequence(), offset, weights.piece, LINK_PIECE);
    }
    post(d, LINK_WEIGHTS, payload, link_pack_weights(&weights, payload));
}
"""
"""What ``device.c`` of a learner says besides."""
