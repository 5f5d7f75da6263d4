/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <float.h>

#if FLT_EVAL_METHOD != 0
#error "the gate needs float arithmetic that rounds every operation to float (FLT_EVAL_METHOD 0)"
#endif
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "the gate must see NaN and infinity: compile without -ffast-math"
#endif

/* Fifty days: beyond all timeouts of a contract. More counts as this much, so that 64 bits suffice. */
#define LONG_AGO INT64_C(4398046511104) /* 2^42 */

static const gate_problem NO_PROBLEM = {GATE_REASON_NONE, -1, -1};

static gate_problem problem_at(int reason, int channel, int element) {
    gate_problem problem = {(uint8_t)reason, (int16_t)channel, (int16_t)element};
    return problem;
}

static gate_problem problem_of(int reason) { return problem_at(reason, -1, -1); }

/* --- arithmetic ------------------------------------------------------------------------------------------- */

/* volatile: the product is rounded, and never fused with an addition that follows */
static float product(float a, float b) {
    volatile float rounded = a * b;
    return rounded;
}

static bool is_finite(float x) { return x >= -FLT_MAX && x <= FLT_MAX; }

static float bounded(float x, float lower, float upper) { return x < lower ? lower : (x > upper ? upper : x); }

/* goal, or as far towards it as most allows */
static float towards(float present, float goal, float most) { return bounded(goal, present - most, present + most); }

static bool inside(const gate_config *config, const float *command, size_t i) {
    return command[i] >= config->command_lower[i] && command[i] <= config->command_upper[i]; /* false for NaN */
}

/* --- the checks ------------------------------------------------------------------------------------------- */

static gate_problem check_surroundings(const gate_config *config, int64_t last, const gate_input *given, int64_t late) {
    if (!given->bundle_intact) {
        return problem_of(GATE_REASON_BUNDLE);
    }
    if (given->time < 0 || given->time < last) {
        return problem_of(GATE_REASON_CLOCK);
    }
    if (late > config->late_limit) {
        return problem_of(GATE_REASON_OVERRUN);
    }
    if (late < -config->late_limit) {
        return problem_of(GATE_REASON_TOO_FAST);
    }
    if (config->operator_timeout > 0) {
        bool age_known = given->operator_stamp >= 0 && given->operator_stamp <= given->time;
        if (!age_known || given->time - given->operator_stamp > config->operator_timeout) {
            return problem_of(GATE_REASON_OPERATOR_LOST);
        }
    }
    return NO_PROBLEM;
}

/* Microseconds by which the steps are behind their schedule, or ahead if negative; slack per step is forgotten. */
static int64_t lateness(const gate_config *config, const gate_memory *memory, int64_t time) {
    if ((memory->state != GATE_READY && memory->state != GATE_ACTIVE) || time < memory->time) {
        return 0;
    }
    int64_t passed = time - memory->time > LONG_AGO ? LONG_AGO : time - memory->time;
    int64_t late = memory->late + passed - config->period;
    if (late > config->slack) {
        return late - config->slack;
    }
    return late + config->slack < 0 ? late + config->slack : 0;
}

/* Note the signals that are new, and since when each has had its value. Stamps of the future are not kept. */
static void remember(const gate_config *config, gate_memory *memory, const gate_input *given) {
    for (size_t i = 0; i < config->signal_count; i++) {
        const gate_watch *watch = &config->signals[i];
        int64_t stamp = given->stamps[i];
        int64_t last = memory->at.stamps[i];
        if (stamp < 0 || stamp > given->time || stamp == last) {
            continue;
        }
        bool same = last >= 0 && stamp > last;
        for (size_t k = watch->offset; k < (size_t)watch->offset + watch->size; k++) {
            same = same && given->signals[k] == memory->at.values[k];
            memory->at.values[k] = given->signals[k];
        }
        if (!same) {
            memory->at.changed[i] = stamp;
        }
        memory->at.stamps[i] = stamp;
    }
}

