// SPDX-License-Identifier: Apache-2.0
#include "control.hpp"

#include <algorithm>
#include <chrono>

#include <rosgraph_msgs/msg/clock.hpp>
#include <std_msgs/msg/empty.hpp>

#include "status_topics.hpp"

namespace robo_rl_controller
{
namespace
{

using Microseconds = std::chrono::microseconds;
using std::chrono::milliseconds;
constexpr std::int64_t SECOND = 1000000;                 // µs
constexpr std::int64_t SLOW_TIME = 5 * SECOND;           // the slowest of the gate's own moves
constexpr std::int64_t STANDSTILL = SECOND / 2;          // without a message, simulated time counts as standing still
constexpr std::int64_t GRACE = SECOND / 2, GRACE_AGAIN = SECOND / 20;
constexpr milliseconds ANSWER_TIME(1000), ANSWER_TIME_SIMULATED(10000);
constexpr std::uint8_t AWAKENING = GATE_REQUEST_ARM | GATE_REQUEST_ACTIVATE | GATE_REQUEST_RESET;
constexpr std::size_t WINDOW = 1000;                     // steps that figures are taken over

double quantile(std::vector<double> values, double part)
{
  if (values.empty()) {
    return 0.0;
  }
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

template<class Message, class Receive>
std::unique_ptr<Inlet> subscribe(Node & node, const std::string & topic, Receive receive)
{
  return std::make_unique<Subscription<Message, Receive>>(node, topic, newest(), std::move(receive));
}

std::vector<std::unique_ptr<Inlet>> own_inlets(Node & node, Clocks & clocks, SignalBuffer & buffer)
{
  std::vector<std::unique_ptr<Inlet>> made;
  made.push_back(
    subscribe<std_msgs::msg::Empty>(
      node, "~/heartbeat", [&](const std_msgs::msg::Empty &) {buffer.alive(clocks.now());}));
  if (clocks.simulated) {
    made.push_back(
      subscribe<rosgraph_msgs::msg::Clock>(
        node, "/clock", [&](const rosgraph_msgs::msg::Clock & message) {
          clocks.simulated_ns = message.clock.sec * std::int64_t{1000000000} + message.clock.nanosec;
        }));
  }
  return made;
}

std::vector<Inlet *> all_inlets(const std::vector<std::unique_ptr<Inlet>> & own, const SignalBuffer & buffer)
{
  std::vector<Inlet *> all;
  for (const auto & inlet : own) {  // the clock first: messages are stamped by it
    all.insert(all.begin(), inlet.get());
  }
  const std::vector<Inlet *> others = buffer.inlets();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace

Control::Control(
  Node & node, Session & session, SignalBuffer & buffer, Clocks & clocks,
  std::vector<std::unique_ptr<Outlet>> outlets, Bell & news)
: session_(session),
  buffer_(buffer),
  clocks_(clocks),
  outlets_(std::move(outlets)),
  decisions_(std::make_unique<DecisionTopic>(node, session.bundle().gate->command_size)),
  news_bell_(news),
  own_inlets_(own_inlets(node, clocks, buffer)),
  inlets_(all_inlets(own_inlets_, buffer)),
  bell_(node),
  set_(node, inlets_.size(), 0),
  ready_(inlets_.size()),
  schedule_(session.bundle().gate->period)
{
  times_.reserve(WINDOW);
  updates_.reserve(WINDOW);
  sendings_.reserve(WINDOW);
}

Control::~Control()
{
  stop();
}

void Control::start()
{
  running_ = true;
  thread_ = std::thread([this] {run();});
}

void Control::stop()
{
  running_ = false;
  bell_.ring();
  if (thread_.joinable()) {
    thread_.join();
  }
}

// --- the thread ---------------------------------------------------------------------------------------------------

void Control::run()
{
  heard_ = monotonic_us();
  while (running_) {
    try {
      turn();
    } catch (const std::exception & error) {  // the robot must not be left with its last command
      {
        const std::lock_guard<std::mutex> lock(told_);
        broken_ = broken_.empty() ? error.what() : broken_;
      }
      if (const float * command = session_.last_resort(); command != nullptr && enabled_) {
        send(command);
      }
      std::this_thread::sleep_for(Microseconds(session_.bundle().gate->period));
    }
  }
}

void Control::turn()
{
  std::int64_t now = clocks_.now();
  const auto due = [&] {return schedule_.due(buffer_.fresh() || clocks_.simulated);};
  take(clocks_.simulated ? (now < due() || are_awaited(now) ? SECOND / 50 : 0) : due() - now);
  now = clocks_.now();
  if (now < last_) {  // a clock that was set back: the gate must see it, before it is set forward again
    schedule_.restart();
    step(now);
    return;
  }
  const bool stands = clocks_.simulated && monotonic_us() - heard_ > STANDSTILL;
  const bool stopping = (requests_ & ~AWAKENING) != 0;
  if (now >= due() ? !are_awaited(now) : stands && stopping) {
    step(now);
  }
}

bool Control::are_awaited(std::int64_t now)
{
  if (!clocks_.simulated) {
    return false;
  }
  if (buffer_.fresh() && buffer_.is_past(now)) {
    grace_ = 0;
    in_step_ = true;
    return false;
  }
  const std::int64_t real = monotonic_us();
  grace_ = grace_ == 0 ? real + (in_step_ ? GRACE : GRACE_AGAIN) : grace_;
  if (real < grace_) {
    return true;
  }
  in_step_ = false;
  return false;
}

/// Wait for messages, and take them.
void Control::take(std::int64_t us)
{
  if (!set_.wait(inlets_, {}, bell_, 1000 * us, ready_)) {
    return;
  }
  heard_ = monotonic_us();
  for (std::size_t i = 0; i < inlets_.size(); i++) {
    if (ready_[i]) {
      try {
        inlets_[i]->take();
      } catch (const std::exception & error) {  // bytes that are no message: the signal grows old, and the gate acts
        trouble_ = error.what();
      }
    }
  }
}

void Control::step(std::int64_t now)
{
  schedule_.stepped(now);
  grace_ = 0;
  const std::int64_t begun = monotonic_us();
  std::uint8_t heard = requests_.exchange(0);
  Given given;
  given.now = now;
  given.samples = buffer_.samples(now);
  given.requests = static_cast<std::uint8_t>(
    (closed_ ? heard & ~AWAKENING : heard) | (halted_ ? GATE_REQUEST_HALT : 0));
  given.operator_stamp = buffer_.operator_stamp;
  given.intact = intact;
  const Decision & decision = session_.update(given);
  const std::int64_t decided = monotonic_us();
  if ((decision.events & GATE_EVENT_ARMED) != 0) {
    schedule_.begin(now);
  }
  if (decision.send != nullptr && enabled_) {
    const bool sent = send(decision.send);
    trouble_ = sent ? trouble_ : "a command could not be sent";
    halted_ = !sent && decision.state != GATE_FAULT;
  }
  last_ = now;
  settle(decision, heard);
  count(decision, decided - begun, monotonic_us() - begun);
  decisions_->send(decision, 1e-6 * static_cast<double>(decided - begun), clocks_.ros_ns());
}

bool Control::send(const float * command)
{
  bool sent = true;
  for (const auto & outlet : outlets_) {
    sent = outlet->send(command, clocks_.ros_ns()) && sent;
  }
  return sent;
}

/// Answer those who wait, and tell what has changed.
void Control::settle(const Decision & decision, std::uint8_t heard)
{
  const bool over = latest_ < INT64_MAX && (session_.at_rest() || monotonic_us() > latest_);
  const bool changed = !is_shown_ || decision.state != shown_.state || decision.source != shown_.source ||
    decision.mode != shown_.mode || decision.problem.reason != shown_.problem.reason ||
    decision.problem.channel != shown_.problem.channel || decision.problem.element != shown_.problem.element;
  enabled_ = enabled_ && !over;
  std::unique_lock<std::mutex> lock(told_);
  if (wanted_rung_) {
    rung_ = *wanted_rung_ ? session_.promote() : session_.demote();
    wanted_rung_.reset();
  }
  if (decision.state == GATE_IDLE || decision.state == GATE_FAULT) {
    obstacle_ = session_.obstacle();
  }
  const bool answers = (heard & unanswered_) != 0;
  left_ = left_ || over;
  if (changed || answers) {
    std::string complaints = decision.problem.reason == GATE_REASON_NONE ? "" : buffer_.complaints();
    if (decision.problem.reason == GATE_REASON_HALTED) {
      complaints = trouble_.empty() ? complaints : trouble_;
    }
    const News news{decision, complaints};
    if (answers) {
      answer_ = news;
      unanswered_ = 0;
    }
    if (changed) {
      changes_.push_back(news);
      shown_ = decision;
      is_shown_ = true;
    }
  }
  lock.unlock();
  answered_.notify_all();
  if (changed) {
    news_bell_.ring();
  }
}

void Control::count(const Decision & decision, std::int64_t decided, std::int64_t sent)
{
  const std::lock_guard<std::mutex> lock(told_);
  const std::int64_t period = session_.bundle().gate->period;
  const std::size_t at = static_cast<std::size_t>(totals_.steps) % WINDOW;
  const std::int64_t before = times_.empty() ? decision.time : times_[(at + WINDOW - 1) % WINDOW % times_.size()];
  totals_.missed += 2 * (decision.time - before) > 3 * period;
  totals_.limited += (decision.events & GATE_EVENT_RATE_LIMITED) != 0;
  totals_.steps++;
  if (times_.size() < WINDOW) {
    times_.push_back(decision.time);
    updates_.push_back(1e-6 * static_cast<double>(decided));
    sendings_.push_back(1e-6 * static_cast<double>(sent));
  } else {
    times_[at] = decision.time;
    updates_[at] = 1e-6 * static_cast<double>(decided);
    sendings_[at] = 1e-6 * static_cast<double>(sent);
  }
}

// --- from another thread ------------------------------------------------------------------------------------------

std::optional<News> Control::request(std::uint8_t request)
{
  std::unique_lock<std::mutex> lock(told_);
  answer_.reset();
  unanswered_ = request;
  requests_ |= request;
  const milliseconds patience = clocks_.simulated ? ANSWER_TIME_SIMULATED : ANSWER_TIME;
  answered_.wait_for(lock, patience, [this] {return answer_.has_value();});
  unanswered_ = 0;
  if (!answer_) {
    requests_ &= static_cast<std::uint8_t>(~(request & AWAKENING));
  }
  return answer_;
}

std::string Control::lacking()
{
  const std::string complaints = buffer_.complaints(), more = complaints.empty() ? "" : "; " + complaints;
  if (const std::string absent = buffer_.absent(); !absent.empty()) {
    return absent + more;
  }
  std::unique_lock<std::mutex> lock(told_);
  const std::optional<gate_problem> obstacle = obstacle_;
  lock.unlock();
  if (!obstacle) {
    return std::string("the control loop has not begun to step") + (clocks_.simulated ? "; does /clock come?" : "");
  }
  return is_awaited(*obstacle) ? explained(session_, *obstacle) + more : "";
}

Answer Control::ladder(bool up)
{
  std::unique_lock<std::mutex> lock(told_);
  rung_.reset();
  wanted_rung_ = up;
  const milliseconds patience = clocks_.simulated ? ANSWER_TIME_SIMULATED : ANSWER_TIME;
  answered_.wait_for(lock, patience, [this] {return rung_.has_value();});
  wanted_rung_.reset();
  return rung_.value_or(Answer{false, "the control loop did not answer in time"});
}

void Control::enable()
{
  const std::lock_guard<std::mutex> lock(told_);
  latest_ = INT64_MAX;
  left_ = false;
  enabled_ = true;
}

void Control::retire()
{
  if (enabled_) {
    latest_ = monotonic_us() + SLOW_TIME;
    request(GATE_REQUEST_DISARM);
  }
}

void Control::leave(const std::atomic<int> & hurry)
{
  closed_ = true;
  if (!enabled_ || !running_) {
    return;
  }
  latest_ = monotonic_us() + SLOW_TIME;
  requests_ |= GATE_REQUEST_DISARM;
  const auto end = std::chrono::steady_clock::now() + Microseconds(SLOW_TIME + SECOND);
  std::unique_lock<std::mutex> lock(told_);
  while (!left_ && hurry < 2 && std::chrono::steady_clock::now() < end) {
    answered_.wait_for(lock, milliseconds(20));
  }
  lock.unlock();
  stop();
  if (const float * command = session_.last_resort(); command != nullptr && !session_.at_rest()) {
    send(command);
  }
  enabled_ = false;
}

std::deque<News> Control::news()
{
  const std::lock_guard<std::mutex> lock(told_);
  return std::exchange(changes_, {});
}

std::string Control::broken()
{
  const std::lock_guard<std::mutex> lock(told_);
  return broken_;
}

Figures Control::figures()
{
  std::unique_lock<std::mutex> lock(told_);
  Figures found = totals_;
  std::vector<std::int64_t> times = times_;
  const std::vector<double> updates = updates_, sendings = sendings_;
  lock.unlock();
  std::sort(times.begin(), times.end());
  for (std::size_t i = 1; i < times.size(); i++) {
    found.longest = std::max(found.longest, 1e-6 * static_cast<double>(times[i] - times[i - 1]));
  }
  if (times.size() > 1 && times.back() > times.front()) {
    found.rate = 1e6 * static_cast<double>(times.size() - 1) / static_cast<double>(times.back() - times.front());
  }
  found.update_p50 = quantile(updates, 0.5);
  found.update_p99 = quantile(updates, 0.99);
  found.sent_p99 = quantile(sendings, 0.99);
  return found;
}

}  // namespace robo_rl_controller
