// SPDX-License-Identifier: Apache-2.0
// Steps sessions of the C++ core on what stdin tells, and writes what they answer to stdout: see replay.py beside it.
// Counts what is allocated and locked within a step.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "robo_rl_controller/session.hpp"

using namespace robo_rl_controller;

static thread_local bool within_step = false;
static long allocations = 0;
static long locks = 0;

#ifndef SANITIZED
extern "C" {
void * __libc_malloc(std::size_t);
void * __libc_calloc(std::size_t, std::size_t);
void * __libc_realloc(void *, std::size_t);
void * malloc(std::size_t size)
{
  allocations += within_step;
  return __libc_malloc(size);
}
void * calloc(std::size_t count, std::size_t size)
{
  allocations += within_step;
  return __libc_calloc(count, size);
}
void * realloc(void * old, std::size_t size)
{
  allocations += within_step;
  return __libc_realloc(old, size);
}
int pthread_mutex_lock(pthread_mutex_t * mutex)
{
  using Lock = int (*)(pthread_mutex_t *);
  static const Lock real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  locks += within_step;
  return real(mutex);
}
}
#endif

#pragma pack(push, 1)
struct Head
{
  std::int64_t now, operator_stamp, command_stamp;
  std::uint8_t requests, intact, controller, landing, command, restart, change;
};
struct Tail
{
  std::uint8_t state, source, reason, events, mode, sent, proposed, refused, doubted, changed, rests;
  std::int16_t channel, element;
  std::uint8_t obstacle;
  std::int16_t obstacle_channel, obstacle_element;
  double authority;
  char problem[256], doubt[256], change[256];
};
#pragma pack(pop)

enum { FROM_POLICY = 2 };

static void read_all(void * to, std::size_t size)
{
  if (std::fread(to, 1, size, stdin) != size) {
    std::exit(3);
  }
}

static std::vector<float> read_floats(std::size_t count)
{
  std::vector<float> values(count);
  read_all(values.data(), 4 * count);
  return values;
}

static void write_floats(const float * values, std::size_t count)
{
  const std::vector<float> nothing(count);
  std::fwrite(values == nullptr ? nothing.data() : values, 4, count, stdout);
}

static Answer change(Session & session, int what)
{
  return what == 0 ? Answer{false, ""} : what == 1 ? session.promote() : session.demote();
}

int main(int count, char ** words)
{
  if (count < 4) {
    return 2;
  }
  try {
    const Bundle bundle(words[1], words[2]);
    const bool controller = std::strcmp(words[3], "controller") == 0;
    const std::size_t size = bundle.data().gate->command_size;
    std::unique_ptr<Session> session;
    for (int byte; (byte = std::getchar()) != EOF; ) {
      std::ungetc(byte, stdin);
      Head head;
      read_all(&head, sizeof head);
      if (head.restart != 255 && session == nullptr) {
        session = std::make_unique<Session>(bundle, static_cast<Mode>(head.restart), controller);
      } else if (head.restart != 255) {  // no different from a new one
        session->restart(static_cast<Mode>(head.restart));
      }
      std::vector<Sample> samples(bundle.data().gate->signal_count);
      std::vector<std::vector<float>> values;
      for (std::size_t i = 0; i < samples.size(); i++) {
        std::uint8_t present;
        read_all(&present, 1);
        read_all(&samples[i].stamp, 8);
        values.push_back(read_floats(bundle.data().signals[i].size));
        samples[i].values = present ? values.back().data() : nullptr;
      }
      const std::vector<float> other = read_floats(size), landing = read_floats(size), command = read_floats(size);
      const Given given{
        head.now, samples.data(), head.requests, head.operator_stamp, head.intact != 0,
        head.controller ? other.data() : nullptr, head.landing ? landing.data() : nullptr};
      within_step = true;
      const Answer changed = change(*session, head.change);
      const Decision found = head.command == FROM_POLICY ?
        session->update(given) :
        session->decide(given, head.command ? command.data() : nullptr, head.command_stamp);
      const bool rests = session->at_rest();
      const float * last_resort = session->last_resort();
      const gate_problem obstacle = session->obstacle();
      within_step = false;
      Tail tail{};
      tail.state = static_cast<std::uint8_t>(found.state);
      tail.source = static_cast<std::uint8_t>(found.source);
      tail.reason = found.problem.reason;
      tail.channel = found.problem.channel;
      tail.element = found.problem.element;
      tail.obstacle = obstacle.reason;
      tail.obstacle_channel = obstacle.channel;
      tail.obstacle_element = obstacle.element;
      tail.events = found.events;
      tail.mode = static_cast<std::uint8_t>(found.mode);
      tail.sent = found.send != nullptr;
      tail.proposed = found.policy != nullptr;
      tail.refused = static_cast<std::uint8_t>(found.refusal.kind);
      tail.doubted = static_cast<std::uint8_t>(found.doubt.kind);
      tail.authority = found.authority;
      tail.changed = changed.done;
      tail.rests = rests;
      std::snprintf(tail.problem, sizeof tail.problem, "%s", session->explain(found.problem).c_str());
      std::snprintf(tail.doubt, sizeof tail.doubt, "%s", session->explain(found.doubt).c_str());
      std::snprintf(tail.change, sizeof tail.change, "%s", changed.sentence);
      std::fwrite(&tail, sizeof tail, 1, stdout);
      write_floats(found.send, size);
      write_floats(found.command, size);
      write_floats(found.policy, size);
      write_floats(last_resort, size);
    }
  } catch (const std::exception & error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "allocations %ld locks %ld\n", allocations, locks);
  return 0;
}
