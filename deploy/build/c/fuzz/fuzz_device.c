/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target for a whole device: frames of a host and any bytes between them, at any time.
 *
 * device.h is that of any bundle (robo_rl.deploy.build.c.device).
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "input.h"

#define LATEST (INT64_C(1) << 60)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* The device, and what its host remembers. */
typedef struct {
    device *robot;
    int64_t now;
    uint16_t sequence;
    uint32_t moment; /* of the recorded signals */
    link_decoder ears;
    uint8_t heard[LINK_BUFFER_SIZE(DEVICE_LONGEST)];
} world;

/* What holds at all times: the actuators get commands within their limits, and what is said is well formed. */
static void check_promises(world *w) {
    device *d = w->robot;
    link_frame frame;
    for (size_t i = 0; i < GATE_COMMAND_SIZE; i++) {
        check(d->motors[i] >= GATE_COMMAND_LOWER[i] && d->motors[i] <= GATE_COMMAND_UPPER[i]);
    }
    check(d->intact || d->gate.state == GATE_IDLE || d->gate.state == GATE_FAULT);
    check(d->out_size <= sizeof d->out);
    for (size_t i = 0; i < d->out_size; i++) {
        (void)link_decode(&w->ears, d->out[i], &frame);
    }
    check(w->ears.used == 0 && w->ears.counts.crc + w->ears.counts.framing + w->ears.counts.oversize == 0);
    d->out_size = 0;
}

static void wake(world *w) {
    device_wake(w->robot, w->now);
    const int64_t last = w->robot->session.last;
    bool silent = last < 0 || w->now - last > GATE_CONFIG.timeout;
    const gate_memory *gate = &w->robot->gate;
    const bool resting = gate->state == GATE_IDLE || gate->state == GATE_FAULT;
    check(!silent || (resting && (gate->reaction == GATE_CONFIG.stopped || gate->reaction == GATE_SOURCE_SILENT)));
    check(!silent || GATE_CONFIG.stopped != GATE_SOURCE_SAFE || memcmp(w->robot->motors, GATE_SAFE, sizeof GATE_SAFE) == 0);
    check(w->robot->enabled == (gate->reaction != GATE_SOURCE_SILENT));
    check_promises(w);
}

static void send(world *w, enum link_type type, const uint8_t *payload, size_t size) {
    uint8_t wire[LINK_BUFFER_SIZE(DEVICE_LONGEST) + 1];
    size_t count = link_encode((uint8_t)type, w->sequence, payload, size, wire, sizeof wire);
    check(count > 0);
    w->sequence++;
    for (size_t i = 0; i < count; i++) {
        device_take(w->robot, wire[i], w->now);
        check_promises(w);
    }
}

static void send_hello(world *w, uint8_t choice) {
    uint8_t payload[DEVICE_HELLO_SIZE];
    link_hello hello = {.role = LINK_HOST, .answer = (choice & 1u) != 0, .time = w->now};
    memcpy(hello.digest, GATE_CONTRACT_DIGEST, LINK_DIGEST_SIZE);
    hello.digest[0] ^= (choice & 0xf0u) == 0xf0u ? 1u : 0u;
    send(w, LINK_HELLO, payload, link_pack_hello(&hello, payload));
}

/* A measurement of every signal that comes alone, if it has one; with some other age and time. */
static void send_samples(world *w, source *from, uint8_t choice, float *values) {
    uint8_t payload[DEVICE_SAMPLE_SIZE];
    for (uint16_t i = 0; i < GATE_SIGNAL_COUNT; i++) {
        link_sample sample = {w->now, 0, i, &values[HELD_SIGNALS[i].offset]};
        if ((choice & 0x0cu) == 0x0cu) {
            draw(from, &sample.age, sizeof sample.age);
        }
        if ((choice & 0x03u) == 0x03u) {
            draw(from, &sample.time, sizeof sample.time);
        }
        if (LINK_SAMPLE_SIZES[i] > 0) {
            send(w, LINK_SAMPLE, payload, link_pack_sample(&w->robot->session, &sample, payload));
        }
    }
}

