// SPDX-License-Identifier: Apache-2.0
// A controller of ros2_control that runs a compiled bundle behind its gate.
//
// Joints and sensors come and go by state and command interfaces, an operator's set-points by topics; which ones, the
// same wires tell as for the node (see wire.hpp). The controller manager must update it at the contract's rate. It is
// armed when it is activated; ~/engage lets the policy take over. One source for Humble, Jazzy and Kilted.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <controller_interface/controller_interface.hpp>
#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/empty.hpp>
#include <std_srvs/srv/trigger.hpp>

#include "../node/frames.hpp"
#include "../node/wire.hpp"
#include "gate_topics.hpp"
#include "interfaces.hpp"
#include "robo_rl_controller/session.hpp"

namespace robo_rl_controller
{

class PolicyController : public controller_interface::ControllerInterface
{
public:
  PolicyController();
  ~PolicyController() override;

  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & before) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State & before) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State & before) override;
  controller_interface::CallbackReturn on_cleanup(const rclcpp_lifecycle::State & before) override;
  controller_interface::return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  using Trigger = std_srvs::srv::Trigger;
  struct Input;

  void configure();
  void wire_signals();
  void wire_commands();
  void offer_services();
  template<class Act>
  void offer(const std::string & name, Act act);
  std::int64_t now_us() const;
  void read(std::int64_t now);
  void write(const float * command, gate_source source);
  bool is_over(const Decision & decision);
  std::uint8_t arming(std::int64_t now);
  void settle(const Decision & decision, std::uint8_t heard);
  void request(std::uint8_t what, gate_state wanted, Trigger::Response & response);
  void ladder(bool up, Trigger::Response & response);
  void tell();

  std::unique_ptr<Bundle> bundle_;
  std::unique_ptr<Session> session_;
  /// Of all inputs since the last configuration.
  std::shared_ptr<Frames> frames_;
  std::vector<Input> inputs_;
  std::vector<Sample> samples_;
  std::vector<std::string> state_names_;
  CommandInterfaces commands_;
  double cmd_vel_timeout_ = 0.5, activate_timeout_ = 10.0;
  bool fault_is_error_ = false, simulated_ = false;
  std::int64_t faulted_ = GATE_NEVER;
  /// µs until when an activation waits for topics that have not been heard; GATE_NEVER: none does
  std::int64_t arms_until_ = GATE_NEVER;
  std::atomic<std::int64_t> operator_stamp_{GATE_NEVER};

  /// Held by services and timers, which use the session: a clean-up waits for them, the control loop never does.
  std::mutex configured_;

  // From services to the control loop, and back: the loop never waits for this mutex.
  std::atomic<std::uint8_t> requests_{0};
  std::atomic<int> rung_wanted_{0};
  std::mutex told_;
  std::uint8_t heard_ = 0;
  std::optional<Decision> answer_, change_;
  std::optional<Answer> rung_;
  Decision shown_;
  bool is_shown_ = false;

  std::unique_ptr<GateTopics> topics_;
  rclcpp::Subscription<std_msgs::msg::Empty>::SharedPtr heartbeat_;
  std::vector<rclcpp::Service<Trigger>::SharedPtr> services_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace robo_rl_controller
