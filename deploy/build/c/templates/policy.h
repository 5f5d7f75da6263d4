/* SPDX-License-Identifier: Apache-2.0 */
/* $title
 *
 * Made by robo-rl from a bundle; do not edit. The whole policy: raw signals in SI units in, commands in SI units out.
 * Call ${name}_step once per control period, $period_ms ms, no other rate. */
#ifndef ${guard}_H
#define ${guard}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${guard}_PERIOD_S $period
#define ${guard}_CONTRACT_DIGEST $contract_digest
#define ${guard}_BUNDLE_DIGEST $bundle_digest
#define ${guard}_GOLDEN_STEPS ${golden_steps}u
#define ${guard}_TOLERANCE $tolerance

/* What the policy reads. */
typedef struct {
$signals
} ${name}_signals;

/* What it commands. */
typedef struct {
$commands
} ${name}_commands;

/* What it remembers: one per robot. */
typedef struct {
$state
} ${name}_state;

/* Scratch memory of one call. Several policies may share it if their calls don't overlap. */
typedef struct {
$arena
} ${name}_arena;

/* Whether there are commands. */
typedef enum {
    ${guard}_OK = 0,
    ${guard}_NOT_FINITE = 1 /* what was computed, or measured, is no number: nothing was changed */
} ${name}_status;

/* Where the elements of signals and commands are. */
enum {
$elements
};

/* Limits of the commands. */
extern const ${name}_commands ${name}_lower;
extern const ${name}_commands ${name}_upper;

/* Ranges of valid signals. */
extern const ${name}_signals ${name}_signals_lower;
extern const ${name}_signals ${name}_signals_upper;

/* The SHA-256 of the contract, in hexadecimal. */
extern const char ${name}_contract_digest[65];

/* Forget the past: before the first step and before every take-over of the robot. */
void ${name}_reset(${name}_state *state);

/* One control step. Commands are within their limits. Anything but ${guard}_OK changes neither commands nor state: send
 * the safe commands then. Uses no memory but what it is given, and may be called from several tasks at once. */
${name}_status ${name}_step(const ${name}_signals *signals, ${name}_state *state, ${name}_commands *commands,
                            ${name}_arena *arena);

/* The safe command: numbers, or, for actuators that hold their position, the measured values. */
${name}_status ${name}_safe_commands(const ${name}_signals *signals, ${name}_commands *commands);

/* The signals of a recorded episode. */
extern const ${name}_signals ${name}_recorded_signals[${guard}_GOLDEN_STEPS];

/* Replay recorded steps; the greatest deviation of a command, in units of its range. Do not arm the motors unless it is
 * at most ${guard}_TOLERANCE. Not finite if any command is not. */
float ${name}_self_test(${name}_state *state, ${name}_arena *arena);

#ifdef __cplusplus
}
#endif

#endif