static int check_quaternion(const gate_config *config, const float *q, bool upright) {
    float lying = product(q[0], q[0]) + product(q[1], q[1]);
    float norm = (lying + product(q[2], q[2])) + product(q[3], q[3]);
    if (norm < config->norm_low || norm > config->norm_high) {
        return GATE_REASON_SIGNAL_NORM;
    }
    return upright && lying > product(config->tilt, norm) ? GATE_REASON_TILT : GATE_REASON_NONE;
}

static gate_problem check_signal(const gate_config *config, const gate_memory *memory, const gate_input *given,
                                 size_t i) {
    const gate_watch *watch = &config->signals[i];
    int64_t stamp = given->stamps[i];
    if (stamp < 0) {
        return watch->optional ? NO_PROBLEM : problem_at(GATE_REASON_SIGNAL_MISSING, (int)i, -1);
    }
    if (stamp > given->time) {
        return problem_at(GATE_REASON_CLOCK, (int)i, -1);
    }
    if (watch->timeout > 0 && given->time - stamp > watch->timeout) {
        return problem_at(GATE_REASON_SIGNAL_STALE, (int)i, -1);
    }
    for (size_t k = 0; k < watch->size; k++) {
        size_t flat = watch->offset + k;
        float value = given->signals[flat];
        if (!(value >= config->signal_lower[flat] && value <= config->signal_upper[flat])) {
            int reason = is_finite(value) ? GATE_REASON_SIGNAL_RANGE : GATE_REASON_SIGNAL_NOT_FINITE;
            return problem_at(reason, (int)i, (int)k);
        }
    }
    if (watch->quaternion) {
        int reason = check_quaternion(config, &given->signals[watch->offset], watch->upright);
        if (reason != GATE_REASON_NONE) {
            return problem_at(reason, (int)i, -1);
        }
    }
    if (watch->noisy && memory->at.stamps[i] - memory->at.changed[i] > watch->timeout) {
        return problem_at(GATE_REASON_SIGNAL_FROZEN, (int)i, -1);
    }
    return NO_PROBLEM;
}

/* The first signal, in the contract's order, that must not be acted on. */
static gate_problem check_signals(const gate_config *config, const gate_memory *memory, const gate_input *given,
                                  bool sensors_only) {
    for (size_t i = 0; i < config->signal_count; i++) {
        if (!sensors_only || config->signals[i].sensor) {
            gate_problem problem = check_signal(config, memory, given, i);
            if (problem.reason != GATE_REASON_NONE) {
                return problem;
            }
        }
    }
    return NO_PROBLEM;
}

/* Whether the robot is where it may be. */
static gate_problem check_bounds(const gate_memory *memory, const gate_watch *watch, const gate_bounds *bounds) {
    float square = 0.0f;
    for (size_t k = 0; k < watch->size; k++) {
        float value = memory->at.values[watch->offset + k];
        if (!(value >= bounds->lower[k] && value <= bounds->upper[k])) {
            return problem_at(GATE_REASON_ENVELOPE, (int)bounds->signal, (int)k);
        }
        square += product(value, value);
    }
    return square > bounds->square ? problem_at(GATE_REASON_ENVELOPE, (int)bounds->signal, -1) : NO_PROBLEM;
}

static gate_problem check_envelope(const gate_config *config, const gate_memory *memory) {
    for (size_t i = 0; i < config->bounds_count; i++) {
        const gate_bounds *bounds = &config->bounds[i];
        if (memory->at.stamps[bounds->signal] >= 0) { /* it may be absent */
            gate_problem problem = check_bounds(memory, &config->signals[bounds->signal], bounds);
            if (problem.reason != GATE_REASON_NONE) {
                return problem;
            }
        }
    }
    return NO_PROBLEM;
}

