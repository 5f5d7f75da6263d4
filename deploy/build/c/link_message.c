/* SPDX-License-Identifier: Apache-2.0 */
#include "link_message.h"

#include <string.h>

/* --- little-endian numbers -------------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *out, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (uint8_t)((value >> (8 * i)) & 255u);
    }
    return out + bytes;
}

static uint64_t get(const uint8_t **in, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)(*in)[i] << (8 * i);
    }
    *in += bytes;
    return value;
}

static int64_t get_signed(const uint8_t **in, size_t bytes) {
    uint64_t value = get(in, bytes);
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    return (value & sign) != 0 ? -(int64_t)(sign - 1 - (value & (sign - 1))) - 1 : (int64_t)value;
}

static uint8_t *put_floats(uint8_t *out, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        (void)memcpy(&bits, &values[i], sizeof bits);
        out = put(out, bits, 4);
    }
    return out;
}

static void get_floats(const uint8_t **in, float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)get(in, 4);
        (void)memcpy(&values[i], &bits, sizeof bits);
    }
}

/* --- messages --------------------------------------------------------------------------------------------- */

size_t link_pack_hello(const link_hello *message, uint8_t *out) {
    uint8_t *end = put(out, message->role, 1);
    end = put(end, message->answer ? 1 : 0, 1);
    end = put(end, message->signal_size, 2);
    end = put(end, message->command_size, 2);
    end = put(end, message->control_period, 4);
    end = put(end, (uint64_t)message->time, 8);
    (void)memcpy(end, message->digest, LINK_DIGEST_SIZE);
    return (size_t)(end - out) + LINK_DIGEST_SIZE;
}

void link_unpack_hello(const link_frame *frame, link_hello *message) {
    const uint8_t *in = frame->payload;
    message->role = (uint8_t)get(&in, 1);
    message->answer = (get(&in, 1) & 1u) != 0;
    message->signal_size = (uint16_t)get(&in, 2);
    message->command_size = (uint16_t)get(&in, 2);
    message->control_period = (uint32_t)get(&in, 4);
    message->time = get_signed(&in, 8);
    (void)memcpy(message->digest, in, LINK_DIGEST_SIZE);
}

size_t link_pack_signals(const link_session *sizes, const link_signals *message, uint8_t *out) {
    uint8_t *end = put(out, (uint64_t)message->time, 8);
    end = put(end, message->operator_age, 4);
    for (size_t i = 0; i < sizes->signal_count; i++) {
        end = put(end, message->ages[i], 4);
    }
    return (size_t)(put_floats(end, message->values, sizes->signal_size) - out);
}

void link_unpack_signals(const link_session *sizes, const link_frame *frame, link_signals *message) {
    const uint8_t *in = frame->payload;
    message->time = get_signed(&in, 8);
    message->operator_age = (uint32_t)get(&in, 4);
    for (size_t i = 0; i < sizes->signal_count; i++) {
        message->ages[i] = (uint32_t)get(&in, 4);
    }
    if (message->values != NULL) {
        get_floats(&in, message->values, sizes->signal_size);
    }
}

void link_unpack_values(const link_session *sizes, const link_frame *frame, size_t first, size_t count, float *values) {
    const uint8_t *in = frame->payload + 12 + 4 * (sizes->signal_count + first);
    get_floats(&in, values, count);
}

size_t link_pack_sample(const link_session *sizes, const link_sample *message, uint8_t *out) {
    uint8_t *end = put(out, (uint64_t)message->time, 8);
    end = put(end, message->age, 4);
    end = put(end, message->index, 2);
    return (size_t)(put_floats(end, message->values, sizes->sample_sizes[message->index]) - out);
}

void link_unpack_sample(const link_frame *frame, link_sample *message) {
    const uint8_t *in = frame->payload;
    message->time = get_signed(&in, 8);
    message->age = (uint32_t)get(&in, 4);
    message->index = (uint16_t)get(&in, 2);
    if (message->values != NULL) {
        get_floats(&in, message->values, (frame->length - LINK_SAMPLE_HEAD) / 4u);
    }
}

size_t link_pack_commands(const link_session *sizes, const link_commands *message, uint8_t *out) {
    uint8_t *end = put(out, (uint64_t)message->time, 8);
    end = put(end, message->answers, 2);
    end = put(end, message->state, 1);
    end = put(end, message->source, 1);
    return (size_t)(put_floats(end, message->values, sizes->command_size) - out);
}

