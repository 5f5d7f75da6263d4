/* SPDX-License-Identifier: Apache-2.0 */
/* What a device does between its wire and its actuators: link, policy and gate, a step for every signals message.
 *
 * Signals that come within half a control period of when the step is due make it; when none come, it is made then
 * with the newest there are; signals that come before just replace older ones. So the rate is kept, and the phase
 * is that of the host. Signals that are slow, or may be absent, come alone, when they were measured, and are held.
 *
 *   static device robot;
 *   device_start(&robot, &arena, ${name}_self_test(&state, &arena) <= ${guard}_TOLERANCE, now);
 *   for every byte from the wire:  device_take(&robot, byte, now);
 *   every millisecond or so:       device_wake(&robot, now);
 *   from a timer's interrupt, too: device_tick(&robot, now);
 *   after each of the first two:   size = device_output(&robot, buffer); send buffer[0] to buffer[size - 1]
 *   at all times:                  the actuators get robot.motors; while robot.enabled is false they are disabled
 *
 * The interrupt has the last word: where the policy takes a whole control period, or two pass without a step of the gate,
 * the interrupt makes that step, and every later one, until the main loop goes on. A handler of hardware faults does the
 * same by calling device_tick for ever.
 *
 * Made by robo-rl; do not edit. C99, no heap, no clock of its own: times are microseconds of the board's monotonic
 * clock. docs/link.md tells what goes over the wire, docs/safety.md what the gate does.
 */
#ifndef ROBO_RL_DEVICE_H
#define ROBO_RL_DEVICE_H

#include "${name}.h"
#include "gate_config.h"
#include "held_config.h"
#include "link_message.h"

#define DEVICE_SIGNALS_SIZE (12 + 4 * (LINK_TOGETHER_COUNT + LINK_TOGETHER_SIZE))
#define DEVICE_SAMPLE_SIZE (LINK_SAMPLE_HEAD + 4 * LINK_SAMPLE_LONGEST)
#define DEVICE_COMMANDS_SIZE (12 + 4 * GATE_COMMAND_SIZE)
#define DEVICE_STATISTICS_SIZE 52
#define DEVICE_HELLO_SIZE (18 + LINK_DIGEST_SIZE)
#define DEVICE_FAULT_SIZE 16

/* The longest payload that comes in. */
#define DEVICE_LONGER(a, b) ((a) > (b) ? (a) : (b))
#define DEVICE_LONGEST DEVICE_LONGER(DEVICE_LONGER(DEVICE_SIGNALS_SIZE, DEVICE_SAMPLE_SIZE), DEVICE_STATISTICS_SIZE)
/* What one byte can make a device say: a hello, and the answers to signals. */
#define DEVICE_FRAME(payload) (LINK_BUFFER_SIZE(payload) + 1)
#define DEVICE_OUT_SIZE                                                                                               \
    (1 + DEVICE_FRAME(DEVICE_HELLO_SIZE) + DEVICE_FRAME(DEVICE_COMMANDS_SIZE) + DEVICE_FRAME(DEVICE_FAULT_SIZE) +     \
     DEVICE_FRAME(DEVICE_STATISTICS_SIZE) + $learn_size)

typedef struct {
    /* for the board */
    const float *motors; /* GATE_COMMAND_SIZE values in SI units */
    bool enabled;        /* false until the first arming since power-up; with GATE_RELEASES also in each stop */
    uint32_t step_time; /* the longest step, microseconds, for the statistics; the board measures it, if it does */

    /* the wire */
    uint8_t out[DEVICE_OUT_SIZE]; /* for device_output */
    size_t out_size;
    link_decoder decoder;
    link_session session;
    link_clock clock;
    uint16_t sequence;
    uint8_t buffer[LINK_BUFFER_SIZE(DEVICE_LONGEST)];

    /* the newest that came over it, and ages */
    float values[GATE_SIGNAL_SIZE];
    int64_t stamps[GATE_SIGNAL_COUNT];
    int64_t operator_stamp;
    uint16_t answers;
    uint8_t requests;

    /* the policy */
    bool intact; /* the self-test has passed; if not, the gate refuses to arm */
    ${name}_state state;
    ${name}_commands proposed;
    ${name}_arena *arena;

    /* the gate */
    gate_memory gate;
    float command[GATE_COMMAND_SIZE];
    float reference[GATE_COMMAND_SIZE];
    float gate_values[GATE_SIGNAL_SIZE];
    int64_t gate_stamps[GATE_SIGNAL_COUNT];
    int64_t gate_changed[GATE_SIGNAL_COUNT];

    int64_t due; /* when the next step is expected */
    int64_t begun;              /* when the policy was asked last */
    volatile uint8_t stage;     /* what the main loop does: the interrupt keeps away from a step of the gate */
    volatile bool interrupted;  /* the interrupt has made the step that the main loop was about to make */
    uint32_t steps;
    uint32_t late_steps;
} device;

/* Power-up: nothing is known, nothing is armed, the actuators are disabled. Several devices may share an arena. */
void device_start(device *d, ${name}_arena *arena, bool intact, int64_t now);

/* One byte from the wire. */
void device_take(device *d, uint8_t byte, int64_t now);

/* The dead-man's switch, and the step that is due if signals stay away. */
void device_wake(device *d, int64_t now);

/* Moves what is to be sent to a buffer of DEVICE_OUT_SIZE bytes; how many there are. The interrupt may say more while they
 * are sent. */
size_t device_output(device *d, uint8_t *to);

/* From an interrupt that the main loop can't hold up: the step of the gate that is overdue, if one is. */
void device_tick(device *d, int64_t now);

#endif
