/* SPDX-License-Identifier: Apache-2.0 */
#include "held.h"

#define LONGEST ((int64_t)1 << 42) /* fifty days: a greater age counts as this one */
#define SECONDS 1e-6f

void held_start(const held_config *config, float *values, int64_t *stamps) {
    for (uint16_t i = 0; i < config->count; i++) {
        const held_signal *signal = &config->signals[i];
        for (uint16_t k = 0; k < signal->size; k++) {
            values[signal->offset + k] = signal->blank != NULL ? signal->blank[k] : 0.0f;
        }
        stamps[i] = HELD_NEVER;
    }
}

int16_t held_late(const held_config *config, const int64_t *stamps, int64_t now) {
    for (uint16_t i = 0; i < config->count; i++) {
        const held_signal *signal = &config->signals[i];
        if (signal->age_of >= 0) {
            continue;
        }
        const bool missing = stamps[i] < 0 && signal->blank == NULL;
        if (missing || (stamps[i] >= 0 && signal->timeout > 0 && now - stamps[i] > signal->timeout)) {
            return (int16_t)i;
        }
    }
    return -1;
}

static float age(const held_signal *signal, int64_t stamp, int64_t now) {
    if (stamp < 0) {
        return signal->upper;
    }
    const int64_t passed = now > stamp ? now - stamp : 0;
    const float seconds = (float)(passed < LONGEST ? passed : LONGEST) * SECONDS;
    if (seconds < signal->lower) {
        return signal->lower;
    }
    return seconds > signal->upper ? signal->upper : seconds;
}

void held_complete(const held_config *config, float *values, int64_t *stamps, int64_t now) {
    for (uint16_t i = 0; i < config->count; i++) {
        const held_signal *signal = &config->signals[i];
        if (signal->age_of >= 0) {
            values[signal->offset] = age(signal, stamps[signal->age_of], now);
            stamps[i] = now;
        }
    }
}
