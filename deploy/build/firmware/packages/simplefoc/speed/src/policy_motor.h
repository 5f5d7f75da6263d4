/* SPDX-License-Identifier: Apache-2.0 */
/* ${title}, as the speed loop of a SimpleFOC motor that keeps its current in q.
 *
 *   setup():  after motor.initFOC():  drive.start()           false: it will never arm
 *   loop():                           drive.run(speed, GATE_REQUEST_…)
 *
 * The driver is off until the gate is armed. SimpleFOC 2.4 keeps the last angle of a sensor that fails, so that its shaft
 * seems to stand: limit the supply's current too. */
#ifndef ${guard}_MOTOR_H
#define ${guard}_MOTOR_H

#include <SimpleFOC.h>

#include "${name}_onboard.h"
#include "${name}_shaft.h"

class ${name}_motor
{
  public:
    explicit ${name}_motor(FOCMotor &motor) : motor(motor) {}

    ${name}_onboard robot = {}; /* state of the gate, problem, signals and commands */

    /* Torque control by current; false where the motor is not ready, or its current limit is below the contract's. */
    bool start()
    {
        motor.controller = MotionControlType::torque;
        motor.torque_controller = TorqueControlType::foc_current;
        motor.disable();
        ${name}_onboard_start(&robot, &arena);
        robot.intact = robot.intact && ready();
        last = due = micros();
        return robot.intact;
    }

    /* As often as possible: the current loop each time, the policy at its rate. speed: rad/s of the shaft.
     * requests: those of enum gate_request that have come since the last call. */
    void run(float speed, uint8_t requests)
    {
        if (!robot.intact) {
            return; /* no sensor, perhaps; the driver stays off */
        }
        motor.loopFOC();
        asked |= requests;
        const unsigned long time = micros();
        if ((long)(time - due) < 0) {
            return;
        }
        due += PERIOD_US;
        now += (int64_t)(time - last);
        sense(1e-6f * (float)(time - last), speed);
        last = time;
        ${name}_onboard_step(&robot, now, asked);
        asked = GATE_REQUEST_NONE;
        send();
    }

  private:
    static const unsigned long PERIOD_US = (unsigned long)(1e6f * ${guard}_PERIOD_S + 0.5f);

    FOCMotor &motor;
    ${name}_arena arena = {};
    unsigned long due = 0;
    unsigned long last = 0;
    int64_t now = 0; /* microseconds; micros() wraps after 71 minutes, its differences do not */
    uint8_t asked = GATE_REQUEST_NONE;
    ${name}_shaft shaft;

    bool ready() const
    {
        return motor.motor_status == FOCMotorStatus::motor_ready && motor.sensor != nullptr &&
               motor.current_sense != nullptr && motor.current_limit >= ${current};
    }

    /* The current is that of the last loop. */
    void sense(float elapsed, float speed)
    {
        robot.signals.rotor_speed_setpoint[0] = speed;
        robot.stamps.rotor_speed_setpoint = now;
        robot.operator_stamp = now;
        if (shaft.measure(motor, elapsed)) {
            robot.signals.rotor_speed[0] = shaft.speed;
            robot.signals.current[0] = motor.current.q + shaft.shift * ${current_shift};
            robot.stamps.rotor_speed = now;
            robot.stamps.current = now;
        }
    }

    void send()
    {
        if (!robot.enabled) {
            if (motor.enabled) {
                motor.disable();
            }
            return;
        }
        if (!motor.enabled) {
            motor.enable();
        }
        motor.move(robot.commands.current_target[0]);
    }
};

#endif
