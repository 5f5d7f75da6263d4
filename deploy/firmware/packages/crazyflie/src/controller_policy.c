/* SPDX-License-Identifier: Apache-2.0 */
/* ${title}, as an out-of-tree controller of the Crazyflie firmware: set-point and estimate in, motor forces out.
 *
 * The firmware calls the controller 1000 times a second; the policy runs ${rate} times a second and its command holds in
 * between. The firmware refuses to fly if the self-test fails. What is left to the firmware's supervisor: arming,
 * tumble detection, emergency stop. */
#include <stdbool.h>

#include "FreeRTOS.h"
#include "task.h"

#include "app.h"
#include "controller.h"
#include "math3d.h"
#include "stabilizer_types.h"

#include "${name}.h"

#define STEPS_PER_PERIOD (1000 / ${rate})

static ${name}_signals signals;
static ${name}_state memory;
static ${name}_commands commands;
static ${name}_arena arena;
static bool flying;
static uint32_t last_step;

void appMain(void)
{
    for (;;) {
        vTaskDelay(portMAX_DELAY);
    }
}

void controllerOutOfTreeInit(void)
{
    ${name}_reset(&memory);
    (void)${name}_safe_commands(&signals, &commands);
    flying = false;
}

bool controllerOutOfTreeTest(void)
{
    return ${name}_self_test(&memory, &arena) <= ${guard}_TOLERANCE;
}

static void fill(float *to, float x, float y, float z)
{
    to[0] = x;
    to[1] = y;
    to[2] = z;
}

/* Estimates in the firmware's units: m, m/s, deg/s; quaternion x, y, z, w, body to world */
static void read_signals(const setpoint_t *setpoint, const sensorData_t *sensors, const state_t *state)
{
    const quaternion_t *const q = &state->attitudeQuaternion;
    fill(signals.position, state->position.x, state->position.y, state->position.z);
    fill(signals.orientation, q->x, q->y, q->z);
    signals.orientation[3] = q->w;
    fill(signals.linear_velocity, state->velocity.x, state->velocity.y, state->velocity.z);
    fill(signals.angular_velocity, radians(sensors->gyro.x), radians(sensors->gyro.y), radians(sensors->gyro.z));
    fill(signals.position_setpoint, setpoint->position.x, setpoint->position.y, setpoint->position.z);
    fill(signals.linear_velocity_setpoint, setpoint->velocity.x, setpoint->velocity.y, setpoint->velocity.z);
}

/* Rotor speeds as parts of the greatest thrust, which goes with the square of the speed */
static void send_commands(control_t *control)
{
    control->controlMode = controlModeForce;
    for (uint32_t i = 0; i < 4u; i++) {
        const float part = commands.rotor_speed[i] / ${name}_upper.rotor_speed[i];
        control->normalizedForces[i] = part * part;
    }
}

void controllerOutOfTree(control_t *control, const setpoint_t *setpoint, const sensorData_t *sensors,
                         const state_t *state, const stabilizerStep_t step)
{
    const bool wanted = (setpoint->mode.z == modeAbs) || (setpoint->mode.z == modeVelocity);
    if (!wanted) {
        flying = false;
        (void)${name}_safe_commands(&signals, &commands);
    } else if (!flying || ((uint32_t)step - last_step >= STEPS_PER_PERIOD)) {
        if (!flying) {
            ${name}_reset(&memory);
        }
        flying = true;
        last_step = (uint32_t)step;
        read_signals(setpoint, sensors, state);
        if (${name}_step(&signals, &memory, &commands, &arena) != ${guard}_OK) {
            (void)${name}_safe_commands(&signals, &commands);
        }
    }
    send_commands(control);
}
