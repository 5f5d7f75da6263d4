/* SPDX-License-Identifier: Apache-2.0 */
// The policy at its rate, behind the gate: checks signals, arms, steps and stops.
// Fill in read_signals, operator_request and send_commands for your robot.
#include <${name}_onboard.h>

static ${name}_onboard robot;
static ${name}_arena arena;
static unsigned long due;
static unsigned long last;
static int64_t now; // microseconds; micros() wraps after 71 minutes, its differences do not

static void read_signals() {
  // for every signal that was measured: robot.signals.… and robot.stamps.… = now, in SI units and in the order that
  // ${name}.h tells; a signal without a new measurement keeps its stamp, and is refused when it is too old
}

static uint8_t operator_request() {
  // GATE_REQUEST_ARM, _ACTIVATE, _DISARM, _STOP, _RESET, as asked by buttons, a radio or the serial monitor
  robot.operator_stamp = now; // whenever the operator was heard
  return GATE_REQUEST_NONE;
}

static void send_commands() {
  // robot.commands, if robot.enabled; else the actuators are disabled
}

void setup() {
  ${name}_onboard_start(&robot, &arena); // robot.intact is false if the self-test fails: then it never arms
  last = due = micros();
}

void loop() {
  const unsigned long time = micros();
  if ((long)(time - due) < 0) {
    return;
  }
  due += (unsigned long)(1e6f * ${guard}_PERIOD_S + 0.5f);
  now += (int64_t)(time - last);
  last = time;
  read_signals();
  ${name}_onboard_step(&robot, now, operator_request());
  send_commands();
}
