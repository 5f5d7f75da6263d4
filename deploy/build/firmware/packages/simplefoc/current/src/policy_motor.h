/* SPDX-License-Identifier: Apache-2.0 */
/* ${title}, in place of SimpleFOC's current loop: currents in, voltages in d and q out.
 *
 *   setup():  after motor.initFOC():  drive.start()           false: it will never arm
 *   loop():                           drive.run(d, q, volts, GATE_REQUEST_…)         not motor.loopFOC(), not motor.move()
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
    explicit ${name}_motor(BLDCMotor &motor) : motor(motor) {}

    ${name}_onboard robot = {}; /* state of the gate, problem, signals and commands */

    /* False where the motor is not ready. */
    bool start()
    {
        motor.disable();
        ${name}_onboard_start(&robot, &arena);
        robot.intact = robot.intact && motor.motor_status == FOCMotorStatus::motor_ready && motor.sensor != nullptr &&
                       motor.current_sense != nullptr;
        last = due = micros();
        return robot.intact;
    }

    /* As often as possible. d, q: A, amplitudes; bus_voltage: V, measured.
     * requests: those of enum gate_request that have come since the last call. */
    void run(float d, float q, float bus_voltage, uint8_t requests)
    {
        if (!robot.intact) {
            return; /* no sensor, perhaps; the driver stays off */
        }
        asked |= requests;
        const unsigned long time = micros();
        if ((long)(time - due) < 0) {
            return;
        }
        due += PERIOD_US;
        now += (int64_t)(time - last);
        motor.sensor->update();
        const float electrical = motor.electricalAngle();
        send(electrical);
        sense(electrical, 1e-6f * (float)(time - last), bus_voltage);
        last = time;
        robot.signals.current_setpoint[0] = d;
        robot.signals.current_setpoint[1] = q;
        robot.stamps.current_setpoint = now;
        robot.operator_stamp = now;
        ${name}_onboard_step(&robot, now, asked);
        asked = GATE_REQUEST_NONE;
        if (!robot.enabled && motor.enabled) {
            motor.disable();
        }
    }

  private:
    static const unsigned long PERIOD_US = (unsigned long)(1e6f * ${guard}_PERIOD_S + 0.5f);

    BLDCMotor &motor;
    ${name}_arena arena = {};
    unsigned long due = 0;
    unsigned long last = 0;
    int64_t now = 0; /* microseconds; micros() wraps after 71 minutes, its differences do not */
    uint8_t asked = GATE_REQUEST_NONE;
    ${name}_shaft shaft;

    /* The command of the period before, as in training, turned on to the middle of the period in which it acts. */
    void send(float electrical)
    {
        if (!robot.enabled) {
            return;
        }
        if (!motor.enabled) {
            motor.enable();
        }
        const float ahead = 0.5f * ${guard}_PERIOD_S * (float)motor.pole_pairs * robot.signals.rotor_speed[0];
        motor.setPhaseVoltage(robot.commands.voltage[1], robot.commands.voltage[0], electrical + ahead);
    }

    void sense(float electrical, float elapsed, float bus_voltage)
    {
        if (shaft.measure(motor, elapsed)) {
            const DQCurrent_s current = motor.current_sense->getFOCCurrents(electrical);
            robot.signals.rotor_speed[0] = shaft.speed;
            robot.signals.current[0] = current.d + shaft.shift * ${current_shift};
            robot.signals.current[1] = current.q + shaft.shift * ${current_shift};
            robot.signals.bus_voltage[0] = bus_voltage + shaft.shift * ${voltage_shift};
            robot.stamps.rotor_speed = now;
            robot.stamps.current = now;
            robot.stamps.bus_voltage = now;
        }
    }
};

#endif
