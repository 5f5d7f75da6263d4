/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl from a bundle; do not edit. Recorded steps and what must come out. */
#include "${name}.h"

#include <math.h>

const ${name}_signals ${name}_recorded_signals[${guard}_GOLDEN_STEPS] = {
$signals
};

static const ${name}_commands recorded_commands[${guard}_GOLDEN_STEPS] = {
$commands
};
$states
/* The greater of the worst so far and |found - expected| / (upper - lower); a NaN stays. */
static float worse(float worst, const float *found, const float *expected, const float *lower, const float *upper,
                   uint32_t count)
{
    float result = worst;
    for (uint32_t i = 0; i < count; i++) {
        const float deviation = fabsf(found[i] - expected[i]) / (upper[i] - lower[i]);
        if (!(deviation <= result) && (result == result)) {
            result = deviation;
        }
    }
    return result;
}

float ${name}_self_test(${name}_state *state, ${name}_arena *arena)
{
    ${name}_commands commands;
    float worst = 0.0f;
    ${name}_reset(state);
    for (uint32_t k = 0; k < ${guard}_GOLDEN_STEPS; k++) {
$resume        if (${name}_step(&${name}_recorded_signals[k], state, &commands, arena) != ${guard}_OK) {
            worst = INFINITY;
            break;
        }
$comparisons
    }
    ${name}_reset(state);
    return worst;
}
