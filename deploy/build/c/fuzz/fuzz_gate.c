/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target for the gate: any inputs, healthy ones among them, so that every state is reached.
 *
 * gate_config.h is that of any contract (robo_rl.deploy.build.c.gate_header).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate_config.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static uint8_t draw_byte(source *from) {
    uint8_t byte = 0;
    draw(from, &byte, 1);
    return byte;
}

/* One step's input, kept in blocks of the exact size for the address sanitizer. */
typedef struct {
    float *signals;
    float *command;
    float *fallback;
    int64_t *stamps;
    gate_input given;
} moment;

static void *room(size_t size) {
    void *block = malloc(size);
    check(block != NULL);
    return block;
}

/* Everything is well: signals within their ranges, upright, changing; the start pose is commanded. */
static void be_healthy(moment *m, int64_t time, uint8_t wobble) {
    for (size_t i = 0; i < GATE_SIGNAL_COUNT; i++) {
        const gate_watch *watch = &GATE_SIGNALS[i];
        m->stamps[i] = time;
        for (size_t k = 0; k < watch->size; k++) {
            size_t flat = (size_t)watch->offset + k;
            float low = fmaxf(GATE_SIGNAL_LOWER[flat], -1.0f);
            float high = fminf(GATE_SIGNAL_UPPER[flat], 1.0f);
            m->signals[flat] = low + (high - low) * (float)wobble / 255.0f;
            if (watch->quaternion) {
                m->signals[flat] = k == 3 ? 1.0f : (float)wobble / 4096.0f;
            }
        }
    }
    for (size_t i = 0; i < GATE_COMMAND_SIZE; i++) {
        m->command[i] = GATE_START[i] == GATE_START[i] ? GATE_START[i] : GATE_SAFE[i];
        m->fallback[i] = m->command[i];
    }
    m->given.time = time;
    m->given.command = m->command;
    m->given.command_stamp = time;
    m->given.fallback = m->fallback;
    m->given.operator_stamp = time;
    m->given.bundle_intact = true;
}

/* What is wrong in this step: up to four things. */
static void disturb(moment *m, source *from, uint8_t count) {
    for (uint8_t i = 0; i < count; i++) {
        uint8_t kind = draw_byte(from);
        uint8_t index = draw_byte(from);
        int64_t stamp = 0;
        switch (kind % 9) {
        case 0:
            draw(from, &m->signals[index % GATE_SIGNAL_SIZE], sizeof(float));
            break;
        case 1:
            draw(from, &m->command[index % GATE_COMMAND_SIZE], sizeof(float));
            break;
        case 2:
            draw(from, &m->fallback[index % GATE_COMMAND_SIZE], sizeof(float));
            break;
        case 3:
            draw(from, &stamp, sizeof stamp);
            m->stamps[index % GATE_SIGNAL_COUNT] = stamp;
            break;
        case 4:
            /* unsigned, because stamps may stand at their end */
            stamp = (int64_t)((uint64_t)m->stamps[index % GATE_SIGNAL_COUNT] - draw_byte(from) * UINT64_C(1000));
            m->stamps[index % GATE_SIGNAL_COUNT] = stamp;
            break;
        case 5:
            draw(from, &stamp, sizeof stamp);
            m->given.command_stamp = stamp;
            break;
        case 6:
            draw(from, &stamp, sizeof stamp);
            m->given.operator_stamp = stamp;
            break;
        case 7:
            m->given.command = (index & 1u) != 0 ? NULL : m->given.command;
            m->given.fallback = (index & 2u) != 0 ? NULL : m->given.fallback;
            break;
        default:
            m->given.bundle_intact = (index & 1u) != 0;
            break;
        }
    }
}

/* What there was before a step. */
typedef struct {
    uint8_t state;
    uint8_t reaction;
    float sent[GATE_COMMAND_SIZE];
    float reference[GATE_COMMAND_SIZE];
} past;

/* The gate's own moves stay near what is measured; where that is not known they stay where they are. */
static void check_reach(const gate_memory *after, const past *before, size_t i) {
    float where = after->at.values[GATE_FEEDBACK[i]];
    float reference = after->at.reference[i];
    bool inside = where >= GATE_COMMAND_LOWER[i] && where <= GATE_COMMAND_UPPER[i];
    bool beyond = reference < where - GATE_REACH[i] || reference > where + GATE_REACH[i];
    check(!(inside && beyond) || reference == before->reference[i] || reference == before->sent[i]);
}

