/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl from a bundle; do not edit. robo_rl/learn/stream.py is the same in Python, to the bit: every operation
 * is rounded once, and sums have one order. */
#include "${name}_learn.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#ifndef ${guard}_LEARN_ALLOWED
#define ${guard}_LEARN_ALLOWED 0u /* at power-up */
#endif

#define INPUTS ${guard}_LEARN_INPUTS
#define ACTIONS ${guard}_LEARN_ACTIONS
#define ACTOR ${guard}_LEARN_ACTOR
#define CRITIC ${guard}_LEARN_CRITIC
#define LAYERS ${layers}u
#define VALUES ${values}u /* of all layers, the input included */
#define WIDEST ${widest}u

#define GAMMA $gamma
#define DECAY $decay /* gamma times lambda */
#define KAPPA_ACTOR $kappa_actor
#define KAPPA_CRITIC $kappa_critic
#define DEVIATION $deviation
#define BOUND $bound
#define SPIKE $spike
#define BLOCK ${block}u
#define PER_BLOCK $per_block
#define WARM_UP ${warm_up}u
#define WORSE $worse
#define SEED ${seed}u
#define REWARD_SCALE $reward_scale
#define RATE $rate
#define STEADY ${steady}u
#define LARGEST $largest
#define RETURNS ${most_returns}u
#define NOISES ${noises}u

$constants

static const uint16_t actor_sizes[LAYERS + 1u] = {$actor_sizes};
static const uint16_t critic_sizes[LAYERS + 1u] = {$critic_sizes};

/* A network and the traces of its parameters: by layer, rows of weights, then biases. */
typedef struct {
    const uint16_t *sizes;
    uint32_t count;
    float *parameters;
    float *traces;
    float norm; /* the sum of the traces' magnitudes */
} net;

static float actor_parameters[ACTOR], actor_traces[ACTOR], critic_parameters[CRITIC], critic_traces[CRITIC];
static net actor = {actor_sizes, ACTOR, actor_parameters, actor_traces, 0.0f};
static net critic = {critic_sizes, CRITIC, critic_parameters, critic_traces, 0.0f};
static uint32_t steps, learnt, spikes, returns, counted, newest;
static float value, usual, earned_in_block, first, last;
static uint8_t follows, off, begun, allowed = ${guard}_LEARN_ALLOWED;

/* --- functions of one number ----------------------------------------------------------------------------- */

static float tangent_of(float x)
{
    const float u = x * x;
    const float v = u * u;
    const float p01 = (0x1.437378p+9f * u) + 0x1.3e2386p+12f;
    const float p23 = (0x1.2a2e06p-5f * u) + 0x1.b6bde2p+3f;
    const float p24 = (-0x1.062eecp-15f * v) + p23;
    const float q01 = (0x1.24f418p+11f * u) + 0x1.3e2398p+12f;
    if (u > 0x1.f347aep+5f) {
        return (x > 0.0f) ? 1.0f : -1.0f;
    }
    return (x * ((p24 * v) + p01)) / (((u + 0x1.d0f61ep+6f) * v) + q01);
}

static float logarithm(float x)
{
    uint32_t bits;
    float m;
    (void)memcpy(&bits, &x, sizeof bits);
    int32_t exponent = (int32_t)(bits >> 23) - 127;
    bits = (bits & 0x7FFFFFu) | 0x3F800000u;
    if (bits > 0x3FB504F3u) { /* the square root of 2 */
        exponent++;
        bits -= 0x800000u;
    }
    (void)memcpy(&m, &bits, sizeof m);
    const float s = (m - 1.0f) / (m + 1.0f);
    const float u = s * s;
    const float series = ((((($ninth * u) + $seventh) * u) + $fifth) * u) + $third;
    return ((float)exponent * $log_two) + (2.0f * (s + (s * (u * series))));
}

static float cosine_of_turns(float t)
{
    const uint32_t quarter = (uint32_t)((4.0f * t) + 0.5f);
    const float a = (t - ((float)quarter * 0.25f)) * $turn;
    const float u = a * a;
    const float cosine = ((((((($c8 * u) - $c6) * u) + $c4) * u) - 0.5f) * u) + 1.0f;
    const float sine = ((((((((($s9 * u) - $s7) * u) + $s5) * u) - $s3) * u) + 1.0f)) * a;
    const float by_quarter[4] = {cosine, -sine, -cosine, sine};
    return by_quarter[quarter & 3u];
}

/* Philox 2x32, 10 rounds: Salmon et al. 2011. */
static float normal(uint64_t counter)
{
    uint32_t low = (uint32_t)counter, high = (uint32_t)(counter >> 32), key = SEED;
    for (uint32_t i = 0; i < 10u; i++) {
        const uint64_t product = (uint64_t)0xD256D193u * low;
        low = (uint32_t)(product >> 32) ^ key ^ high;
        high = (uint32_t)product;
        key += 0x9E3779B9u;
    }
    const float u = (float)((low >> 8) + 1u) * 0x1p-24f;
    return sqrtf(-2.0f * logarithm(u)) * cosine_of_turns((float)(high >> 8) * 0x1p-24f);
}

