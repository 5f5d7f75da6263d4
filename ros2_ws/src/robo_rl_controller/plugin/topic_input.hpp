// SPDX-License-Identifier: Apache-2.0
// A signal that comes by a topic: written by a callback, read by the control loop without waiting.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rclcpp_lifecycle/lifecycle_node.hpp>
#include <realtime_tools/realtime_buffer.hpp>

#include "../node/reading.hpp"
#include "robo_rl_controller/sample.hpp"

namespace robo_rl_controller
{

class TopicInput : public std::enable_shared_from_this<TopicInput>
{
public:
  struct Reading
  {
    std::vector<float> values;
    std::int64_t stamp = GATE_NEVER;
  };
  /// µs of the control loop's clock
  using Clock = std::function<std::int64_t ()>;

  /// `watch`: of the signal, by the gate.
  TopicInput(
    const Channel & channel, const gate_watch & watch, const Wire & wire, std::shared_ptr<Frames> frames, Clock clock);

  /// Listen. `heard` is called with the time of each message that is used; RosError for a type that is not read.
  void subscribe(rclcpp_lifecycle::LifecycleNode & node, std::function<void (std::int64_t)> heard);

  /// For the control loop.
  const Reading & newest() {return *buffer_.readFromRT();}

private:
  template<class Message>
  void listen(rclcpp_lifecycle::LifecycleNode & node, std::function<void (std::int64_t)> heard);

  /// Note the frame of a message that is used: that of the robot's own position is that of all others in the world.
  void note_frame(const std::string & frame_id);

  Channel channel_;
  Wire wire_;
  bool sensor_, noisy_;
  /// Of the newest message.
  std::string frame_id_;
  std::optional<std::array<double, 3>> before_;
  std::shared_ptr<Frames> frames_;
  Clock clock_;
  realtime_tools::RealtimeBuffer<Reading> buffer_;
  rclcpp::SubscriptionBase::SharedPtr subscription_;
};

}  // namespace robo_rl_controller
