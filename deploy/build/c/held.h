/* SPDX-License-Identifier: Apache-2.0 */
/* Slow sensors, and quantities that may be absent: what a policy sees between measurements.
 *
 * The C twin of controllers/gate/held.py. The caller keeps the newest floats of all signals, one after the other, and when each
 * signal was measured; a signal without a new measurement keeps its value. Times are microseconds of one clock that the caller gives.
 *
 *   held_start(&HELD_CONFIG, values, stamps);
 *   whenever signal i was measured:  copy it to values[HELD_CONFIG.signals[i].offset], stamps[i] = now;
 *   before every step:               if (held_late(&HELD_CONFIG, stamps, now) < 0) ...
 *                                    held_complete(&HELD_CONFIG, values, stamps, now);
 *
 * C99, no heap. robo_rl.deploy.build.c.held_header writes HELD_CONFIG for a contract.
 */
#ifndef ROBO_RL_HELD_H
#define ROBO_RL_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HELD_NEVER ((int64_t)-1)

typedef struct {
    int64_t timeout;    /* the age beyond which it must not be acted on; 0: its age is not watched */
    const float *blank; /* what it is before it was measured; a null pointer: it must have been */
    float lower;        /* of an age */
    float upper;
    uint16_t offset; /* of its first float */
    uint16_t size;
    int16_t age_of; /* the signal whose age it tells, seconds; -1: none */
} held_signal;

typedef struct {
    const held_signal *signals;
    uint16_t count;
} held_config;

/* Nothing was measured: zeros, blanks, and stamps that are HELD_NEVER. */
void held_start(const held_config *config, float *values, int64_t *stamps);

/* The first signal that is too old, or has never been measured and must have been; -1 if there is none. */
int16_t held_late(const held_config *config, const int64_t *stamps, int64_t now);

/* Write the signals without a sensor: ages, as of now. */
void held_complete(const held_config *config, float *values, int64_t *stamps, int64_t now);

#ifdef __cplusplus
}
#endif

#endif