void link_unpack_commands(const link_session *sizes, const link_frame *frame, link_commands *message) {
    const uint8_t *in = frame->payload;
    message->time = get_signed(&in, 8);
    message->answers = (uint16_t)get(&in, 2);
    message->state = (uint8_t)get(&in, 1);
    message->source = (uint8_t)get(&in, 1);
    get_floats(&in, message->values, sizes->command_size);
}

size_t link_pack_fault(const link_fault *message, uint8_t *out) {
    uint8_t *end = put(out, (uint64_t)message->time, 8);
    end = put(end, message->state, 1);
    end = put(end, message->source, 1);
    end = put(end, message->reason, 1);
    end = put(end, message->events, 1);
    end = put(end, (uint64_t)message->channel, 2);
    end = put(end, (uint64_t)message->element, 2);
    return (size_t)(end - out);
}

void link_unpack_fault(const link_frame *frame, link_fault *message) {
    const uint8_t *in = frame->payload;
    message->time = get_signed(&in, 8);
    message->state = (uint8_t)get(&in, 1);
    message->source = (uint8_t)get(&in, 1);
    message->reason = (uint8_t)get(&in, 1);
    message->events = (uint8_t)get(&in, 1);
    message->channel = (int16_t)get_signed(&in, 2);
    message->element = (int16_t)get_signed(&in, 2);
}

size_t link_pack_statistics(const link_statistics *message, uint8_t *out) {
    const link_decoder_counts *d = &message->decoder;
    const link_session_counts *s = &message->session;
    const uint32_t counts[] = {message->steps, message->late_steps, message->step_time, d->frames, d->framing, d->crc,
                               d->version,     d->oversize,         s->lost,            s->late,   s->refused};
    uint8_t *end = put(out, (uint64_t)message->time, 8);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        end = put(end, counts[i], 4);
    }
    return (size_t)(end - out);
}

void link_unpack_statistics(const link_frame *frame, link_statistics *message) {
    link_decoder_counts *d = &message->decoder;
    link_session_counts *s = &message->session;
    uint32_t *const counts[] = {&message->steps, &message->late_steps, &message->step_time, &d->frames,
                                &d->framing,     &d->crc,              &d->version,         &d->oversize,
                                &s->lost,        &s->late,             &s->refused};
    const uint8_t *in = frame->payload;
    message->time = get_signed(&in, 8);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        *counts[i] = (uint32_t)get(&in, 4);
    }
}

size_t link_pack_request(uint8_t requests, uint8_t *out) {
    out[0] = requests;
    return 1;
}

uint8_t link_unpack_request(const link_frame *frame) { return frame->payload[0]; }

size_t link_pack_refusal(uint8_t reason, const uint8_t *digest, uint8_t *out) {
    out[0] = reason;
    (void)memcpy(out + 1, digest, LINK_DIGEST_SIZE);
    return 1 + LINK_DIGEST_SIZE;
}

size_t link_pack_progress(const link_progress *message, uint8_t *out) {
    const uint32_t counts[] = {message->steps, message->learnt, message->spikes, message->returns, message->off};
    uint8_t *end = put(out, (uint64_t)message->time, 8);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        end = put(end, counts[i], 4);
    }
    end = put_floats(end, &message->first, 1);
    return (size_t)(put_floats(end, &message->last, 1) - out);
}

void link_unpack_progress(const link_frame *frame, link_progress *message) {
    uint32_t *const counts[] = {&message->steps, &message->learnt, &message->spikes, &message->returns, &message->off};
    const uint8_t *in = frame->payload;
    message->time = get_signed(&in, 8);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        *counts[i] = (uint32_t)get(&in, 4);
    }
    get_floats(&in, &message->first, 1);
    get_floats(&in, &message->last, 1);
}

size_t link_pack_pull(uint32_t offset, uint8_t *out) { return (size_t)(put(out, offset, 4) - out); }

uint32_t link_unpack_pull(const link_frame *frame) {
    const uint8_t *in = frame->payload;
    return (uint32_t)get(&in, 4);
}

size_t link_pack_weights(const link_weights *message, uint8_t *out) {
    uint8_t *const end = put(put(out, message->total, 4), message->offset, 4);
    (void)memcpy(end, message->piece, LINK_PIECE);
    return 8 + LINK_PIECE;
}

void link_unpack_weights(const link_frame *frame, link_weights *message) {
    const uint8_t *in = frame->payload;
    message->total = (uint32_t)get(&in, 4);
    message->offset = (uint32_t)get(&in, 4);
    (void)memcpy(message->piece, in, LINK_PIECE);
}

int64_t link_stamp(int64_t time, uint32_t age) {
    return age == LINK_AGE_NEVER || time < (int64_t)age ? LINK_NEVER : time - (int64_t)age;
}
