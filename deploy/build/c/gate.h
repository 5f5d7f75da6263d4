/* SPDX-License-Identifier: Apache-2.0 */
/* The gate between a policy and the actuators: idle, ready, active, latched fault.
 *
 * The same behaviour as controllers/gate/safety.py, bit for bit; both reproduce tests/vectors/gate. docs/safety.md
 * describes the states and has the codes in tables.
 *
 *   #include "gate_config.h"                       generated from a contract
 *   static gate_memory memory;
 *   gate_start(&GATE_CONFIG, &memory, &GATE_ARRAYS);
 *   gate_output out = gate_step(&GATE_CONFIG, &memory, &input);   every control period
 *
 * With the source GATE_SOURCE_SILENT nothing may be sent: the actuators stay disabled until the first arming.
 *
 * C99, no heap, no library calls. Times are microseconds of one monotonic clock; a negative stamp means that
 * there is nothing. Compile without -ffast-math, and with denormal numbers on (FPSCR.FZ = 0 on Arm).
 */
#ifndef ROBO_RL_GATE_H
#define ROBO_RL_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GATE_NEVER ((int64_t)-1)

enum gate_state { GATE_IDLE = 0, GATE_READY = 1, GATE_ACTIVE = 2, GATE_FAULT = 3 };

enum gate_source {
    GATE_SOURCE_SAFE = 0,
    GATE_SOURCE_START = 1,
    GATE_SOURCE_POLICY = 2,
    GATE_SOURCE_HOLD = 3,
    GATE_SOURCE_DAMP = 4,
    GATE_SOURCE_FALLBACK = 5,
    GATE_SOURCE_SILENT = 6,
    GATE_SOURCE_STOP = 7
};

/* What an actuator does in a stop. */
enum gate_stop { GATE_STOP_OFF = 0, GATE_STOP_RAMP = 1, GATE_STOP_HOLD = 2, GATE_STOP_DAMP = 3 };

enum gate_reason {
    GATE_REASON_NONE = 0,
    GATE_REASON_OPERATOR_STOP = 1,
    GATE_REASON_BUNDLE = 2,
    GATE_REASON_CLOCK = 3,
    GATE_REASON_OVERRUN = 4,
    GATE_REASON_TOO_FAST = 5,
    GATE_REASON_OPERATOR_LOST = 6,
    GATE_REASON_SIGNAL_MISSING = 7,
    GATE_REASON_SIGNAL_STALE = 8,
    GATE_REASON_SIGNAL_NOT_FINITE = 9,
    GATE_REASON_SIGNAL_RANGE = 10,
    GATE_REASON_SIGNAL_NORM = 11,
    GATE_REASON_TILT = 12,
    GATE_REASON_SIGNAL_FROZEN = 13,
    GATE_REASON_COMMAND_MISSING = 14,
    GATE_REASON_COMMAND_STALE = 15,
    GATE_REASON_COMMAND_NOT_FINITE = 16,
    GATE_REASON_COMMAND_RANGE = 17,
    GATE_REASON_COMMAND_RATE = 18,
    GATE_REASON_NOT_READY = 19,
    GATE_REASON_ENVELOPE = 20,
    GATE_REASON_HALTED = 21,
    GATE_REASON_COLLISION = 22
};

/* Of several requests in one step, the first in the order stop, halt, disarm, reset, arm, activate counts. */
enum gate_request {
    GATE_REQUEST_NONE = 0,
    GATE_REQUEST_ARM = 1,
    GATE_REQUEST_ACTIVATE = 2,
    GATE_REQUEST_DISARM = 4,
    GATE_REQUEST_STOP = 8,
    GATE_REQUEST_RESET = 16,
    GATE_REQUEST_HALT = 32 /* a stop that no person asked for, but the program around the gate */
};

enum gate_event {
    GATE_EVENT_NONE = 0,
    GATE_EVENT_ARMED = 1,
    GATE_EVENT_ACTIVATED = 2,
    GATE_EVENT_DISARMED = 4,
    GATE_EVENT_FAULTED = 8,
    GATE_EVENT_WAS_RESET = 16,
    GATE_EVENT_REFUSED = 32,
    GATE_EVENT_RATE_LIMITED = 64,
    GATE_EVENT_FALLBACK_LOST = 128
};

