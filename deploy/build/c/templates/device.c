/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"$learn_header

#include <string.h>

#define HELLO_STEPS 100u      /* between two hellos as long as there was no reply */
#define STATISTICS_STEPS 100u /* between two messages of statistics */
#define FAULT_STEPS 10u       /* between two messages that a fault is latched */
#define DIGESTS_DIFFER 1u

/* What the main loop is at. */
#define STAGE_REST 0u
#define STAGE_POLICY 1u
#define STAGE_GATE 2u

/* The interrupt runs on the same processor, so all that is needed is that the compiler keeps the order of accesses. In
 * C99 it must, around a call that it can't see through: a device is the caller's, and whatever is called may look at it. */
#if defined(__GNUC__)
#define KEEP_ORDER() __asm__ volatile("" ::: "memory")
#else
static void nothing(void) {}
static void (*volatile const unseen)(void) = nothing;
#define KEEP_ORDER() unseen()
#endif

/* Signals and commands are floats without gaps, in the order of the contract. */
typedef char signals_agree[sizeof(${name}_signals) == sizeof(float) * GATE_SIGNAL_SIZE ? 1 : -1];
typedef char commands_agree[sizeof(${name}_commands) == sizeof(float) * GATE_COMMAND_SIZE ? 1 : -1];

/* --- what is sent ----------------------------------------------------------------------------------------- */

static void post(device *d, enum link_type type, const uint8_t *payload, size_t length) {
    d->out_size += link_encode((uint8_t)type, d->sequence, payload, length, d->out + d->out_size,
                               sizeof d->out - d->out_size);
    d->sequence++; /* a frame that found no room is a lost one */
}

static void post_hello(device *d, int64_t now, bool answer) {
    uint8_t payload[DEVICE_HELLO_SIZE];
    link_hello hello = {.role = LINK_DEVICE,
                        .answer = answer,
                        .signal_size = LINK_TOGETHER_SIZE,
                        .command_size = GATE_COMMAND_SIZE,
                        .control_period = (uint32_t)GATE_CONFIG.period,
                        .time = now};
    (void)memcpy(hello.digest, GATE_CONTRACT_DIGEST, LINK_DIGEST_SIZE);
    if (d->out_size < sizeof d->out) {
        d->out[d->out_size] = 0; /* ends whatever noise came before */
        d->out_size++;
    }
    post(d, LINK_HELLO, payload, link_pack_hello(&hello, payload));
}

static void post_refusal(device *d) {
    uint8_t payload[1 + LINK_DIGEST_SIZE];
    post(d, LINK_REFUSAL, payload, link_pack_refusal(DIGESTS_DIFFER, GATE_CONTRACT_DIGEST, payload));
}

static void post_commands(device *d, const gate_output *out, int64_t now) {
    uint8_t payload[DEVICE_COMMANDS_SIZE];
    float values[GATE_COMMAND_SIZE];
    (void)memcpy(values, out->command, sizeof values);
    const link_commands commands = {.time = now,
                                    .answers = d->answers,
                                    .state = out->state,
                                    .source = out->source,
                                    .values = values};
    post(d, LINK_COMMANDS, payload, link_pack_commands(&d->session, &commands, payload));
}

static void post_fault(device *d, const gate_output *out, int64_t now) {
    uint8_t payload[DEVICE_FAULT_SIZE];
    const link_fault fault = {.time = now,
                              .state = out->state,
                              .source = out->source,
                              .reason = out->problem.reason,
                              .events = out->events,
                              .channel = out->problem.channel,
                              .element = out->problem.element};
    post(d, LINK_FAULT, payload, link_pack_fault(&fault, payload));
}

static void post_statistics(device *d, int64_t now) {
    uint8_t payload[DEVICE_STATISTICS_SIZE];
    const link_statistics statistics = {.time = now,
                                        .steps = d->steps,
                                        .late_steps = d->late_steps,
                                        .step_time = d->step_time,
                                        .decoder = d->decoder.counts,
                                        .session = d->session.counts};
    post(d, LINK_STATISTICS, payload, link_pack_statistics(&statistics, payload));
}
$learn_functions
/* --- a step ----------------------------------------------------------------------------------------------- */

/* What the policy proposes; a null pointer if it refuses, and while a signal is missing or late. Until it is active,
 * every step is its first. */
