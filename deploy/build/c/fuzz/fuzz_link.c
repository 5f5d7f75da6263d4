/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target for the link: any bytes, in any pieces, at any buffer size. */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "link_message.h"

#define SIGNALS 3
#define SIZE 7
#define COMMANDS 4
#define ALONE 5 /* floats of a signal that comes alone */
#define LARGEST 256

static const uint16_t SAMPLES[] = {0, 1, 0, ALONE};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static const uint8_t DIGEST[LINK_DIGEST_SIZE] = {1, 2, 3};

/* Read a message, write it again: the same bytes, as long as every bit of it means something. */
static void read_again(const link_session *session, const link_frame *frame) {
    uint32_t ages[SIGNALS];
    float values[SIZE];
    uint8_t again[LARGEST];
    size_t length = 0;
    if (frame->type == LINK_HELLO) {
        link_hello hello;
        link_unpack_hello(frame, &hello);
        length = link_pack_hello(&hello, again);
        again[1] = frame->payload[1]; /* only one bit of the flags is in use */
    } else if (frame->type == LINK_SIGNALS) {
        link_signals signals = {0, 0, ages, values};
        link_unpack_signals(session, frame, &signals);
        length = link_pack_signals(session, &signals, again);
        check(link_stamp(signals.time, ages[0]) <= signals.time || signals.time < 0);
    } else if (frame->type == LINK_SAMPLE) {
        float floats[ALONE];
        link_sample sample = {0, 0, 0, NULL};
        link_unpack_sample(frame, &sample);
        check(SAMPLES[sample.index] > 0);
        sample.values = floats;
        link_unpack_sample(frame, &sample);
        length = link_pack_sample(session, &sample, again);
    } else if (frame->type == LINK_COMMANDS) {
        link_commands commands = {0, 0, 0, 0, values};
        link_unpack_commands(session, frame, &commands);
        length = link_pack_commands(session, &commands, again);
    } else if (frame->type == LINK_FAULT) {
        link_fault fault;
        link_unpack_fault(frame, &fault);
        length = link_pack_fault(&fault, again);
    } else if (frame->type == LINK_STATISTICS) {
        link_statistics statistics;
        link_unpack_statistics(frame, &statistics);
        length = link_pack_statistics(&statistics, again);
    } else if (frame->type == LINK_REQUEST) {
        length = link_pack_request(link_unpack_request(frame), again);
    } else if (frame->type == LINK_PROGRESS) {
        link_progress progress;
        link_unpack_progress(frame, &progress);
        length = link_pack_progress(&progress, again);
    } else if (frame->type == LINK_PULL) {
        length = link_pack_pull(link_unpack_pull(frame), again);
    } else if (frame->type == LINK_WEIGHTS) {
        link_weights weights;
        link_unpack_weights(frame, &weights);
        length = link_pack_weights(&weights, again);
    } else {
        length = link_pack_refusal(frame->payload[0], frame->payload + 1, again);
    }
    check(length == frame->length && memcmp(again, frame->payload, length) == 0);
}

/* Whatever came before, a frame after a delimiter is understood. */
static void check_recovery(link_decoder *decoder, const uint8_t *payload, size_t length) {
    uint8_t wire[LINK_BUFFER_SIZE(LARGEST) + 1];
    link_frame frame;
    size_t size = link_encode(LINK_FAULT, 7, payload, length, wire, sizeof wire);
    check(size > 0 && memchr(wire, 0, size) == wire + size - 1);
    (void)link_decode(decoder, 0, &frame);
    for (size_t i = 0; i + 1 < size; i++) {
        check(!link_decode(decoder, wire[i], &frame));
    }
    bool fits = size - 1 <= decoder->capacity;
    check(link_decode(decoder, wire[size - 1], &frame) == fits);
    check(!fits || (frame.length == length && memcmp(frame.payload, payload, length) == 0));
}

/* What a device does with the bytes from its wire. */
typedef struct {
    link_decoder decoder;
    link_session session;
    link_clock clock;
    int64_t now;
} device;

static void take(device *d, uint8_t byte) {
    link_frame frame;
    if (!link_decode(&d->decoder, byte, &frame)) {
        return;
    }
    enum link_verdict verdict = link_accept(&d->session, &frame, d->now);
    bool acted = verdict == LINK_TAKEN || verdict == LINK_OPENED;
    check(!acted || (d->session.state == LINK_OPEN && d->session.last == d->now));
    if (verdict != LINK_MALFORMED) {
        read_again(&d->session, &frame);
    }
    if (verdict == LINK_OPENED) {
        link_hello hello;
        link_unpack_hello(&frame, &hello);
        check(link_clock_update(&d->clock, hello.time, d->now) <= d->now || d->now < 0);
    }
    check(!acted || d->now < 0 || !link_expired(d->session.last, d->now, 0));
}

/* The input as a list of frames, so that the checksum does not hide what lies behind it: type, sequence number,
 * choices, then the payload. Returns how many bytes of the input it used. */
static size_t take_frame(device *d, const uint8_t *data, size_t length) {
    uint8_t payload[LARGEST] = {0};
    uint8_t wire[LINK_BUFFER_SIZE(LARGEST) + 1];
    uint8_t type = data[0] % 13;
    int32_t right = type == LINK_SAMPLE ? LINK_SAMPLE_HEAD + 4 * SAMPLES[data[1] % 4] : link_length(&d->session, type);
    size_t size = (data[2] & 1u) != 0 && right >= 0 ? (size_t)right : data[2];
    size_t given = size < length - 3 ? size : length - 3;
    memcpy(payload, data + 3, given);
    if (type == LINK_HELLO && (data[2] & 2u) == 0 && size >= 18 + LINK_DIGEST_SIZE) {
        memcpy(payload + 18, DIGEST, LINK_DIGEST_SIZE);
    }
    if (type == LINK_SAMPLE && (data[2] & 2u) == 0 && size >= LINK_SAMPLE_HEAD) {
        payload[12] = data[1] % 4;
        payload[13] = 0;
    }
    size_t bytes = link_encode(type, data[1], payload, size, wire, sizeof wire);
    check(bytes > 0);
    if ((data[2] & 12u) == 12u) {
        wire[data[1] % bytes] ^= data[2];
    }
    for (size_t i = 0; i < bytes; i++) {
        take(d, wire[i]);
    }
    return 3 + given;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    if (length < 10) {
        return 0;
    }
    size_t capacity = (size_t)data[0] + 1;
    uint8_t *buffer = malloc(capacity); /* of that very size, for the address sanitizer */
    check(buffer != NULL);
    device d = {.now = 0};
    link_decoder_start(&d.decoder, buffer, capacity);
    link_session_start(&d.session, DIGEST, SIGNALS, SIZE, COMMANDS);
    link_session_samples(&d.session, SAMPLES, sizeof SAMPLES / sizeof SAMPLES[0]);
    link_clock_start(&d.clock);
    memcpy(&d.now, data + 1, sizeof d.now);
    for (size_t i = 9; i < length; i++) {
        take(&d, data[i]);
    }
    take(&d, 0);
    for (size_t i = 9; i + 3 < length;) {
        i += take_frame(&d, data + i, length - i);
    }
    check_recovery(&d.decoder, data, length < LARGEST ? length : LARGEST);
    free(buffer);
    return 0;
}
