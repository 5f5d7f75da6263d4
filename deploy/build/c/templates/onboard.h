/* SPDX-License-Identifier: Apache-2.0 */
/* A robot whose own board reads the sensors: gate, policy and held signals, one call per control period.
 *
 *   static ${name}_onboard robot;
 *   ${name}_onboard_start(&robot, &arena);               power-up: self-test, idle, the actuators disabled
 *   whenever a signal was measured:                      robot.signals.… = …; robot.stamps.… = now;
 *   every ${guard}_PERIOD_S:                             ${name}_onboard_step(&robot, now, GATE_REQUEST_NONE);
 *   at all times: the actuators get robot.commands; while robot.enabled is false they are disabled
 *
 * The requests of an operator (gate.h) arm, activate, disarm, stop and reset. A signal that is missing, late, not finite
 * or out of its range, a step that is late, or a policy that gives no commands within their limits, leads to the safe
 * commands and a latched fault. The policy's memory is reset at every step until the gate is active.
 *
 * Made by robo-rl; do not edit. C99, no heap, no clock of its own: times are microseconds of a monotonic clock. */
#ifndef ${guard}_ONBOARD_H
#define ${guard}_ONBOARD_H

#include "${name}.h"
#include "gate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When each signal was measured. Negative: not yet. */
typedef struct {
$stamps
} ${name}_stamps;

typedef struct {
    /* the board writes */
    ${name}_signals signals;
    ${name}_stamps stamps;
    int64_t operator_stamp; /* when the operator was heard last, if the contract needs one ($operator) */

    /* the board reads */
    ${name}_commands commands;
    bool enabled; /* false until the first arming since power-up; with GATE_RELEASES also in each stop */
    bool intact;  /* the self-test has passed; if not, the gate refuses to arm */
    gate_output gate; /* state, problem and events of the last step; gate.command is what commands holds */

    ${name}_state state;
    ${name}_commands proposed;
    ${name}_arena *arena;
    gate_memory memory;
    float gate_command[$command_size];
    float gate_reference[$command_size];
    float gate_values[$signal_size];
    int64_t gate_stamps[$signal_count];
    int64_t gate_changed[$signal_count];
} ${name}_onboard;

/* Power-up: the self-test; nothing is known, nothing is armed, the actuators are disabled. */
void ${name}_onboard_start(${name}_onboard *robot, ${name}_arena *arena);

/* One control period: checks, policy, gate. requests: those of enum gate_request that have come since the last step. */
void ${name}_onboard_step(${name}_onboard *robot, int64_t now, uint8_t requests);

#ifdef __cplusplus
}
#endif

#endif
