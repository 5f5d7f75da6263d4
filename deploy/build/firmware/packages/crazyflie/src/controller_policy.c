/* SPDX-License-Identifier: Apache-2.0 */
/* ${title}, as an out-of-tree controller of the Crazyflie firmware: set-point and estimate in, motor forces out.
 *
 * The firmware calls the controller 1000 times a second; the policy runs ${rate} times a second behind the gate, and its
 * command holds in between. The gate is armed when there is a set-point, and disarmed when there is none; a fault
 * (robot.gate.problem) is latched until the set-point ends. The firmware refuses to fly if the self-test fails. What is left
 * to the firmware's supervisor: arming, tumble detection, emergency stop. */
#include <stdbool.h>

#include "FreeRTOS.h"
#include "task.h"

#include "app.h"
#include "controller.h"
#include "math3d.h"
#include "platform_defaults.h"
#include "stabilizer_types.h"
#include "usec_time.h"

#include "${name}_onboard.h"

#ifndef THRUST_MAX
#error "this firmware does not tell the thrust (N) at full scale: THRUST_MAX in platform_defaults.h; use a newer one"
#endif

#define STEPS_PER_PERIOD (1000 / ${rate})

static ${name}_onboard robot;
static ${name}_arena arena;
static uint32_t last_step;

void appMain(void)
{
    for (;;) {
        vTaskDelay(portMAX_DELAY);
    }
}

void controllerOutOfTreeInit(void)
{
    ${name}_onboard_start(&robot, &arena);
}

bool controllerOutOfTreeTest(void)
{
    return robot.intact;
}

static void fill(float *to, float x, float y, float z)
{
    to[0] = x;
    to[1] = y;
    to[2] = z;
}

/* Estimates in the firmware's units: m, m/s, deg/s; quaternion x, y, z, w, body to world */
static void read_signals(const setpoint_t *setpoint, const sensorData_t *sensors, const state_t *state, int64_t now)
{
    ${name}_signals *const signals = &robot.signals;
    const quaternion_t *const q = &state->attitudeQuaternion;
    fill(signals->position, state->position.x, state->position.y, state->position.z);
    fill(signals->orientation, q->x, q->y, q->z);
    signals->orientation[3] = q->w;
    fill(signals->linear_velocity, state->velocity.x, state->velocity.y, state->velocity.z);
    fill(signals->angular_velocity, radians(sensors->gyro.x), radians(sensors->gyro.y), radians(sensors->gyro.z));
    fill(signals->position_setpoint, setpoint->position.x, setpoint->position.y, setpoint->position.z);
    fill(signals->linear_velocity_setpoint, setpoint->velocity.x, setpoint->velocity.y, setpoint->velocity.z);
    robot.stamps.position = now;
    robot.stamps.orientation = now;
    robot.stamps.linear_velocity = now;
    robot.stamps.angular_velocity = now;
    robot.stamps.position_setpoint = now;
    robot.stamps.linear_velocity_setpoint = now;
    robot.operator_stamp = now;
}

/* Armed as long as there is a set-point. */
static uint8_t request(bool wanted)
{
    const uint8_t state = robot.gate.state;
    if (!wanted) {
        return (state == GATE_FAULT) ? GATE_REQUEST_RESET : GATE_REQUEST_DISARM;
    }
    return (state == GATE_IDLE) ? GATE_REQUEST_ARM : ((state == GATE_READY) ? GATE_REQUEST_ACTIVATE : GATE_REQUEST_NONE);
}

/* N for each rotor: c0 + c1 speed + c2 speed^2, speed in rad/s, from the robot's card */
static const float thrust_curve[4][3] = {
$thrusts
};

/* Rotor speeds as parts of the thrust at full scale, which depends on the propellers that the firmware is built for.
 * What a policy asks beyond that is more than this vehicle has. */
static void send_commands(control_t *control)
{
    control->controlMode = controlModeForce;
    for (uint32_t i = 0; i < 4u; i++) {
        const float speed = robot.commands.rotor_speed[i];
        const float *const c = thrust_curve[i];
        const float part = (c[0] + speed * (c[1] + speed * c[2])) / THRUST_MAX;
        control->normalizedForces[i] = (!robot.enabled || part < 0.0f) ? 0.0f : ((part > 1.0f) ? 1.0f : part);
    }
}

void controllerOutOfTree(control_t *control, const setpoint_t *setpoint, const sensorData_t *sensors,
                         const state_t *state, const stabilizerStep_t step)
{
    if ((uint32_t)step - last_step >= STEPS_PER_PERIOD) {
        const int64_t now = (int64_t)usecTimestamp();
        last_step = (uint32_t)step;
        read_signals(setpoint, sensors, state, now);
        ${name}_onboard_step(&robot, now, request((setpoint->mode.z == modeAbs) || (setpoint->mode.z == modeVelocity)));
    }
    send_commands(control);
}
