"""What the sources of a policy that goes on learning say in addition, by the place in a template; else nothing."""

from __future__ import annotations


def hooks(name: str, learns: bool) -> dict[str, str]:
    """Texts for ``templates/policy.c`` and ``templates/device.c``."""
    places = ("learn_header", "learn_reset", "learn_allow")
    if not learns:
        return dict.fromkeys(places, "")
    active = "out.state == (uint8_t)GATE_ACTIVE && out.source == (uint8_t)GATE_SOURCE_POLICY"
    texts = (
        f'\n\n#include "{name}_learn.h"',
        f"\n    {name}_learn_pause();",
        f"\n    {name}_learn_allow(({active}) ? 1u : 0u);",
    )
    return dict(zip(places, texts, strict=True))