/* --- networks -------------------------------------------------------------------------------------------- */

/* What the layers give goes to values, behind the input that is there; where the last one begins. */
static const float *forward(const net *n, float *values)
{
    const float *w = n->parameters;
    float *x = values;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        const uint32_t columns = n->sizes[layer], rows = n->sizes[layer + 1u];
        const float *const bias = &w[rows * columns];
        float *const y = &x[columns];
        for (uint32_t r = 0; r < rows; r++) {
            float sum = bias[r];
            for (uint32_t c = 0; c < columns; c++) {
                sum += w[(r * columns) + c] * x[c];
            }
            y[r] = ((layer + 1u) < LAYERS) ? tangent_of(sum) : sum;
        }
        w = &bias[rows];
        x = y;
    }
    return x;
}

/* Let traces decay, and add the gradient of the outputs, weighted by output. */
static void trace(net *n, const float *values, const float *output)
{
    float delta[WIDEST], below[WIDEST];
    uint32_t end = n->count, at = 0;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        at += n->sizes[layer];
    }
    (void)memcpy(delta, output, n->sizes[LAYERS] * sizeof(float));
    for (uint32_t layer = LAYERS; layer > 0u; layer--) {
        const uint32_t columns = n->sizes[layer - 1u], rows = n->sizes[layer];
        const uint32_t begin = end - (rows * (columns + 1u));
        const float *const w = &n->parameters[begin];
        float *const z = &n->traces[begin];
        float *const z_bias = &z[rows * columns];
        at -= columns;
        const float *const x = &values[at];
        (void)memset(below, 0, sizeof below);
        for (uint32_t r = 0; r < rows; r++) {
            for (uint32_t c = 0; c < columns; c++) {
                const uint32_t i = (r * columns) + c;
                below[c] += w[i] * delta[r];
                z[i] = (DECAY * z[i]) + (delta[r] * x[c]);
            }
            z_bias[r] = (DECAY * z_bias[r]) + delta[r];
        }
        for (uint32_t c = 0; c < columns; c++) {
            delta[c] = below[c] * (1.0f - (x[c] * x[c]));
        }
        end = begin;
    }
    n->norm = 0.0f;
    for (uint32_t i = 0; i < n->count; i++) {
        n->norm += fabsf(n->traces[i]);
    }
}

static void forget(net *n)
{
    (void)memset(n->traces, 0, n->count * sizeof(float));
    n->norm = 0.0f;
}

/* Go along the traces, by no more than the bound. */
static void go(net *n, float error, float kappa)
{
    const float most = (fabsf(error) > 1.0f) ? fabsf(error) : 1.0f;
    const float overshoot = (kappa * most) * n->norm;
    const float size = (overshoot > 1.0f) ? (error / overshoot) : error;
    for (uint32_t i = 0; i < n->count; i++) {
        n->parameters[i] += size * n->traces[i];
    }
}

static void keep_near(void)
{
    for (uint32_t i = 0; i < ACTOR; i++) {
        const float low = golden_actor[i] - BOUND, high = golden_actor[i] + BOUND;
        const float raised = (actor_parameters[i] < low) ? low : actor_parameters[i];
        actor_parameters[i] = (raised > high) ? high : raised;
    }
}

/* --- learning -------------------------------------------------------------------------------------------- */

void ${name}_learn_allow(uint8_t now)
{
    allowed = now;
}

void ${name}_learn_pause(void)
{
    follows = 0u;
    forget(&actor);
    forget(&critic);
}

static void restore(void)
{
    (void)memcpy(actor_parameters, golden_actor, sizeof actor_parameters);
    (void)memcpy(critic_parameters, first_critic, sizeof critic_parameters);
    ${name}_learn_pause();
}

void ${name}_learn_reset(void)
{
    restore();
    steps = learnt = spikes = returns = counted = 0u;
    value = usual = earned_in_block = first = last = 0.0f;
    off = 0u;
    begun = 1u;
}

static void learn(float error)
{
    const float size = fabsf(error);
    if (!(size <= LARGEST)) {
        restore();
        off = 1u;
        return;
    }
    if ((learnt >= STEADY) && (size > (SPIKE * usual))) {
        spikes++;
        forget(&actor);
        forget(&critic);
    } else if (steps > BLOCK) {
        go(&critic, error, KAPPA_CRITIC);
        if (steps > (BLOCK + WARM_UP)) {
            go(&actor, error, KAPPA_ACTOR);
            keep_near();
        }
    } else {
        /* the first block tells what is usual */
    }
    usual += RATE * (size - usual);
    learnt++;
}

/* Compare what a block of steps earned with the first one. */
static void judge(float earned)
{
    earned_in_block += earned;
    counted++;
    if (counted < BLOCK) {
        return;
    }
    last = earned_in_block * PER_BLOCK;
    if (learnt <= BLOCK) {
        first = last;
    } else if (last < (first - (WORSE * fabsf(first)))) {
        returns++;
        off = (returns >= RETURNS) ? 1u : 0u;
        restore();
    } else {
        /* no worse */
    }
    earned_in_block = 0.0f;
    counted = 0u;
}

