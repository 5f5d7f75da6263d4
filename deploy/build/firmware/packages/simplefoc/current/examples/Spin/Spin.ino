/* SPDX-License-Identifier: Apache-2.0 */
// A policy keeps the current in q that the serial monitor tells: a arms, b begins, T0.5 is 0.5 A, s stops, r resets a
// fault. Put in your board's pins, sensor, current sense and supply.
#include <${name}_motor.h>

BLDCMotor motor = BLDCMotor(7);
BLDCDriver6PWM driver = BLDCDriver6PWM(A_PHASE_UH, A_PHASE_UL, A_PHASE_VH, A_PHASE_VL, A_PHASE_WH, A_PHASE_WL);
LowsideCurrentSense current_sense = LowsideCurrentSense(0.003f, -64.0f / 7.0f, A_OP1_OUT, A_OP2_OUT, A_OP3_OUT);
MagneticSensorSPI sensor = MagneticSensorSPI(AS5147_SPI, 10); // its angle is read in every period, here ${rate} times a second
Commander command = Commander(Serial);
${name}_motor drive(motor);

static float current; // A in q
static uint8_t requests;

static void on_current(char *text) { command.scalar(&current, text); }
static void on_arm(char *) { requests |= GATE_REQUEST_ARM; }
static void on_begin(char *) { requests |= GATE_REQUEST_ACTIVATE; }
static void on_stop(char *) { requests |= GATE_REQUEST_STOP; }
static void on_reset(char *) { requests |= GATE_REQUEST_RESET; }

static float bus_voltage() {
  return driver.voltage_power_supply; // V; better a divider and analogRead, the policy makes use of what it measures
}

void setup() {
  Serial.begin(115200);
  sensor.init();
  motor.linkSensor(&sensor);
  driver.voltage_power_supply = 24.0f;
  driver.init();
  motor.linkDriver(&driver);
  current_sense.linkDriver(&driver);
  motor.foc_modulation = FOCModulationType::SpaceVectorPWM; // the policy commands up to 1 / sqrt(3) of the supply
  motor.init(); // switches the driver on until drive.start()
  current_sense.init();
  motor.linkCurrentSense(&current_sense);
  motor.initFOC(); // turns the shaft, unless zero_electric_angle and sensor_direction are given
  command.add('T', on_current, "current in q");
  command.add('a', on_arm, "arm");
  command.add('b', on_begin, "begin");
  command.add('s', on_stop, "stop");
  command.add('r', on_reset, "reset");
  if (!drive.start()) {
    Serial.println("self-test failed, or motor not ready: it will not arm");
  }
}

void loop() {
  drive.run(0.0f, current, bus_voltage(), requests);
  requests = GATE_REQUEST_NONE;
  command.run();
}
