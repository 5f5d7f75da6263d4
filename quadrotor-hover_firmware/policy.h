/* SPDX-License-Identifier: Apache-2.0 */
/* quadrotor-hover for crazyflie
 *
 * Made by robo-rl from a bundle; do not edit. The whole policy: raw signals in SI units in, commands in SI units out.
 * Call policy_step once per control period, 10 ms, no other rate. */
#ifndef POLICY_H
#define POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POLICY_PERIOD_S 0x1.47ae14p-7f
#define POLICY_CONTRACT_DIGEST "c8b019bd00db7b56531091b8a63127fcccb96da7580676e1c3e4cde395961588"
#define POLICY_BUNDLE_DIGEST "7346b476e3cd7b7c2118ac6e7e0644193e4cde7c8ce2c84ae1bc11f9fa09774e"
#define POLICY_GOLDEN_STEPS 64u
#define POLICY_TOLERANCE 0x1.4f8b58p-17f

/* What the policy reads. */
typedef struct {
    float position[3]; /* m, world: x, y, z */
    float orientation[4]; /* 1, unit quaternion, body to world: x, y, z, w */
    float linear_velocity[3]; /* m/s, world: x, y, z */
    float angular_velocity[3]; /* rad/s, body: x, y, z */
    float position_setpoint[3]; /* m, world: x, y, z */
    float linear_velocity_setpoint[3]; /* m/s, world: x, y, z */
} policy_signals;

/* What it commands. */
typedef struct {
    float rotor_speed[4]; /* rad/s, rotor: m1, m2, m3, m4 */
} policy_commands;

/* What it remembers: one per robot. */
typedef struct {
    float command_history[32]; /* 8 x 4 */
    float position_error_integral[3]; /* 3 */
} policy_state;

/* Scratch memory of one call. Several policies may share it if their calls don't overlap. */
typedef struct {
    float floats[128];
} policy_arena;

/* Whether there are commands. */
typedef enum {
    POLICY_OK = 0,
    POLICY_NOT_FINITE = 1 /* what was computed, or measured, is no number: nothing was changed */
} policy_status;

/* Where the elements of signals and commands are. */
enum {
    POLICY_POSITION_X = 0,
    POLICY_POSITION_Y = 1,
    POLICY_POSITION_Z = 2,
    POLICY_ORIENTATION_X = 0,
    POLICY_ORIENTATION_Y = 1,
    POLICY_ORIENTATION_Z = 2,
    POLICY_ORIENTATION_W = 3,
    POLICY_LINEAR_VELOCITY_X = 0,
    POLICY_LINEAR_VELOCITY_Y = 1,
    POLICY_LINEAR_VELOCITY_Z = 2,
    POLICY_ANGULAR_VELOCITY_X = 0,
    POLICY_ANGULAR_VELOCITY_Y = 1,
    POLICY_ANGULAR_VELOCITY_Z = 2,
    POLICY_POSITION_SETPOINT_X = 0,
    POLICY_POSITION_SETPOINT_Y = 1,
    POLICY_POSITION_SETPOINT_Z = 2,
    POLICY_LINEAR_VELOCITY_SETPOINT_X = 0,
    POLICY_LINEAR_VELOCITY_SETPOINT_Y = 1,
    POLICY_LINEAR_VELOCITY_SETPOINT_Z = 2,
    POLICY_ROTOR_SPEED_M1 = 0,
    POLICY_ROTOR_SPEED_M2 = 1,
    POLICY_ROTOR_SPEED_M3 = 2,
    POLICY_ROTOR_SPEED_M4 = 3
};

/* Limits of the commands. */
extern const policy_commands policy_lower;
extern const policy_commands policy_upper;

/* Ranges of valid signals. */
extern const policy_signals policy_signals_lower;
extern const policy_signals policy_signals_upper;

/* The SHA-256 of the contract, in hexadecimal. */
extern const char policy_contract_digest[65];

/* Forget the past: before the first step and before every take-over of the robot. */
void policy_reset(policy_state *state);

/* One control step. Commands are within their limits. Anything but POLICY_OK changes neither commands nor state: send
 * the safe commands then. Uses no memory but what it is given, and may be called from several tasks at once. */
policy_status policy_step(const policy_signals *signals, policy_state *state, policy_commands *commands,
                            policy_arena *arena);

/* The safe command: numbers, or, for actuators that hold their position, the measured values. */
policy_status policy_safe_commands(const policy_signals *signals, policy_commands *commands);

/* The signals of a recorded episode. */
extern const policy_signals policy_recorded_signals[POLICY_GOLDEN_STEPS];

/* Replay recorded steps; the greatest deviation of a command, in units of its range. Do not arm the motors unless it is
 * at most POLICY_TOLERANCE. Not finite if any command is not. */
float policy_self_test(policy_state *state, policy_arena *arena);

#ifdef __cplusplus
}
#endif

#endif