void ${name}_learn_act(const float *observation, float reward, float *action)
{
    float seen[VALUES], thought[VALUES], noise[ACTIONS];
    const float one = 1.0f;
    if (begun == 0u) {
        ${name}_learn_reset();
    }
    (void)memcpy(seen, observation, INPUTS * sizeof(float));
    if ((allowed == 0u) || (off != 0u)) {
        if (follows != 0u) {
            ${name}_learn_pause();
        }
        (void)memcpy(action, forward(&actor, seen), ACTIONS * sizeof(float));
        return;
    }
    (void)memcpy(thought, observation, INPUTS * sizeof(float));
    if (follows != 0u) {
        const float earned = reward * REWARD_SCALE;
        learn((earned + (GAMMA * forward(&critic, thought)[0])) - value);
        judge(earned);
    }
    const float *const mean = forward(&actor, seen);
    value = forward(&critic, thought)[0];
    follows = 1u;
    steps++;
    if ((steps <= BLOCK) || (off != 0u)) {
        (void)memcpy(action, mean, ACTIONS * sizeof(float));
        return;
    }
    for (uint32_t k = 0; k < ACTIONS; k++) {
        noise[k] = normal(((uint64_t)steps * NOISES) + k);
        action[k] = mean[k] + (DEVIATION * noise[k]);
    }
    trace(&critic, thought, &one);
    trace(&actor, seen, noise);
}

void ${name}_learn_progress_now(${name}_learn_progress *progress)
{
    const ${name}_learn_progress now = {steps, learnt, spikes, returns, off, first, last};
    *progress = now;
}

/* --- slots in flash: "RRLS", sequence, digest of the bundle (64), parameters, reserved, weights, CRC ---------- */

static uint32_t added(uint32_t crc, const uint8_t *bytes, size_t count)
{
    uint32_t sum = crc;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (uint32_t bit = 0; bit < 8u; bit++) {
            sum = (sum >> 1) ^ (((sum & 1u) != 0u) ? 0xEDB88320u : 0u);
        }
    }
    return sum;
}

#define MAGIC 0x534C5252u
#define HEAD 84u
#define WEIGHTS (4u * ACTOR) /* bytes */

static const char digest[65] = $digest;

uint32_t ${name}_learn_sequence(void)
{
    return newest + 1u;
}

void ${name}_learn_piece(uint32_t sequence, uint32_t offset, uint8_t *bytes, uint32_t count)
{
    const uint32_t magic = MAGIC, parameters = ACTOR;
    uint8_t head[HEAD] = {0};
    if (begun == 0u) {
        ${name}_learn_reset();
    }
    (void)memcpy(&head[0], &magic, 4u);
    (void)memcpy(&head[4], &sequence, 4u);
    (void)memcpy(&head[8], digest, 64u);
    (void)memcpy(&head[72], &parameters, 4u);
    const uint8_t *const weights = (const uint8_t *)actor_parameters;
    const uint32_t crc = ~added(added(0xFFFFFFFFu, head, HEAD), weights, WEIGHTS);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = offset + i;
        if (at < HEAD) {
            bytes[i] = head[at];
        } else if (at < (HEAD + WEIGHTS)) {
            bytes[i] = weights[at - HEAD];
        } else if (at < ${guard}_LEARN_SLOT) {
            bytes[i] = (uint8_t)((crc >> (8u * (at - HEAD - WEIGHTS))) & 255u);
        } else {
            bytes[i] = 0u;
        }
    }
}

void ${name}_learn_save(uint32_t sequence, uint8_t slot[${guard}_LEARN_SLOT])
{
    ${name}_learn_piece(sequence, 0u, slot, ${guard}_LEARN_SLOT);
}

/* The sequence of a slot that is whole and of this policy; else 0. */
static uint32_t sequence_of(const uint8_t *slot)
{
    uint32_t magic, sequence, count, crc;
    (void)memcpy(&magic, &slot[0], 4u);
    (void)memcpy(&sequence, &slot[4], 4u);
    (void)memcpy(&count, &slot[72], 4u);
    (void)memcpy(&crc, &slot[HEAD + sizeof actor_parameters], 4u);
    if ((magic != MAGIC) || (count != ACTOR) || (memcmp(&slot[8], digest, 64u) != 0) ||
        (crc != ~added(0xFFFFFFFFu, slot, HEAD + WEIGHTS))) {
        return 0u;
    }
    return sequence;
}

uint32_t ${name}_learn_restore(const uint8_t *first_slot, const uint8_t *second_slot)
{
    const uint32_t one = sequence_of(first_slot), two = sequence_of(second_slot);
    const uint8_t *const slot = (one > two) ? first_slot : second_slot;
    ${name}_learn_reset();
    newest = (one > two) ? one : two;
    if (newest == 0u) {
        return 0u;
    }
    (void)memcpy(actor_parameters, &slot[HEAD], sizeof actor_parameters);
    for (uint32_t i = 0; i < ACTOR; i++) {
        if (!(fabsf(actor_parameters[i] - golden_actor[i]) <= (1.001f * BOUND))) {
            restore(); /* not what was learnt here */
            return 0u;
        }
    }
    return newest;
}