/* Whether the robot can still stop before what its scan sees in the way: an arc of its speed and yaw rate. */
static gate_problem check_ahead(const gate_config *config, const gate_memory *memory) {
    const gate_ahead *ahead = config->ahead;
    const gate_watch *scan = &config->signals[ahead->scan];
    if (memory->at.stamps[ahead->scan] < 0 || memory->at.stamps[ahead->speed] < 0 ||
        (ahead->yaw_rate >= 0 && memory->at.stamps[ahead->yaw_rate] < 0)) { /* one may be absent */
        return NO_PROBLEM;
    }
    float speed = memory->at.values[config->signals[ahead->speed].offset];
    if (!(speed > 0.0f)) {
        return NO_PROBLEM;
    }
    float turn = ahead->yaw_rate >= 0 ? memory->at.values[config->signals[ahead->yaw_rate].offset] : 0.0f;
    float wide = product(speed, ahead->half_width);
    float far = product(speed, ahead->time);
    for (size_t k = 0; k < scan->size; k++) {
        float range = memory->at.values[scan->offset + k];
        float x = product(range, ahead->cosine[k]);
        float y = product(range, ahead->sine[k]);
        float beside = product(speed, y) - product(product(0.5f, turn), product(x, x));
        if (x > 0.0f && beside <= wide && beside >= -wide && x - ahead->front < far) {
            return problem_at(GATE_REASON_COLLISION, (int)ahead->scan, (int)k);
        }
    }
    return NO_PROBLEM;
}

/* What is wrong with anything but the command. */
static gate_problem check(const gate_config *config, const gate_memory *memory, const gate_input *given, int64_t last,
                          int64_t late) {
    gate_problem problem = check_surroundings(config, last, given, late);
    if (problem.reason == GATE_REASON_NONE) {
        problem = check_signals(config, memory, given, false);
    }
    if (problem.reason == GATE_REASON_NONE) {
        problem = check_envelope(config, memory);
    }
    if (problem.reason == GATE_REASON_NONE && config->ahead != NULL) {
        problem = check_ahead(config, memory);
    }
    return problem;
}

/* The problem of one element of the flat commands. */
static gate_problem command_problem(const gate_config *config, int reason, size_t flat) {
    size_t channel = config->command_count - 1u;
    while (config->command_offset[channel] > flat) {
        channel--;
    }
    return problem_at(reason, (int)channel, (int)(flat - config->command_offset[channel]));
}

/* Whether the policy's command may be sent, before its rate is limited. */
static gate_problem check_command(const gate_config *config, const gate_input *given) {
    if (given->command == NULL || given->command_stamp < 0) {
        return problem_of(GATE_REASON_COMMAND_MISSING);
    }
    if (given->command_stamp > given->time) {
        return problem_of(GATE_REASON_CLOCK);
    }
    if (given->time - given->command_stamp > config->timeout) {
        return problem_of(GATE_REASON_COMMAND_STALE);
    }
    for (size_t i = 0; i < config->command_size; i++) {
        if (!inside(config, given->command, i)) {
            bool finite = is_finite(given->command[i]);
            return command_problem(config, finite ? GATE_REASON_COMMAND_RANGE : GATE_REASON_COMMAND_NOT_FINITE, i);
        }
    }
    return NO_PROBLEM;
}

/* The controller has a command within limits, and every sensor that it may use is well. */
static bool fallback_can_act(const gate_config *config, const gate_memory *memory, const gate_input *given) {
    if (given->fallback == NULL) {
        return false;
    }
    for (size_t i = 0; i < config->command_size; i++) {
        if (!inside(config, given->fallback, i)) {
            return false;
        }
    }
    return check_signals(config, memory, given, true).reason == GATE_REASON_NONE;
}

/* --- the gate's own moves --------------------------------------------------------------------------------- */

/* Whether a signal's newest value tells where something is now. */
static bool fresh(const gate_config *config, const gate_memory *memory, size_t i) {
    const gate_watch *watch = &config->signals[i];
    int64_t stamp = memory->at.stamps[i];
    if (stamp < 0 || stamp > memory->time || memory->time - stamp > watch->timeout) {
        return false;
    }
    return !(watch->noisy && stamp - memory->at.changed[i] > watch->timeout);
}

/* Whether it is known where an actuator is, and where, within the command's limits. */
static bool measured(const gate_config *config, const gate_memory *memory, size_t i, float *where) {
    int16_t place = config->feedback[i];
    if (place < 0) {
        return false;
    }
    float raw = memory->at.values[place];
    if (!(raw >= config->signal_lower[place] && raw <= config->signal_upper[place])) {
        return false;
    }
    *where = bounded(raw, config->command_lower[i], config->command_upper[i]);
    return fresh(config, memory, (size_t)config->feedback_signal[i]);
}