static const float *propose(device *d, int64_t now, float *proposed) {
    ${name}_signals signals;
    if (held_late(&HELD_CONFIG, d->stamps, now) >= 0) {
        return NULL;
    }
    held_complete(&HELD_CONFIG, d->values, d->stamps, now);
    if (d->gate.state != (uint8_t)GATE_ACTIVE) {
        ${name}_reset(&d->state);
    }
    (void)memcpy(&signals, d->values, sizeof signals);
    if (${name}_step(&signals, &d->state, &d->proposed, d->arena) != ${guard}_OK) {
        return NULL;
    }
    (void)memcpy(proposed, &d->proposed, sizeof d->proposed);
    return proposed;
}

static bool wire_is_dead(const device *d, int64_t now) {
    return link_expired(d->session.last, now, GATE_CONFIG.timeout);
}

/* A step of the gate, on what the policy proposes or nothing. A silent wire stops the robot, whatever else is well. */
static void act(device *d, int64_t now, const float *proposed) {
    const bool armed = d->gate.state != (uint8_t)GATE_IDLE;
    held_complete(&HELD_CONFIG, d->values, d->stamps, now);
    const uint8_t halt = armed && wire_is_dead(d, now) ? (uint8_t)GATE_REQUEST_HALT : (uint8_t)GATE_REQUEST_NONE;
    const gate_input given = {.time = now,
                              .signals = d->values,
                              .stamps = d->stamps,
                              .command = proposed,
                              .command_stamp = now,
                              .fallback = NULL,
                              .operator_stamp = d->operator_stamp,
                              .bundle_intact = d->intact,
                              .requests = (uint8_t)(d->requests | halt)};
    const gate_output out = gate_step(&GATE_CONFIG, &d->gate, &given);
    d->requests = GATE_REQUEST_NONE;
    d->enabled = out.source != (uint8_t)GATE_SOURCE_SILENT;
#if GATE_RELEASES
    if (out.source == (uint8_t)GATE_SOURCE_SAFE || out.source == (uint8_t)GATE_SOURCE_STOP ||
        out.source == (uint8_t)GATE_SOURCE_START) {
        d->enabled = false; /* the safe voltage would short the windings */
    }
#endif$learn_allow
    d->steps++;
    post_commands(d, &out, now);
    if (out.events != 0u || (out.state == (uint8_t)GATE_FAULT && d->steps % FAULT_STEPS == 0u)) {
        post_fault(d, &out, now);
    }
    if (d->steps % STATISTICS_STEPS == 0u) {
        post_statistics(d, now);$learn_post
    }
    if (d->steps % HELLO_STEPS == 0u && d->session.state == (uint8_t)LINK_CLOSED) {
        post_hello(d, now, true);
    }
}

/* The policy's turn, then the gate's; if the interrupt took that meanwhile, what the policy proposed is too late. */
static void step(device *d, int64_t now) {
    float proposed[GATE_COMMAND_SIZE];
    d->interrupted = false;
    d->begun = now;
    KEEP_ORDER();
    d->stage = STAGE_POLICY;
    const float *command = propose(d, now, proposed);
    d->stage = STAGE_GATE; /* from here on the interrupt keeps away */
    KEEP_ORDER();
    if (!d->interrupted) {
        act(d, now, command);
    }
    KEEP_ORDER();
    d->stage = STAGE_REST;
}

/* Whether the gate still drives the actuators as if all were well. */
static bool drives(const device *d) {
    return d->gate.state == (uint8_t)GATE_READY || d->gate.state == (uint8_t)GATE_ACTIVE ||
           d->gate.reaction == (uint8_t)GATE_SOURCE_HOLD;
}

/* --- what comes in ---------------------------------------------------------------------------------------- */

static void greet(device *d, const link_frame *frame, int64_t now) {
    link_hello hello;
    link_unpack_hello(frame, &hello);
    link_clock_start(&d->clock);
    (void)link_clock_update(&d->clock, hello.time, now);
    if (hello.answer) {
        post_hello(d, now, false);
    }
}

/* Whether a signal comes at every step, with the others. */
static bool comes_along(size_t i) { return LINK_SAMPLE_SIZES[i] == 0u && HELD_SIGNALS[i].age_of < 0; }

/* A measurement is held until the next one; one of which it is not known when it was made is none. */
static void hear_sample(device *d, const link_frame *frame, int64_t now) {
    link_sample sample = {.values = NULL};
    link_unpack_sample(frame, &sample);
    const int64_t stamp = link_stamp(link_clock_update(&d->clock, sample.time, now), sample.age);
    if (stamp >= 0) {
        sample.values = &d->values[HELD_SIGNALS[sample.index].offset];
        link_unpack_sample(frame, &sample);
        d->stamps[sample.index] = stamp;
    }
}

