/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a robot, with recorded signals for sensors and simulated time: checks, arms, activates, steps, stops.
 * Exits with 0 if the policy was active and the stop ended that. */
#include <stdio.h>

#include "${name}_onboard.h"

static ${name}_onboard robot;
static ${name}_arena arena;

/* Your sensors, in SI units and in the order that ${name}.h tells; here every signal is measured at every step. */
static void read_signals(unsigned step, int64_t now)
{
    robot.signals = ${name}_recorded_signals[step % ${guard}_GOLDEN_STEPS];
    int64_t *const stamps = (int64_t *)(void *)&robot.stamps;
    for (size_t i = 0; i < sizeof robot.stamps / sizeof(int64_t); i++) {
        stamps[i] = now;
    }
    robot.operator_stamp = now;
}

/* Your actuators: disabled while robot.enabled is false. */
static void send_commands(void)
{
    const float *const commands = (const float *)(const void *)&robot.commands;
    if (robot.enabled) {
        printf("%d %g\n", robot.gate.state, (double)commands[0]);
    }
}

int main(void)
{
    const int64_t period = (int64_t)(1e6f * ${guard}_PERIOD_S + 0.5f);
    bool was_active = false;
    ${name}_onboard_start(&robot, &arena);
    for (unsigned step = 0; step < 1000u; step++) {
        const int64_t now = (int64_t)step * period; /* on a robot: wait for the period to end, read the clock */
        uint8_t request = GATE_REQUEST_NONE;        /* on a robot: the operator's */
        if (robot.gate.state == GATE_IDLE) {
            request = GATE_REQUEST_ARM;
        } else if (robot.gate.state == GATE_READY) {
            request = GATE_REQUEST_ACTIVATE; /* refused until the actuators are at the start */
        } else if (step >= 900u) {
            request = GATE_REQUEST_STOP;
        } else {
            was_active = was_active || robot.gate.state == GATE_ACTIVE;
        }
        read_signals(step, now);
        ${name}_onboard_step(&robot, now, request);
        send_commands();
    }
    return was_active && robot.gate.state == GATE_FAULT && robot.gate.problem.reason == GATE_REASON_OPERATOR_STOP ? 0 : 1;
}
