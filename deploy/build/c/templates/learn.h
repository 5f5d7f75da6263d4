/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl from a bundle; do not edit. Learning on the microcontroller: a streaming actor-critic.
 *
 * ${name}_step calls it. There is one learner, for one robot. Until ${name}_learn_allow(1) nothing is learnt or tried,
 * and the policy is the exported one. */
#ifndef ${guard}_LEARN_H
#define ${guard}_LEARN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${guard}_LEARN_INPUTS ${inputs}u
#define ${guard}_LEARN_ACTIONS ${actions}u
#define ${guard}_LEARN_ACTOR ${actor}u   /* parameters */
#define ${guard}_LEARN_CRITIC ${critic}u
#define ${guard}_LEARN_SLOT (88u + (4u * ${guard}_LEARN_ACTOR)) /* bytes of a slot in flash */

/* How the learning goes: numbers to be sent and logged. */
typedef struct {
    uint32_t steps;   /* in which learning was allowed */
    uint32_t learnt;  /* from so many */
    uint32_t spikes;  /* surprises beyond the usual, that were not learnt from */
    uint32_t returns; /* how often the exported weights came back, as less was earned than with them */
    uint32_t off;     /* 1: ended, by a number that is none or too many returns */
    float first;      /* earned per step with the exported weights, scaled */
    float last;       /* in the newest block */
} ${name}_learn_progress;

/* Whether to learn and explore from now on: only while the gate is active, without a fault, in the envelope. */
void ${name}_learn_allow(uint8_t allowed);

/* The next step does not follow the last one. */
void ${name}_learn_pause(void);

/* Back to the exported weights, as after power-up. */
void ${name}_learn_reset(void);

/* Called by ${name}_step. */
void ${name}_learn_act(const float *observation, float reward, float *action);

void ${name}_learn_progress_now(${name}_learn_progress *progress);

/* The bytes of a slot with the actor's weights, to be written to flash while the robot is at rest, into the slot that
 * does not hold the newest ones. */
void ${name}_learn_save(uint32_t sequence, uint8_t slot[${guard}_LEARN_SLOT]);

/* Some of those bytes, zeros beyond the slot's end: for a page of flash, or a frame of the link. */
void ${name}_learn_piece(uint32_t sequence, uint32_t offset, uint8_t *bytes, uint32_t count);

/* The sequence that the next slot has: one more than that of the weights that were restored, 1 without. */
uint32_t ${name}_learn_sequence(void);

/* Take the weights of the newest whole slot of two, of this very bundle; its sequence, or 0 where neither is: then the
 * exported weights stay. */
uint32_t ${name}_learn_restore(const uint8_t *first, const uint8_t *second);

#ifdef __cplusplus
}
#endif

#endif