static void send_at_once(gate_memory *memory, size_t i, float goal) {
    memory->at.reference[i] = goal;
    memory->at.command[i] = goal;
}

/* The reference at goal, but within reach of where, and the command after it at the rate limit. */
static void follow(const gate_config *config, gate_memory *memory, size_t i, float goal, const float *where) {
    if (where != NULL) {
        memory->at.reference[i] = bounded(goal, *where - config->reach[i], *where + config->reach[i]);
    }
    memory->at.command[i] = towards(memory->at.command[i], memory->at.reference[i], config->rate_step[i]);
}

/* Begin a move where the actuators are; where that is not known, at the command that was last sent. Before the first
 * arming there was none. */
static void begin(const gate_config *config, gate_memory *memory) {
    for (size_t i = 0; i < config->command_size; i++) {
        float where = 0.0f;
        memory->at.reference[i] = measured(config, memory, i, &where) ? where : memory->at.command[i];
        if (memory->reaction == (uint8_t)GATE_SOURCE_SILENT) {
            memory->at.command[i] = memory->at.reference[i];
        }
    }
    memory->reaction = config->stopped;
}

/* From now on each command is stopped, unless it is already, or nothing was ever sent. */
static void begin_stop(const gate_config *config, gate_memory *memory) {
    bool resting = memory->state == (uint8_t)GATE_IDLE || memory->state == (uint8_t)GATE_FAULT;
    if (!(resting && (memory->reaction == config->stopped || memory->reaction == (uint8_t)GATE_SOURCE_SILENT))) {
        begin(config, memory);
    }
}

static void stop_one(const gate_config *config, gate_memory *memory, size_t i) {
    float where = memory->at.reference[i];
    bool known = measured(config, memory, i, &where);
    float goal = memory->at.reference[i];
    if (config->stop[i] == (uint8_t)GATE_STOP_RAMP) {
        goal = towards(memory->at.reference[i], config->safe[i], config->slow_step[i]);
    } else if (config->stop[i] == (uint8_t)GATE_STOP_DAMP) {
        goal = where;
    } else {
        /* it holds */
    }
    follow(config, memory, i, goal, known ? &where : NULL);
}

/* One step of a stop, each command by its own. Before the first arming, all are where they are measured. */
static void stop_step(const gate_config *config, gate_memory *memory) {
    for (size_t i = 0; i < config->command_size; i++) {
        if (config->stop[i] == (uint8_t)GATE_STOP_OFF) {
            send_at_once(memory, i, config->safe[i]);
        } else if (memory->reaction == (uint8_t)GATE_SOURCE_SILENT) {
            float where = memory->at.command[i];
            memory->at.command[i] = measured(config, memory, i, &where) ? where : memory->at.command[i];
        } else {
            stop_one(config, memory, i);
        }
    }
}

/* One step of the move to the start. Motors without feedback idle until the policy takes over. */
static void start_step(const gate_config *config, gate_memory *memory) {
    for (size_t i = 0; i < config->command_size; i++) {
        float where = 0.0f;
        float goal = memory->at.reference[i];
        if (config->feedback[i] < 0) {
            send_at_once(memory, i, config->safe[i]);
        } else {
            bool known = measured(config, memory, i, &where);
            if (is_finite(config->start[i])) {
                goal = towards(memory->at.reference[i], config->start[i], config->slow_step[i]);
            }
            follow(config, memory, i, goal, known ? &where : NULL);
        }
    }
}

/* Whether the start is what is commanded. */
static bool arrived(const gate_config *config, const gate_memory *memory) {
    for (size_t i = 0; i < config->command_size; i++) {
        float reference = memory->at.reference[i];
        if (!(memory->at.command[i] == reference)) {
            return false;
        }
        if (is_finite(config->start[i]) && !(reference == config->start[i])) {
            return false;
        }
    }
    return true;
}

/* --- the states ------------------------------------------------------------------------------------------- */

static gate_output answer(const gate_memory *memory, int source, int events, gate_problem problem) {
    gate_output out;
    out.command = memory->at.command;
    out.problem = problem;
    out.state = memory->state;
    out.source = (uint8_t)source;
    out.events = (uint8_t)events;
    return out;
}

