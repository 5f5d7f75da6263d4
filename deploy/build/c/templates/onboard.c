/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl; do not edit. */
#include "${name}_onboard.h"$learn_header

#include <string.h>

#include "gate_config.h"
#include "held_config.h"

/* Signals, commands and stamps are without gaps, in the order of the contract. */
typedef char signals_agree[sizeof(${name}_signals) == sizeof(float) * GATE_SIGNAL_SIZE ? 1 : -1];
typedef char commands_agree[sizeof(${name}_commands) == sizeof(float) * GATE_COMMAND_SIZE ? 1 : -1];
typedef char stamps_agree[sizeof(${name}_stamps) == sizeof(int64_t) * GATE_SIGNAL_COUNT ? 1 : -1];

static float *flat_signals(${name}_onboard *robot) { return (float *)(void *)&robot->signals; }

static int64_t *flat_stamps(${name}_onboard *robot) { return (int64_t *)(void *)&robot->stamps; }

void ${name}_onboard_start(${name}_onboard *robot, ${name}_arena *arena)
{
    (void)memset(robot, 0, sizeof *robot);
    robot->arena = arena;
    robot->intact = ${name}_self_test(&robot->state, arena) <= ${guard}_TOLERANCE;
    held_start(&HELD_CONFIG, flat_signals(robot), flat_stamps(robot));
    robot->operator_stamp = GATE_NEVER;
    const gate_arrays arrays = {robot->gate_command, robot->gate_reference, robot->gate_values, robot->gate_stamps,
                                robot->gate_changed};
    gate_start(&GATE_CONFIG, &robot->memory, &arrays);
    (void)memcpy(&robot->commands, robot->gate_command, sizeof robot->commands);
}

/* What the policy proposes; a null pointer if it refuses, and while a signal is missing or late. */
static const float *propose(${name}_onboard *robot, int64_t now)
{
    if (held_late(&HELD_CONFIG, flat_stamps(robot), now) >= 0) {
        return NULL;
    }
    if (robot->memory.state != (uint8_t)GATE_ACTIVE) {
        ${name}_reset(&robot->state);
    }
    const ${name}_status status = ${name}_step(&robot->signals, &robot->state, &robot->proposed, robot->arena);
    return status == ${guard}_OK ? (const float *)(const void *)&robot->proposed : NULL;
}

void ${name}_onboard_step(${name}_onboard *robot, int64_t now, uint8_t requests)
{
    held_complete(&HELD_CONFIG, flat_signals(robot), flat_stamps(robot), now);
    const gate_input given = {.time = now,
                              .signals = flat_signals(robot),
                              .stamps = flat_stamps(robot),
                              .command = propose(robot, now),
                              .command_stamp = now,
                              .fallback = NULL,
                              .operator_stamp = robot->operator_stamp,
                              .bundle_intact = robot->intact,
                              .requests = requests};
    robot->gate = gate_step(&GATE_CONFIG, &robot->memory, &given);
    robot->enabled = robot->gate.source != (uint8_t)GATE_SOURCE_SILENT;
#if GATE_RELEASES
    if (robot->gate.source == (uint8_t)GATE_SOURCE_SAFE || robot->gate.source == (uint8_t)GATE_SOURCE_STOP ||
        robot->gate.source == (uint8_t)GATE_SOURCE_START) {
        robot->enabled = false; /* the safe voltage would short the windings */
    }
#endif$learn_onboard
    (void)memcpy(&robot->commands, robot->gate.command, sizeof robot->commands);
}