/* What the document promises of every step. */
static void check_answer(const gate_output *out, const gate_memory *after, const past *before, uint8_t requests) {
    bool stopped = out->source == GATE_CONFIG.stopped || out->source == GATE_SOURCE_SILENT;
    const float *sent = before->sent;
    for (size_t i = 0; i < GATE_COMMAND_SIZE; i++) {
        float most = GATE_RATE_STEP[i];
        bool off = GATE_STOP[i] == GATE_STOP_OFF;
        check(out->command[i] >= GATE_COMMAND_LOWER[i] && out->command[i] <= GATE_COMMAND_UPPER[i]);
        check(!(stopped && off) || out->command[i] == GATE_SAFE[i]);
        check(out->source != GATE_SOURCE_HOLD || out->command[i] == sent[i]);
        /* what is switched off or idles is so at once, and nothing was sent before the first arming */
        bool at_once = (stopped && off) || (out->source == GATE_SOURCE_START && GATE_FEEDBACK[i] < 0);
        bool limited = !at_once && before->reaction != GATE_SOURCE_SILENT;
        check(!limited || (out->command[i] >= sent[i] - most && out->command[i] <= sent[i] + most));
        if (limited && (out->source == GATE_SOURCE_STOP || out->source == GATE_SOURCE_START)) {
            check_reach(after, before, i);
        }
    }
    check(out->state != GATE_IDLE || stopped);
    check(out->state != GATE_READY || out->source == GATE_SOURCE_START);
    check(out->state != GATE_ACTIVE || out->source == GATE_SOURCE_POLICY);
    check(out->state != GATE_FAULT || out->problem.reason != GATE_REASON_NONE);
    check(before->state != GATE_FAULT || out->state == GATE_FAULT || (requests & GATE_REQUEST_RESET) != 0);
    check(before->state == GATE_FAULT || out->state != GATE_FAULT || (out->events & GATE_EVENT_FAULTED) != 0);
    check((requests & (GATE_REQUEST_STOP | GATE_REQUEST_HALT)) == 0 || (out->state == GATE_FAULT && stopped));
    check(out->source != GATE_SOURCE_SILENT || before->reaction == GATE_SOURCE_SILENT);
    check(out->problem.channel < (GATE_SIGNAL_COUNT > GATE_COMMAND_COUNT ? GATE_SIGNAL_COUNT : GATE_COMMAND_COUNT));
}

static void fly(source *from, gate_memory *memory, moment *m) {
    static const uint8_t story[] = {0, GATE_REQUEST_ARM, 0, GATE_REQUEST_ACTIVATE};
    past before;
    int64_t time = 0;
    size_t prelude = draw_byte(from) % (sizeof story + 1);
    for (size_t k = 0; k < prelude || from->left > 0; k++) {
        uint8_t choice = k < prelude ? 0 : draw_byte(from);
        if ((choice & 0x80u) != 0) {
            draw(from, &time, sizeof time);
        } else {
            /* unsigned, because time may stand at its end */
            time = (int64_t)((uint64_t)time + (uint64_t)((choice & 0x40u) != 0 ? draw_byte(from) * 1000 : GATE_CONFIG.period));
        }
        be_healthy(m, time, (uint8_t)(k * 37u));
        m->given.requests = k < prelude ? story[k] : ((choice & 0x20u) != 0 ? draw_byte(from) : 0);
        disturb(m, from, (uint8_t)((choice & 0x18u) == 0x18u ? choice & 3u : 0));
        before.state = memory->state;
        before.reaction = memory->reaction;
        memcpy(before.sent, memory->at.command, sizeof before.sent);
        memcpy(before.reference, memory->at.reference, sizeof before.reference);
        gate_output out = gate_step(&GATE_CONFIG, memory, &m->given);
        check_answer(&out, memory, &before, m->given.requests);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    source from = {data, length};
    gate_arrays arrays = {room(sizeof(float) * GATE_COMMAND_SIZE), room(sizeof(float) * GATE_COMMAND_SIZE),
                          room(sizeof(float) * GATE_SIGNAL_SIZE),
                          room(sizeof(int64_t) * GATE_SIGNAL_COUNT), room(sizeof(int64_t) * GATE_SIGNAL_COUNT)};
    moment m = {.signals = room(sizeof(float) * GATE_SIGNAL_SIZE),
                .command = room(sizeof(float) * GATE_COMMAND_SIZE),
                .fallback = room(sizeof(float) * GATE_COMMAND_SIZE),
                .stamps = room(sizeof(int64_t) * GATE_SIGNAL_COUNT)};
    gate_memory memory;
    m.given.signals = m.signals;
    m.given.stamps = m.stamps;
    gate_start(&GATE_CONFIG, &memory, &arrays);
    fly(&from, &memory, &m);
    void *blocks[] = {arrays.command, arrays.reference, arrays.values, arrays.stamps, arrays.changed,
                      m.signals,      m.command,        m.fallback,    m.stamps};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        free(blocks[i]);
    }
    return 0;
}