/* Recorded signals; with up to three floats and one age of them changed. */
static void send_signals(world *w, source *from, uint8_t choice) {
    uint8_t payload[DEVICE_SIGNALS_SIZE];
    float values[GATE_SIGNAL_SIZE];
    float together[GATE_SIGNAL_SIZE];
    uint32_t ages[GATE_SIGNAL_COUNT] = {0};
    link_signals signals = {w->now, 0, ages, together};
    size_t size = 0;
    memcpy(values, &policy_recorded_signals[w->moment % POLICY_GOLDEN_STEPS], sizeof values);
    w->moment++;
    for (uint8_t i = 0; i < (choice & 3u); i++) {
        uint8_t index = 0;
        draw(from, &index, 1);
        draw(from, &values[index % GATE_SIGNAL_SIZE], sizeof(float));
    }
    if ((choice & 0x30u) == 0x30u) {
        draw(from, &ages[choice % GATE_SIGNAL_COUNT], sizeof(uint32_t));
    }
    if ((choice & 0xc0u) == 0xc0u) {
        draw(from, &signals.time, sizeof signals.time);
    }
    if (w->moment == 1 || (choice & 0x08u) != 0) {
        send_samples(w, from, choice, values);
    }
    for (size_t i = 0; i < GATE_SIGNAL_COUNT; i++) {
        if (LINK_SAMPLE_SIZES[i] == 0 && HELD_SIGNALS[i].age_of < 0) {
            memcpy(&together[size], &values[HELD_SIGNALS[i].offset], HELD_SIGNALS[i].size * sizeof(float));
            size += HELD_SIGNALS[i].size;
        }
    }
    send(w, LINK_SIGNALS, payload, link_pack_signals(&w->robot->session, &signals, payload));
}

static void act(world *w, source *from) {
    uint8_t choice[2];
    uint16_t pause = 0;
    draw(from, choice, sizeof choice);
    switch (choice[0] % 8u) {
    case 0:
        device_take(w->robot, choice[1], w->now);
        check_promises(w);
        break;
    case 1:
        draw(from, &pause, sizeof pause);
        w->now += pause;
        break;
    case 2:
        draw(from, &pause, sizeof pause);
        w->now += (int64_t)pause << (choice[1] % 40u);
        w->now = w->now < LATEST ? w->now : LATEST;
        break;
    case 3:
        send_hello(w, choice[1]);
        break;
    case 4:
        send(w, LINK_REQUEST, &choice[1], 1);
        break;
    case 5:
        draw(from, &w->sequence, sizeof w->sequence);
        break;
    case 6:
        device_tick(w->robot, w->now + 1000 * choice[1]);
        check_promises(w);
        break;
    default:
        w->now += GATE_CONFIG.period;
        send_signals(w, from, choice[0] % 16u == 7u ? 0 : choice[1]);
        break;
    }
    wake(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    source from = {data, length};
    world w = {.robot = malloc(sizeof(device))};
    policy_arena *arena = malloc(sizeof *arena);
    check(w.robot != NULL && arena != NULL);
    uint8_t choice = 0;
    draw(&from, &choice, 1);
    device_start(w.robot, arena, (choice & 0x0fu) != 0x0fu, 0);
    link_decoder_start(&w.ears, w.heard, sizeof w.heard);
    check_promises(&w);
    if ((choice & 0x10u) != 0) { /* into flight, or nothing would get there */
        const uint8_t requests[] = {GATE_REQUEST_ARM, GATE_REQUEST_ACTIVATE};
        send_hello(&w, 0);
        for (size_t i = 0; i < sizeof requests; i++) {
            w.now += GATE_CONFIG.period;
            send(&w, LINK_REQUEST, &requests[i], 1);
            send_signals(&w, &from, 0);
        }
    }
    while (from.left > 0) {
        act(&w, &from);
    }
    free(arena);
    free(w.robot);
    return 0;
}
