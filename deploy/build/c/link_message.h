/* SPDX-License-Identifier: Apache-2.0 */
/* What the link's frames carry: the C twin of deploy/robot/link/messages.py; docs/link.md has the layouts.
 *
 * link_pack_* write a payload and return its length; out must hold it. link_unpack_* read the payload of a frame
 * whose length link_accept has checked. Little-endian on the wire, whatever the processor.
 */
#ifndef ROBO_RL_LINK_MESSAGE_H
#define ROBO_RL_LINK_MESSAGE_H

#include "link.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LINK_AGE_NEVER 0xffffffffu

enum link_role { LINK_HOST = 0, LINK_DEVICE = 1 };

typedef struct {
    uint8_t role;
    bool answer; /* the peer is asked for its hello */
    uint16_t signal_size;
    uint16_t command_size;
    uint32_t control_period; /* microseconds */
    int64_t time;
    uint8_t digest[LINK_DIGEST_SIZE];
} link_hello;

/* Signals at one moment. Ages are microseconds; LINK_AGE_NEVER: missing. values may be a null pointer for
 * link_unpack_signals, where link_unpack_values gets them. */
typedef struct {
    int64_t time;
    uint32_t operator_age;
    uint32_t *ages;
    float *values;
} link_signals;

/* One measurement of a signal that comes alone. link_unpack_sample leaves the floats where values is a null pointer:
 * what it has read tells where they go. */
typedef struct {
    int64_t time;
    uint32_t age;
    uint16_t index; /* of the signal */
    float *values;
} link_sample;

typedef struct {
    int64_t time;
    uint16_t answers; /* the sequence number of the signals that this answers */
    uint8_t state;    /* enum gate_state */
    uint8_t source;   /* enum gate_source */
    float *values;
} link_commands;

typedef struct {
    int64_t time;
    uint8_t state;
    uint8_t source;
    uint8_t reason; /* enum gate_reason */
    uint8_t events; /* enum gate_event */
    int16_t channel;
    int16_t element;
} link_fault;

typedef struct {
    int64_t time;
    uint32_t steps;
    uint32_t late_steps;
    uint32_t step_time; /* the longest, microseconds */
    link_decoder_counts decoder;
    link_session_counts session;
} link_statistics;

/* How learning goes on the device: the numbers of a policy's learn.h. */
typedef struct {
    int64_t time;
    uint32_t steps;
    uint32_t learnt;
    uint32_t spikes;
    uint32_t returns;
    uint32_t off;
    float first;
    float last;
} link_progress;

/* A piece of the slot with the learnt weights, zeros beyond its end. */
typedef struct {
    uint32_t total; /* bytes of the slot; 0 while the policy is active, without a piece */
    uint32_t offset;
    uint8_t piece[LINK_PIECE];
} link_weights;

size_t link_pack_hello(const link_hello *message, uint8_t *out);
size_t link_pack_signals(const link_session *sizes, const link_signals *message, uint8_t *out);
size_t link_pack_sample(const link_session *sizes, const link_sample *message, uint8_t *out);
size_t link_pack_commands(const link_session *sizes, const link_commands *message, uint8_t *out);
size_t link_pack_fault(const link_fault *message, uint8_t *out);
size_t link_pack_statistics(const link_statistics *message, uint8_t *out);
size_t link_pack_request(uint8_t requests, uint8_t *out);
size_t link_pack_refusal(uint8_t reason, const uint8_t *digest, uint8_t *out);
size_t link_pack_progress(const link_progress *message, uint8_t *out);
size_t link_pack_pull(uint32_t offset, uint8_t *out);
size_t link_pack_weights(const link_weights *message, uint8_t *out);

void link_unpack_hello(const link_frame *frame, link_hello *message);
void link_unpack_signals(const link_session *sizes, const link_frame *frame, link_signals *message);
/* Some of the floats of signals, from that one on. */
void link_unpack_values(const link_session *sizes, const link_frame *frame, size_t first, size_t count, float *values);
void link_unpack_sample(const link_frame *frame, link_sample *message);
void link_unpack_commands(const link_session *sizes, const link_frame *frame, link_commands *message);
void link_unpack_fault(const link_frame *frame, link_fault *message);
void link_unpack_statistics(const link_frame *frame, link_statistics *message);
uint8_t link_unpack_request(const link_frame *frame); /* bits of enum gate_request */
void link_unpack_progress(const link_frame *frame, link_progress *message);
uint32_t link_unpack_pull(const link_frame *frame); /* the first byte that is asked for */
void link_unpack_weights(const link_frame *frame, link_weights *message);

/* The stamp of what was that old at that time; LINK_NEVER if it was missing or is from before time zero. */
int64_t link_stamp(int64_t time, uint32_t age);

#ifdef __cplusplus
}
#endif

#endif
