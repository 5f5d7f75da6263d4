// SPDX-License-Identifier: Apache-2.0
// What the controller offers an operator, by other threads than the control loop's.
#include <chrono>
#include <thread>
#include <utility>

#include "policy_controller.hpp"

namespace robo_rl_controller
{
namespace
{

constexpr auto ANSWER_TIME = std::chrono::seconds(1);

/// What `take` finds under the mutex, within the time that an answer may take.
template<class Found, class Take>
std::optional<Found> await(std::mutex & mutex, Take take)
{
  const auto end = std::chrono::steady_clock::now() + ANSWER_TIME;
  while (std::chrono::steady_clock::now() < end) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (std::optional<Found> found = take(); found) {
        return found;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

}  // namespace

template<class Act>
void PolicyController::offer(const std::string & name, Act act)
{
  services_.push_back(
    get_node()->create_service<Trigger>(
      "~/" + name, [this, act](const Trigger::Request::SharedPtr, Trigger::Response::SharedPtr response) {
        const std::lock_guard<std::mutex> lock(configured_);
        if (session_ != nullptr) {
          act(*response);
        }
      }));
}

void PolicyController::offer_services()
{
  services_.clear();
  offer("arm", [this](auto & response) {request(GATE_REQUEST_ARM, GATE_READY, response);});
  offer("engage", [this](auto & response) {request(GATE_REQUEST_ACTIVATE, GATE_ACTIVE, response);});
  offer("disarm", [this](auto & response) {request(GATE_REQUEST_DISARM, GATE_IDLE, response);});
  offer("stop", [this](auto & response) {request(GATE_REQUEST_STOP, GATE_FAULT, response);});
  offer("reset", [this](auto & response) {request(GATE_REQUEST_RESET, GATE_IDLE, response);});
  offer("promote", [this](auto & response) {ladder(true, response);});
  offer("demote", [this](auto & response) {ladder(false, response);});
}

void PolicyController::request(std::uint8_t what, gate_state wanted, Trigger::Response & response)
{
  {
    const std::lock_guard<std::mutex> lock(told_);
    answer_.reset();
  }
  requests_ |= what;
  const auto decision = await<Decision>(told_, [this] {return std::exchange(answer_, std::nullopt);});
  if (!decision) {
    requests_ &= static_cast<std::uint8_t>(~(GATE_REQUEST_ARM | GATE_REQUEST_ACTIVATE | GATE_REQUEST_RESET));
    response.success = false;
    response.message = "no update came in time; is the controller active?";
    return;
  }
  const std::string state = name_of(decision->state);
  response.success = decision->state == wanted && (decision->events & GATE_EVENT_REFUSED) == 0;
  response.message = response.success ? "the gate is " + state :
    "refused, the gate is " + state + ": " + sentence(*session_, {*decision, ""});
}

void PolicyController::ladder(bool up, Trigger::Response & response)
{
  rung_wanted_ = up ? 1 : -1;
  const auto answer = await<Answer>(told_, [this] {return std::exchange(rung_, std::nullopt);});
  rung_wanted_ = 0;
  response.success = answer && answer->done;
  response.message = answer ? answer->sentence : "no update came in time; is the controller active?";
}

void PolicyController::tell()
{
  const std::lock_guard<std::mutex> configured(configured_);
  if (session_ == nullptr) {
    return;
  }
  std::optional<Decision> change;
  {
    const std::lock_guard<std::mutex> lock(told_);
    change = std::exchange(change_, std::nullopt);
  }
  if (!change) {
    return;
  }
  const News news{*change, ""};
  const std::string text = sentence(*session_, news);
  topics_->gate(news, text, get_node()->now());
  if (text.empty()) {
    RCLCPP_INFO(get_node()->get_logger(), "%s, mode %s", name_of(change->state), name_of(change->mode));
  } else {
    RCLCPP_ERROR(get_node()->get_logger(), "%s: %s", name_of(change->state), text.c_str());
  }
}

}  // namespace robo_rl_controller
