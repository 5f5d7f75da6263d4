/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of Arm's reference boards: a timer that counts down (CMSDK APB timer, Arm DDI 0479D, 4.1). */
#ifndef TIMER_H
#define TIMER_H

#include <stdint.h>

typedef struct {
    volatile uint32_t control;
    volatile uint32_t value;
    volatile uint32_t reload;
} timer;

#define TIMER_ON 1u
#define TIMER_RANGE 0xffffffffu

/* The timer's own time, in ticks that never end. */
typedef struct {
    timer *counter;
    uint32_t last;
    uint64_t ticks;
} timer_clock;

static inline void timer_start(timer_clock *clock, timer *counter)
{
    counter->reload = TIMER_RANGE;
    counter->value = TIMER_RANGE;
    counter->control = TIMER_ON;
    clock->counter = counter;
    clock->last = TIMER_RANGE;
    clock->ticks = 0u;
}

/* From the main loop and from interrupts. Ask more often than the counter's range lasts: two minutes at 32 MHz. */
static inline uint64_t timer_ticks(timer_clock *clock)
{
    uint32_t masked;
    __asm__ volatile("mrs %0, primask\n cpsid i" : "=r"(masked) : : "memory");
    const uint32_t now = clock->counter->value;
    clock->ticks += (uint32_t)(clock->last - now);
    clock->last = now;
    const uint64_t ticks = clock->ticks;
    __asm__ volatile("msr primask, %0" : : "r"(masked) : "memory");
    return ticks;
}

#endif
