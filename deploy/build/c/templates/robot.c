/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl; do not edit. The whole bundle as robot.h tells it. */
#include "robot.h"

#include <string.h>

#include "gate_config.h"
#include "held_config.h"
#include "${name}.h"

typedef char signals_agree[sizeof(${name}_signals) == sizeof(float) * GATE_SIGNAL_SIZE ? 1 : -1];
typedef char commands_agree[sizeof(${name}_commands) == sizeof(float) * GATE_COMMAND_SIZE ? 1 : -1];

static float self_test(void *state, void *arena) { return ${name}_self_test(state, arena); }

static void reset(void *state) { ${name}_reset(state); }

static uint32_t step(const float *signals, void *state, float *commands, void *arena)
{
    ${name}_signals given;
    ${name}_commands proposed;
    (void)memcpy(&given, signals, sizeof given);
    const uint32_t status = (uint32_t)${name}_step(&given, state, &proposed, arena);
    if (status == 0u) {
        (void)memcpy(commands, &proposed, sizeof proposed);
    }
    return status;
}

$elements

static const robot_channel SIGNALS[] = {
$signals
};

static const robot_channel COMMANDS[] = {
$commands
};
$attitudes
extern const robot_bundle robo_rl_robot;
const robot_bundle robo_rl_robot = {
    .interface = ROBOT_INTERFACE,
    .bytes = sizeof(robot_bundle),
    .bundle_digest = ${guard}_BUNDLE_DIGEST,
    .contract_digest = ${guard}_CONTRACT_DIGEST,
    .contract = $contract,
    .task = $task,
    .robot = $robot,
    .gate = &GATE_CONFIG,
    .held = &HELD_CONFIG,
    .signals = SIGNALS,
    .commands = COMMANDS,
    .attitudes = $attitude_table,
    .attitude_count = ${attitude_count}u,
    .signal_size = GATE_SIGNAL_SIZE,
    .state_bytes = sizeof(${name}_state),
    .arena_bytes = sizeof(${name}_arena),
    .control_period = $period,
    .fastest = $fastest,
    .radius = $radius,
    .tolerance = ${guard}_TOLERANCE,
    .self_test = self_test,
    .reset = reset,
    .step = step,
    .gate_start = gate_start,
    .gate_step = gate_step,
    .held_late = held_late,
    .held_complete = held_complete,
};
