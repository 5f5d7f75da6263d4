// SPDX-License-Identifier: Apache-2.0
// A controller of Nav2's controller server that follows paths by a compiled bundle behind its gate.
//
// The policy's own signals come by topics, as `wires` tell; the points of the path ahead and the speed limit it is given
// here. The costmap is not looked at: the policy sees obstacles by its scan. A goal arms and engages; its end, however it
// comes, disarms. What the gate has stopped stays so until ~/NAME/reset. For Jazzy and Kilted.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <geometry_msgs/msg/pose_stamped.hpp>
#include <geometry_msgs/msg/twist_stamped.hpp>
#include <nav2_core/controller.hpp>
#include <nav_msgs/msg/path.hpp>
#include <rclcpp_lifecycle/lifecycle_node.hpp>
#include <std_srvs/srv/trigger.hpp>

#include "../node/frames.hpp"
#include "../plugin/gate_topics.hpp"
#include "../plugin/topic_input.hpp"
#include "followed_path.hpp"
#include "robo_rl_controller/session.hpp"

namespace robo_rl_controller
{

class PathController : public nav2_core::Controller
{
public:
  void configure(
    const rclcpp_lifecycle::LifecycleNode::WeakPtr & parent, std::string name, std::shared_ptr<tf2_ros::Buffer> tf,
    std::shared_ptr<nav2_costmap_2d::Costmap2DROS> costmap) override;
  void cleanup() override;
  void activate() override {}
  void deactivate() override {reset();}
  void setPlan(const nav_msgs::msg::Path & path) override;
  geometry_msgs::msg::TwistStamped computeVelocityCommands(
    const geometry_msgs::msg::PoseStamped & pose, const geometry_msgs::msg::Twist & velocity,
    nav2_core::GoalChecker * goal_checker) override;
  /// The speed limit 0 brings the robot to rest; true once it is, or has had its time.
  bool cancel() override;
  void setSpeedLimit(const double & speed_limit, const bool & percentage) override;
  /// The goal has ended: disarm.
  void reset() override;

private:
  using Trigger = std_srvs::srv::Trigger;

  /// Where one signal comes from: a topic, or, with `own`, values that are made here.
  struct Input
  {
    std::shared_ptr<TopicInput> topic;
    std::vector<float> own;
  };

  void wire_signals(rclcpp_lifecycle::LifecycleNode & node);
  void wire_commands();
  void offer(rclcpp_lifecycle::LifecycleNode & node, const std::string & service, std::uint8_t request);
  std::int64_t now_us() const;
  Given given(std::uint8_t requests);
  Pose pose_in_plan(const geometry_msgs::msg::PoseStamped & pose) const;
  void tell(const Decision & decision);
  std::string why(const Decision & decision) const;

  rclcpp_lifecycle::LifecycleNode::WeakPtr parent_;
  std::string name_;
  std::shared_ptr<tf2_ros::Buffer> tf_;
  bool simulated_ = false;
  double patience_ = 5.0;

  /// Of the server's action and of the node's executor, which are two threads.
  std::mutex mutex_;
  std::unique_ptr<Bundle> bundle_;
  std::unique_ptr<Session> session_;
  /// Of all inputs since the last configuration.
  std::shared_ptr<Frames> frames_;
  std::vector<Input> inputs_;
  std::vector<Sample> samples_;
  std::size_t points_ = 0, limit_ = 0;
  /// For each number of the command, where it goes.
  std::vector<double geometry_msgs::msg::Vector3::*> fields_;
  std::vector<bool> turns_;
  double top_ = 0.0, speed_ = 0.0;

  std::vector<Point> plan_;
  std::string plan_frame_;
  std::optional<FollowedPath> path_;
  /// µs at which the goal, and its cancellation, came
  std::int64_t begun_ = GATE_NEVER, cancelled_ = GATE_NEVER;
  double moving_ = 0.0;
  std::string told_;

  std::unique_ptr<GateTopics> topics_;
  std::vector<rclcpp::Service<Trigger>::SharedPtr> services_;
};

}  // namespace robo_rl_controller
