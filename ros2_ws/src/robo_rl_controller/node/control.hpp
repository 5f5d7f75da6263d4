// SPDX-License-Identifier: Apache-2.0
// The control thread: takes messages, waits for its time, makes a step of the session, sends the command.
//
// It waits for messages and for its time in one call, so that a command leaves as soon as the signals of its step have
// come. Nothing else is done in it: services, logs and status are the main thread's. The rules of time, and of the way
// out, are those of ros/control.py and deploy/robot/supervisor.py.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gate_text.hpp"
#include "rcl_entities.hpp"
#include "robo_rl_controller/session.hpp"
#include "signal_buffer.hpp"
#include "step_schedule.hpp"
#include "writing.hpp"

namespace robo_rl_controller
{

/// Figures of the last second, in s.
struct Figures
{
  long steps = 0, missed = 0, limited = 0;
  double rate = 0.0, longest = 0.0;
  /// Of the step itself, and from its beginning until the command has left.
  double update_p50 = 0.0, update_p99 = 0.0, sent_p99 = 0.0;
};

class DecisionTopic;

class Control
{
public:
  /// `heartbeat` is the topic by which the operator tells to be there. `news` is rung when the gate has changed.
  Control(
    Node & node, Session & session, SignalBuffer & buffer, Clocks & clocks,
    std::vector<std::unique_ptr<Outlet>> outlets, Bell & news);
  ~Control();

  void start();
  /// End the thread.
  void stop();

  /// Ask the gate (enum gate_request); the decision of the step that heard it, nothing if none came in time. A request
  /// that was not heard is withdrawn, unless it makes the robot safer.
  std::optional<News> request(std::uint8_t request);
  /// What of signals, operator and clock is not there yet, so that arming has to wait; "" if nothing.
  std::string lacking();
  /// Up or down on the ladder, in the thread that steps.
  Answer ladder(bool up);

  /// Commands may leave.
  void enable();
  /// Disarm; commands leave until the stop has come to its end, or for as long as the slowest move takes.
  void retire();
  /// The same for good, and wait for it; `hurry` ends the waiting.
  void leave(const std::atomic<int> & hurry);

  bool enabled() const {return enabled_;}
  /// Whether the file of the bundle is still the one that was verified.
  std::atomic<bool> intact{true};

  /// What the gate has decided since the last call, where that has changed.
  std::deque<News> news();
  Figures figures();
  /// The error that ended the thread's work; "" while it works.
  std::string broken();

private:
  void run();
  void turn();
  void take(std::int64_t ns);
  void step(std::int64_t now);
  void settle(const Decision & decision, std::uint8_t heard);
  void count(const Decision & decision, std::int64_t decided, std::int64_t sent);
  bool send(const float * command);
  /// Simulated time: whether the signals of this step may still be on their way.
  bool are_awaited(std::int64_t now);

  Session & session_;
  SignalBuffer & buffer_;
  Clocks & clocks_;
  std::vector<std::unique_ptr<Outlet>> outlets_;
  std::unique_ptr<DecisionTopic> decisions_;
  Bell & news_bell_;
  std::vector<std::unique_ptr<Inlet>> own_inlets_;
  std::vector<Inlet *> inlets_;
  Bell bell_;
  WaitSet set_;
  std::vector<bool> ready_;
  StepSchedule schedule_;
  std::thread thread_;

  std::atomic<bool> running_{false}, enabled_{false}, closed_{false};
  std::atomic<std::uint8_t> requests_{0};
  /// µs of the monotonic clock at which a stop on the way out has had its time
  std::atomic<std::int64_t> latest_{INT64_MAX};
  std::int64_t last_ = -1, heard_ = 0, grace_ = 0;
  bool in_step_ = true, halted_ = false;
  std::string trouble_;

  std::mutex told_;
  std::condition_variable answered_;
  std::uint8_t unanswered_ = 0;
  std::optional<News> answer_;
  std::optional<bool> wanted_rung_;
  std::optional<Answer> rung_;
  bool left_ = false;
  std::deque<News> changes_;
  std::string broken_;
  /// Why the gate would not arm; nothing before the first step.
  std::optional<gate_problem> obstacle_;
  std::vector<std::int64_t> times_;
  std::vector<double> updates_, sendings_;
  Figures totals_;
  Decision shown_;
  bool is_shown_ = false;
};

}  // namespace robo_rl_controller
