/* SPDX-License-Identifier: Apache-2.0 */
// A policy turns a SimpleFOC motor at the speed that the serial monitor tells: a arms, b begins, T50 is 50 rad/s, s stops,
// r resets a fault. Put in your board's pins, sensor, current sense and supply.
#include <${name}_motor.h>

BLDCMotor motor = BLDCMotor(7);
BLDCDriver6PWM driver = BLDCDriver6PWM(A_PHASE_UH, A_PHASE_UL, A_PHASE_VH, A_PHASE_VL, A_PHASE_WH, A_PHASE_WL);
LowsideCurrentSense current_sense = LowsideCurrentSense(0.003f, -64.0f / 7.0f, A_OP1_OUT, A_OP2_OUT, A_OP3_OUT);
MagneticSensorI2C sensor = MagneticSensorI2C(AS5600_I2C);
Commander command = Commander(Serial);
${name}_motor drive(motor);

static float speed; // rad/s
static uint8_t requests;

static void on_speed(char *text) { command.scalar(&speed, text); }
static void on_arm(char *) { requests |= GATE_REQUEST_ARM; }
static void on_begin(char *) { requests |= GATE_REQUEST_ACTIVATE; }
static void on_stop(char *) { requests |= GATE_REQUEST_STOP; }
static void on_reset(char *) { requests |= GATE_REQUEST_RESET; }

void setup() {
  Serial.begin(115200);
  sensor.init();
  motor.linkSensor(&sensor);
  driver.voltage_power_supply = 24.0f;
  driver.init();
  motor.linkDriver(&driver);
  current_sense.linkDriver(&driver);
  motor.current_limit = ${current}; // A, the contract's
  motor.init(); // switches the driver on until drive.start()
  current_sense.init();
  motor.linkCurrentSense(&current_sense);
  motor.tuneCurrentController(${bandwidth}); // Hz, what the policy was trained with
  motor.initFOC(); // turns the shaft, unless zero_electric_angle and sensor_direction are given
  command.add('T', on_speed, "speed");
  command.add('a', on_arm, "arm");
  command.add('b', on_begin, "begin");
  command.add('s', on_stop, "stop");
  command.add('r', on_reset, "reset");
  if (!drive.start()) {
    Serial.println("self-test failed, motor not ready, or current_limit too low: it will not arm");
  }
}

void loop() {
  drive.run(speed, requests);
  requests = GATE_REQUEST_NONE;
  command.run();
}