static void hear_signals(device *d, const link_frame *frame, int64_t now) {
    uint32_t ages[GATE_SIGNAL_COUNT];
    link_signals signals = {.ages = ages, .values = NULL};
    link_unpack_signals(&d->session, frame, &signals);
    const int64_t sent = link_clock_update(&d->clock, signals.time, now);
    size_t heard = 0;
    size_t first = 0;
    for (size_t i = 0; i < GATE_SIGNAL_COUNT; i++) {
        const held_signal *signal = &HELD_SIGNALS[i];
        if (comes_along(i)) {
            link_unpack_values(&d->session, frame, first, signal->size, &d->values[signal->offset]);
            d->stamps[i] = link_stamp(sent, ages[heard]);
            heard++;
            first += signal->size;
        }
    }
    d->operator_stamp = link_stamp(sent, signals.operator_age);
    d->answers = frame->sequence;
    if (now >= d->due - GATE_CONFIG.period / 2) {
        step(d, now);
        d->due = now + GATE_CONFIG.period;
    }
}

void device_take(device *d, uint8_t byte, int64_t now) {
    link_frame frame;
    if (!link_decode(&d->decoder, byte, &frame)) {
        return;
    }
    d->stage = STAGE_GATE; /* what comes in and goes out is not the interrupt's meanwhile */
    KEEP_ORDER();
    switch (link_accept(&d->session, &frame, now)) {
    case LINK_OPENED:
        greet(d, &frame, now);
        break;
    case LINK_TAKEN:
        if (frame.type == (uint8_t)LINK_SIGNALS) {
            hear_signals(d, &frame, now);
        } else if (frame.type == (uint8_t)LINK_SAMPLE) {
            hear_sample(d, &frame, now);
        } else if (frame.type == (uint8_t)LINK_REQUEST) {
            d->requests |= link_unpack_request(&frame);$learn_pull
        } else {
            /* what only devices say */
        }
        break;
    case LINK_MISMATCH:
        if (frame.type == (uint8_t)LINK_HELLO) {
            post_refusal(d);
        }
        break;
    default:
        break;
    }
    KEEP_ORDER();
    d->stage = STAGE_REST;
}

size_t device_output(device *d, uint8_t *to) {
    const uint8_t stage = d->stage;
    if (stage == STAGE_GATE) {
        return 0; /* the main loop is at it */
    }
    d->stage = STAGE_GATE;
    KEEP_ORDER();
    const size_t size = d->out_size;
    (void)memcpy(to, d->out, size);
    d->out_size = 0;
    KEEP_ORDER();
    d->stage = stage;
    return size;
}

void device_wake(device *d, int64_t now) {
    if (drives(d) && wire_is_dead(d, now)) {
        d->stage = STAGE_GATE;
        KEEP_ORDER();
        act(d, now, NULL);
        KEEP_ORDER();
        d->stage = STAGE_REST;
        d->due = now + GATE_CONFIG.period;
    }
    if (now >= d->due + GATE_CONFIG.period / 2) {
        step(d, now);
        d->late_steps++;
        d->due += GATE_CONFIG.period;
        if (now >= d->due + GATE_CONFIG.period / 2) {
            d->due = now; /* steps that were missed stay missed */
        }
    }
}

void device_tick(device *d, int64_t now) {
    if (d->stage == STAGE_GATE || !d->enabled) {
        return;
    }
    const int64_t idle = d->stage == STAGE_POLICY ? d->begun : d->gate.time + GATE_CONFIG.period;
    if (now - (d->interrupted ? d->gate.time : idle) < GATE_CONFIG.period) {
        return;
    }
    d->interrupted = true;
    d->late_steps++;
    act(d, now, NULL);
}

void device_start(device *d, ${name}_arena *arena, bool intact, int64_t now) {
    (void)memset(d, 0, sizeof *d);
    link_decoder_start(&d->decoder, d->buffer, sizeof d->buffer);
    link_session_start(&d->session, GATE_CONTRACT_DIGEST, LINK_TOGETHER_COUNT, LINK_TOGETHER_SIZE, GATE_COMMAND_SIZE);
    link_session_samples(&d->session, LINK_SAMPLE_SIZES, HELD_CONFIG.count);
    link_clock_start(&d->clock);
    held_start(&HELD_CONFIG, d->values, d->stamps);
    d->operator_stamp = GATE_NEVER;
    d->arena = arena;
    d->intact = intact;
    const gate_arrays arrays = {d->command, d->reference, d->gate_values, d->gate_stamps, d->gate_changed};
    gate_start(&GATE_CONFIG, &d->gate, &arrays);
    ${name}_reset(&d->state);
    d->motors = d->command;
    d->due = now + GATE_CONFIG.period;
    post_hello(d, now, true);
}