static void move(const gate_config *config, gate_memory *memory, const float *goal, const float *most) {
    for (size_t i = 0; i < config->command_size; i++) {
        memory->at.command[i] = towards(memory->at.command[i], goal[i], most[i]);
    }
}

static gate_output idle(const gate_config *config, gate_memory *memory, int events, gate_problem problem) {
    memory->state = GATE_IDLE;
    memory->problem = NO_PROBLEM;
    memory->late = 0;
    memory->limited_since = GATE_NEVER;
    stop_step(config, memory);
    return answer(memory, memory->reaction, events, problem);
}

static gate_output ready(const gate_config *config, gate_memory *memory, int events, gate_problem problem) {
    memory->state = GATE_READY;
    start_step(config, memory);
    return answer(memory, GATE_SOURCE_START, events, problem);
}

static gate_output react(const gate_config *config, gate_memory *memory, const gate_input *given, int events) {
    if (memory->reaction == GATE_SOURCE_FALLBACK && !fallback_can_act(config, memory, given)) {
        begin_stop(config, memory);
        events |= GATE_EVENT_FALLBACK_LOST;
    }
    if (memory->reaction == GATE_SOURCE_FALLBACK) {
        move(config, memory, given->fallback, config->rate_step);
    } else if (memory->reaction != GATE_SOURCE_HOLD) {
        stop_step(config, memory);
    } else {
        /* the last good command */
    }
    return answer(memory, memory->reaction, events, memory->problem);
}

static bool is_stop(int request) { return request == GATE_REQUEST_STOP || request == GATE_REQUEST_HALT; }

static gate_output latch(const gate_config *config, gate_memory *memory, const gate_input *given,
                         gate_problem problem, bool stop) {
    /* a controller must not take off */
    bool grounded = config->reaction == GATE_SOURCE_FALLBACK && memory->state != GATE_ACTIVE;
    if (memory->state != GATE_IDLE) { /* there it is stopped already, or silent */
        if (stop || grounded || config->reaction == GATE_SOURCE_STOP) {
            begin_stop(config, memory);
        } else {
            memory->reaction = config->reaction;
        }
    }
    memory->state = GATE_FAULT;
    memory->problem = problem;
    memory->late = 0;
    memory->limited_since = GATE_NEVER;
    return react(config, memory, given, GATE_EVENT_FAULTED);
}

static gate_output idle_step(const gate_config *config, gate_memory *memory, int request) {
    if (request == GATE_REQUEST_ACTIVATE) {
        return idle(config, memory, GATE_EVENT_REFUSED, problem_of(GATE_REASON_NOT_READY));
    }
    return idle(config, memory, GATE_EVENT_NONE, NO_PROBLEM);
}

static gate_output arm(const gate_config *config, gate_memory *memory, gate_problem problem) {
    if (problem.reason != GATE_REASON_NONE) {
        return idle(config, memory, GATE_EVENT_REFUSED, problem);
    }
    begin(config, memory);
    return ready(config, memory, GATE_EVENT_ARMED, NO_PROBLEM);
}

static gate_output active_step(const gate_config *config, gate_memory *memory, const gate_input *given, int events) {
    gate_problem problem = check_command(config, given);
    if (problem.reason != GATE_REASON_NONE) {
        return latch(config, memory, given, problem, false);
    }
    size_t cut = 0;
    while (cut < config->command_size &&
           towards(memory->at.command[cut], given->command[cut], config->rate_step[cut]) == given->command[cut]) {
        cut++;
    }
    if (cut == config->command_size) {
        memory->limited_since = GATE_NEVER;
    } else {
        int64_t since = memory->limited_since >= 0 ? memory->limited_since : memory->time;
        if (memory->time - since > config->timeout) {
            return latch(config, memory, given, command_problem(config, GATE_REASON_COMMAND_RATE, cut), false);
        }
        memory->limited_since = since;
        events |= GATE_EVENT_RATE_LIMITED;
    }
    move(config, memory, given->command, config->rate_step);
    return answer(memory, GATE_SOURCE_POLICY, events, NO_PROBLEM);
}

