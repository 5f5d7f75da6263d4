/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiled bundle offers to a program on a robot: policy, gate, held signals, and the contract as data.
 *
 * A library of "robo-rl export FILE --native" has one of these under the name ROBOT_SYMBOL. Arrays of signals and
 * commands are flat, in the contract's order and SI units; quaternions are x, y, z, w; times are microseconds.
 */
#ifndef ROBO_RL_ROBOT_H
#define ROBO_RL_ROBOT_H

#include "gate.h"
#include "held.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ROBOT_INTERFACE 3u
#define ROBOT_SYMBOL "robo_rl_robot"
#define ROBOT_NEEDS_SYMBOL "robo_rl_native_needs" /* a text: the processor's instructions that the code uses */

/* The beams of a lidar: beam i looks at angle_min + i * angle_increment, about the axis that points up. */
typedef struct {
    double angle_min; /* rad */
    double angle_increment;
    double range_min; /* m */
    double range_max;
} robot_scan;

/* A signal or a command. Its floats are offset to offset + size - 1 of the flat array. */
typedef struct {
    const char *name;
    const char *const *elements; /* size names; NULL: they have none */
    const char *unit;
    const char *frame;
    const char *source;     /* sensor, operator or runtime; "" for a command */
    const robot_scan *scan; /* NULL: it is not a scan */
    const uint16_t *shape;  /* rank numbers; NULL: it is a row */
    int64_t period;         /* microseconds between two measurements; 0: one per step */
    uint16_t offset;
    uint16_t size;
    uint8_t rank;
    bool computed; /* a signal without a sensor: the age of another one */
    bool waits;    /* a signal that need not be new at every step */
} robot_channel;

/* A signal that tells the robot's own orientation, and the range of its elements in training. */
typedef struct {
    uint16_t signal;
    bool seen; /* whether that range is known */
    double seen_low[4];
    double seen_high[4];
} robot_attitude;

typedef struct {
    uint32_t interface; /* ROBOT_INTERFACE, whatever comes after it */
    uint32_t bytes;     /* of this structure */
    const char *bundle_digest;   /* SHA-256 in hexadecimal */
    const char *contract_digest;
    const char *contract;        /* JSON */
    const char *task;
    const char *robot;
    const gate_config *gate;
    const held_config *held;
    const robot_channel *signals;  /* gate->signal_count */
    const robot_channel *commands; /* gate->command_count */
    const robot_attitude *attitudes;
    uint32_t attitude_count;
    uint32_t signal_size; /* floats of all signals */
    uint32_t state_bytes;
    uint32_t arena_bytes;
    double control_period; /* s */
    double fastest;        /* rad/s that the robot's own sensors can report */
    double radius;         /* m, of a robot on wheels; 0: not known */
    float tolerance;       /* of self_test */

    /* Deviation of the commands in recorded steps, in units of their range; not finite if a command is not. */
    float (*self_test)(void *state, void *arena);
    void (*reset)(void *state);
    /* Commands of one step; anything but 0 changes neither commands nor state. */
    uint32_t (*step)(const float *signals, void *state, float *commands, void *arena);
    void (*gate_start)(const gate_config *config, gate_memory *memory, const gate_arrays *arrays);
    gate_output (*gate_step)(const gate_config *config, gate_memory *memory, const gate_input *given);
    int16_t (*held_late)(const held_config *config, const int64_t *stamps, int64_t now);
    void (*held_complete)(const held_config *config, float *values, int64_t *stamps, int64_t now);
} robot_bundle;

#ifdef __cplusplus
}
#endif

#endif
