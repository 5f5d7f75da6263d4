/* SPDX-License-Identifier: Apache-2.0 */
// The policy at its rate, after its self-test. Fill in read_signals and send_commands for your robot.
#include <${name}.h>

static ${name}_signals signals;
static ${name}_state state;
static ${name}_commands commands;
static ${name}_arena arena;
static bool armed = false;
static unsigned long due;

static void read_signals(void) {
  // signals are in SI units and in the order that ${name}.h tells
}

static void send_commands(const ${name}_commands *values) {
  (void)values;
}

void setup() {
  armed = ${name}_self_test(&state, &arena) <= ${guard}_TOLERANCE;
  ${name}_reset(&state);
  due = micros();
}

void loop() {
  const unsigned long period = (unsigned long)(1e6f * ${guard}_PERIOD_S + 0.5f);
  if (micros() - due < period) {
    return;
  }
  due += period;
  read_signals();
  if (!armed || ${name}_step(&signals, &state, &commands, &arena) != ${guard}_OK) {
    (void)${name}_safe_commands(&signals, &commands);
  }
  send_commands(&commands);
}