static gate_output ready_step(const gate_config *config, gate_memory *memory, const gate_input *given, int request) {
    if (request != GATE_REQUEST_ACTIVATE) {
        return ready(config, memory, GATE_EVENT_NONE, NO_PROBLEM);
    }
    bool there = arrived(config, memory);
    gate_problem problem = there ? check_command(config, given) : problem_of(GATE_REASON_NOT_READY);
    if (problem.reason != GATE_REASON_NONE) {
        return ready(config, memory, GATE_EVENT_REFUSED, problem);
    }
    memory->state = GATE_ACTIVE;
    return active_step(config, memory, given, GATE_EVENT_ACTIVATED);
}

static gate_output fault_step(const gate_config *config, gate_memory *memory, const gate_input *given, int request) {
    if (is_stop(request) || request == GATE_REQUEST_DISARM || request == GATE_REQUEST_RESET) {
        begin_stop(config, memory); /* the first reason stays */
    }
    if (request == GATE_REQUEST_RESET) {
        return idle(config, memory, GATE_EVENT_WAS_RESET, NO_PROBLEM);
    }
    bool refused = request == GATE_REQUEST_ARM || request == GATE_REQUEST_ACTIVATE;
    return react(config, memory, given, refused ? GATE_EVENT_REFUSED : GATE_EVENT_NONE);
}

static int most_urgent(uint8_t requests) {
    static const uint8_t urgency[] = {GATE_REQUEST_STOP,  GATE_REQUEST_HALT, GATE_REQUEST_DISARM,
                                      GATE_REQUEST_RESET, GATE_REQUEST_ARM,  GATE_REQUEST_ACTIVATE};
    for (size_t i = 0; i < sizeof urgency; i++) {
        if ((requests & urgency[i]) != 0) {
            return urgency[i];
        }
    }
    return GATE_REQUEST_NONE;
}

void gate_start(const gate_config *config, gate_memory *memory, const gate_arrays *arrays) {
    memory->at = *arrays;
    memory->time = GATE_NEVER;
    for (size_t i = 0; i < config->signal_count; i++) {
        const gate_watch *watch = &config->signals[i];
        memory->at.stamps[i] = GATE_NEVER;
        memory->at.changed[i] = GATE_NEVER;
        for (size_t k = watch->offset; k < (size_t)watch->offset + watch->size; k++) {
            memory->at.values[k] = 0.0f;
        }
    }
    for (size_t i = 0; i < config->command_size; i++) {
        send_at_once(memory, i, config->safe[i]);
    }
    memory->state = GATE_IDLE;
    memory->problem = NO_PROBLEM;
    memory->reaction = GATE_SOURCE_SILENT;
    memory->late = 0;
    memory->limited_since = GATE_NEVER;
}

gate_output gate_step(const gate_config *config, gate_memory *memory, const gate_input *given) {
    const int request = most_urgent(given->requests);
    const int64_t late = lateness(config, memory, given->time);
    const int64_t last = memory->time;
    remember(config, memory, given);
    memory->time = given->time;
    memory->late = late;
    if (memory->state == GATE_FAULT) {
        return fault_step(config, memory, given, request);
    }
    if (is_stop(request)) {
        bool asked = request == GATE_REQUEST_STOP;
        return latch(config, memory, given, problem_of(asked ? GATE_REASON_OPERATOR_STOP : GATE_REASON_HALTED), true);
    }
    if (memory->state == GATE_IDLE && request != GATE_REQUEST_ARM) {
        return idle_step(config, memory, request);
    }
    if (memory->state != GATE_IDLE && request == GATE_REQUEST_DISARM) {
        begin_stop(config, memory);
        return idle(config, memory, GATE_EVENT_DISARMED, NO_PROBLEM);
    }
    gate_problem problem = check(config, memory, given, last, late);
    if (memory->state == GATE_IDLE) {
        return arm(config, memory, problem);
    }
    if (problem.reason != GATE_REASON_NONE) {
        return latch(config, memory, given, problem, false);
    }
    if (memory->state == GATE_READY) {
        return ready_step(config, memory, given, request);
    }
    return active_step(config, memory, given, GATE_EVENT_NONE);
}