/* How one signal is watched. timeout: its greatest age; 0: not watched. */
typedef struct {
    int64_t timeout;
    uint16_t offset;
    uint16_t size;
    bool optional;   /* it may be absent */
    bool sensor;     /* false: the operator's set-point, without which the fallback controller can act */
    bool quaternion; /* x, y, z, w of norm 1 */
    bool upright;    /* its tilt is watched */
    bool noisy;      /* a value that repeats bit for bit under new stamps is a frozen sensor */
} gate_watch;

/* Where the robot may be, as one signal tells. */
typedef struct {
    uint16_t signal;
    float square; /* the limit of the sum of its elements' squares */
    const float *lower;
    const float *upper;
} gate_bounds;

/* What a scan tells of the way ahead: the least time to a collision. */
typedef struct {
    uint16_t scan; /* signals, by their numbers */
    uint16_t speed;
    int16_t yaw_rate; /* -1: the way is straight */
    float time;       /* s */
    float half_width; /* m */
    float front;      /* m */
    const float *cosine; /* of the beams' angles */
    const float *sine;
} gate_ahead;

/* Everything that the gate compares with, made from a contract by robo_rl.deploy.build.c.gate_header. */
typedef struct {
    int64_t period;
    int64_t slack;
    int64_t late_limit;
    int64_t timeout;
    int64_t operator_timeout; /* 0: no operator is needed */
    float norm_low;           /* limits of a quaternion's squared norm */
    float norm_high;
    float tilt; /* the limit of sin^2(tilt / 2) */
    uint16_t signal_count;
    uint16_t command_count;
    uint16_t command_size;
    uint16_t bounds_count;
    uint8_t reaction; /* enum gate_source: how faults are answered */
    uint8_t stopped;  /* enum gate_source: what a stop is, GATE_SOURCE_SAFE where all actuators are off then */
    const gate_watch *signals;
    const gate_bounds *bounds;
    const gate_ahead *ahead; /* NULL: not watched */
    const uint16_t *command_offset; /* of each command in the flat array */
    const float *signal_lower;
    const float *signal_upper;
    const float *command_lower;
    const float *command_upper;
    const uint8_t *stop;     /* enum gate_stop */
    const float *safe;       /* what OFF and RAMP lead to */
    const float *start;      /* NaN: it stays where it is */
    const float *rate_step;  /* the greatest change per step */
    const float *slow_step;  /* the change per step in the moves to start and, in a ramp, to safe */
    const float *reach;      /* how far from the measured value a target may be in these moves */
    const int16_t *feedback; /* flat index of the signal element that measures a command; -1: none is needed */
    const int16_t *feedback_signal;
} gate_config;

/* A reason, and the signal or command and its element that gave it; -1: none in particular. */
typedef struct {
    uint8_t reason;
    int16_t channel;
    int16_t element;
} gate_problem;

/* The caller's arrays, sized by the contract. */
typedef struct {
    float *command;   /* one per command element */
    float *reference; /* one per command element */
    float *values;    /* one per signal element */
    int64_t *stamps;  /* one per signal */
    int64_t *changed; /* one per signal */
} gate_arrays;

/* What the gate remembers between steps. */
typedef struct {
    gate_arrays at; /* the command last sent; the reference of the gate's own moves, which it follows at the rate
                       limit; the newest values, their stamps, and when they were new */
    int64_t time;
    int64_t late; /* microseconds behind the schedule; negative: ahead */
    int64_t limited_since;
    gate_problem problem;
    uint8_t state;
    uint8_t reaction; /* enum gate_source: what is sent in idle and in fault */
} gate_memory;

/* What one step is given. */
typedef struct {
    int64_t time;
    const float *signals;
    const int64_t *stamps;
    const float *command;  /* what the policy proposes; a null pointer: nothing */
    int64_t command_stamp;
    const float *fallback; /* what the classical controller proposes; a null pointer: nothing */
    int64_t operator_stamp;
    bool bundle_intact;
    uint8_t requests; /* enum gate_request */
} gate_input;

/* What one step answers. problem is the latched fault, or why a request was refused. */
typedef struct {
    const float *command; /* the memory's; valid until the next step; not to be sent if the source is silent */
    gate_problem problem;
    uint8_t state;
    uint8_t source;
    uint8_t events; /* enum gate_event */
} gate_output;

/* The gate at power-up: idle. */
void gate_start(const gate_config *config, gate_memory *memory, const gate_arrays *arrays);

/* One control period. */
gate_output gate_step(const gate_config *config, gate_memory *memory, const gate_input *given);

#ifdef __cplusplus
}
#endif

#endif
