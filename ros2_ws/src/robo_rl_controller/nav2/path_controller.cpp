// SPDX-License-Identifier: Apache-2.0
#include "path_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <nav2_core/controller_exceptions.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <tf2/exceptions.h>
#include <tf2_ros/buffer.h>

#include "../node/errors.hpp"
#include "../node/gate_text.hpp"
#include "../plugin/interfaces.hpp"

namespace robo_rl_controller
{
namespace
{

using Strings = std::vector<std::string>;
constexpr double RATE_TOLERANCE = 0.01;
constexpr double AT_REST = 0.02;              // m/s
constexpr std::int64_t STOPPING = 3000000;    // µs that a cancelled goal may take to come to rest
const char * const POINTS = "path_points", * const LIMIT = "speed_limit";

template<class Value>
Value declared(rclcpp_lifecycle::LifecycleNode & node, const std::string & name, const Value & usual)
{
  return node.has_parameter(name) ? node.get_parameter(name).get_value<Value>() :
         node.declare_parameter<Value>(name, usual);
}

double heading(const geometry_msgs::msg::Quaternion & q)
{
  return std::atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z));
}

}  // namespace

void PathController::configure(
  const rclcpp_lifecycle::LifecycleNode::WeakPtr & parent, std::string name, std::shared_ptr<tf2_ros::Buffer> tf,
  std::shared_ptr<nav2_costmap_2d::Costmap2DROS>)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  parent_ = parent;
  name_ = name;
  tf_ = tf;
  const auto node = parent.lock();
  try {
    if (node == nullptr) {
      throw RosError("its node has ended");
    }
    const auto path = declared<std::string>(*node, name + ".bundle", "");
    if (path.empty()) {
      throw RosError("parameter '" + name + ".bundle' is empty; expected the path of a library of 'robo-rl export FILE "
              "--native'");
    }
    bundle_ = std::make_unique<Bundle>(path, declared<std::string>(*node, name + ".digest", ""));
    session_ = std::make_unique<Session>(*bundle_, mode_of(declared<std::string>(*node, name + ".mode", "dry_run")));
    simulated_ = node->get_parameter("use_sim_time").as_bool();
    patience_ = declared(*node, name + ".patience", 5.0);
    speed_ = declared(*node, name + ".speed", 0.0);
    const double wanted = 1.0 / bundle_->data().control_period;
    const double rate = declared(*node, "controller_frequency", 20.0);
    if (!(std::fabs(rate - wanted) <= RATE_TOLERANCE * wanted)) {
      throw RosError("controller_frequency is " + std::to_string(rate) + " Hz; the contract's rate is " +
              std::to_string(wanted) + " Hz");
    }
    checked_seconds(name + ".patience", patience_);
    if (!(speed_ >= 0.0 && std::isfinite(speed_))) {
      throw RosError("parameter '" + name + ".speed' is " + std::to_string(speed_) + " m/s; expected a number from 0");
    }
    wire_commands();
    wire_signals(*node);
  } catch (const std::exception & error) {
    throw nav2_core::InvalidController(name + ": " + error.what());
  }
  topics_ = std::make_unique<GateTopics>(*node, "~/" + name + "/", node->get_parameter(name + ".bundle").as_string());
  topics_->contract(bundle_->data(), node->get_parameter(name + ".wires").as_string_array());
  services_.clear();
  offer(*node, "stop", GATE_REQUEST_STOP);
  offer(*node, "reset", GATE_REQUEST_RESET);
}

void PathController::wire_commands()
{
  const robot_bundle & data = bundle_->data();
  using Vector = geometry_msgs::msg::Vector3;
  fields_.clear();
  turns_.clear();
  for (std::size_t i = 0; i < data.gate->command_count; i++) {
    for (const std::string & element : Channel(data.commands[i]).elements) {
      if (element != "vx" && element != "vy" && element != "wz") {
        throw RosError("its command has the element '" + element + "'; expected vx, vy and wz, for a velocity");
      }
      fields_.push_back(element == "vx" ? &Vector::x : element == "vy" ? &Vector::y : &Vector::z);
      turns_.push_back(element == "wz");
    }
  }
  top_ = data.gate->command_upper[0];
}

void PathController::wire_signals(rclcpp_lifecycle::LifecycleNode & node)
{
  const robot_bundle & data = bundle_->data();
  const auto texts = texts_by_name(declared<Strings>(node, name_ + ".wires", {""}), "parameter '" + name_ + ".wires'");
  require_known(texts, data.signals, data.gate->signal_count, "parameter '" + name_ + ".wires'");
  const std::size_t count = data.gate->signal_count;
  inputs_.assign(count, {});
  frames_ = std::make_shared<Frames>();
  samples_.assign(count, {});
  points_ = limit_ = count;
  for (std::size_t i = 0; i < count; i++) {
    const Channel channel(data.signals[i]);
    const bool is_points = channel.name == POINTS, is_limit = channel.name == LIMIT;
    points_ = is_points ? i : points_;
    limit_ = is_limit ? i : limit_;
    if (is_points || is_limit) {
      inputs_[i].own.assign(channel.size, 0.0f);
    } else if (!data.signals[i].computed) {
      const auto text = texts.find(channel.name);
      if (text == texts.end()) {
        throw RosError("parameter '" + name_ + ".wires' has no entry for the signal '" + channel.name + "'");
      }
      inputs_[i].topic = std::make_shared<TopicInput>(
        channel, data.gate->signals[i], Wire(channel.name, text->second), frames_, [this] {return now_us();});
      inputs_[i].topic->subscribe(node, [](std::int64_t) {});
    }
  }
  if (points_ == count || limit_ == count || inputs_[points_].own.size() != 2 * FollowedPath::AHEAD ||
    inputs_[limit_].own.size() != 1 || !(data.radius > 0.0))
  {
    throw RosError(std::string("the policy of task '") + data.task + "' follows no path; expected one with the signals "
            "path_points (8 points) and speed_limit, of a robot whose radius is known");
  }
}

/// A request of an operator, which the gate hears at once, whether there is a goal or not.
void PathController::offer(rclcpp_lifecycle::LifecycleNode & node, const std::string & service, std::uint8_t request)
{
  services_.push_back(
    node.create_service<Trigger>(
      "~/" + name_ + "/" + service,
      [this, request](const Trigger::Request::SharedPtr, Trigger::Response::SharedPtr response) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (session_ == nullptr) {
          response->message = "the controller is not configured";
          return;
        }
        const Decision & decision = session_->decide(given(request), nullptr, now_us());
        response->success = (decision.events & GATE_EVENT_REFUSED) == 0;
        response->message = std::string("the gate is ") + name_of(decision.state);
        tell(decision);
      }));
}

void PathController::cleanup()
{
  const std::lock_guard<std::mutex> lock(mutex_);
  services_.clear();
  inputs_.clear();
  path_.reset();
  session_.reset();
  bundle_.reset();
  topics_.reset();
  told_.clear();
}

// --- a goal ---------------------------------------------------------------------------------------------------------

void PathController::setPlan(const nav_msgs::msg::Path & path)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Point> points;
  for (const auto & pose : path.poses) {
    const std::string & frame = pose.header.frame_id;
    if (!frame.empty() && frame != path.header.frame_id) {
      throw nav2_core::InvalidPath("the path is in the frame '" + path.header.frame_id + "', a point of it in '" +
              frame + "'; expected one frame");
    }
    points.push_back({pose.pose.position.x, pose.pose.position.y});
  }
  if (path.header.frame_id.empty()) {
    throw nav2_core::InvalidPath("the path names no frame");
  }
  try {
    check_path(points);
  } catch (const PathError & error) {
    throw nav2_core::InvalidPath(error.what());
  }
  const auto same = [](const Point & a, const Point & b) {return a.x == b.x && a.y == b.y;};
  const bool known = path_ && path.header.frame_id == plan_frame_ &&
    std::equal(points.begin(), points.end(), plan_.begin(), plan_.end(), same);
  if (!known) {
    path_.reset();
  }
  plan_ = points;
  plan_frame_ = path.header.frame_id;
  cancelled_ = GATE_NEVER;
  begun_ = begun_ == GATE_NEVER ? now_us() : begun_;
}

geometry_msgs::msg::TwistStamped PathController::computeVelocityCommands(
  const geometry_msgs::msg::PoseStamped & pose, const geometry_msgs::msg::Twist & velocity, nav2_core::GoalChecker *)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (session_ == nullptr) {
    throw nav2_core::InvalidController(name_ + " is not configured");
  }
  const Pose here = pose_in_plan(pose);
  try {
    if (!path_) {
      path_.emplace(plan_, here, bundle_->data().radius);
    }
  } catch (const PathError & error) {
    throw nav2_core::InvalidPath(error.what());
  }
  moving_ = std::hypot(velocity.linear.x, velocity.linear.y);
  inputs_[points_].own = path_->update(here).ahead;
  const double wanted = speed_ > 0.0 ? std::min(speed_, top_) : top_;
  inputs_[limit_].own[0] = cancelled_ == GATE_NEVER ? static_cast<float>(wanted) : 0.0f;
  const gate_state before = session_->state();
  const Decision & decision = session_->update(
    given(before == GATE_IDLE ? GATE_REQUEST_ARM : before == GATE_READY ? GATE_REQUEST_ACTIVATE : GATE_REQUEST_NONE));
  tell(decision);
  if (decision.state == GATE_FAULT) {
    throw nav2_core::NoValidControl(why(decision));
  }
  if (decision.state == GATE_ACTIVE) {
    begun_ = decision.time;
  } else if (1e-6 * static_cast<double>(decision.time - begun_) > patience_) {
    throw nav2_core::PatienceExceeded("the policy was not engaged in time: " + why(decision));
  }
  geometry_msgs::msg::TwistStamped command;
  command.header = pose.header;
  for (std::size_t i = 0; decision.send != nullptr && i < fields_.size(); i++) {
    auto & part = turns_[i] ? command.twist.angular : command.twist.linear;  // named: (a ? b : c).*m is a copy in GCC
    part.*fields_[i] = decision.send[i];
  }
  return command;
}

bool PathController::cancel()
{
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::int64_t now = now_us();
  cancelled_ = cancelled_ == GATE_NEVER ? now : cancelled_;
  return session_ == nullptr || session_->state() != GATE_ACTIVE || moving_ < AT_REST || now - cancelled_ > STOPPING;
}

void PathController::reset()
{
  const std::lock_guard<std::mutex> lock(mutex_);
  path_.reset();
  begun_ = cancelled_ = GATE_NEVER;
  if (session_ != nullptr && (session_->state() == GATE_READY || session_->state() == GATE_ACTIVE)) {
    tell(session_->decide(given(GATE_REQUEST_DISARM), nullptr, now_us()));
  }
}

void PathController::setSpeedLimit(const double & speed_limit, const bool & percentage)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::isfinite(speed_limit) && speed_limit >= 0.0) {  // 0 is nav2_costmap_2d::NO_SPEED_LIMIT
    speed_ = percentage ? 0.01 * speed_limit * top_ : speed_limit;
  }
}

// --- what a step is given, and what is told of it -------------------------------------------------------------------

std::int64_t PathController::now_us() const
{
  if (const auto node = parent_.lock(); simulated_ && node != nullptr) {
    return node->now().nanoseconds() / 1000;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

Given PathController::given(std::uint8_t requests)
{
  Given given;
  given.now = now_us();
  for (std::size_t i = 0; i < inputs_.size(); i++) {
    const Input & input = inputs_[i];
    if (input.topic != nullptr) {
      const TopicInput::Reading & newest = input.topic->newest();
      samples_[i] = {newest.values.empty() ? nullptr : newest.values.data(), newest.stamp};
    } else {
      samples_[i] = {input.own.empty() ? nullptr : input.own.data(), given.now};
    }
  }
  given.samples = samples_.data();
  given.requests = requests;
  given.operator_stamp = begun_ == GATE_NEVER ? GATE_NEVER : given.now;  // the goal is the operator's wish
  return given;
}

/// Where the robot is, in the frame of the plan.
Pose PathController::pose_in_plan(const geometry_msgs::msg::PoseStamped & pose) const
{
  const Pose here{pose.pose.position.x, pose.pose.position.y, heading(pose.pose.orientation)};
  if (!std::isfinite(here.x) || !std::isfinite(here.y) || !std::isfinite(here.heading)) {
    throw nav2_core::ControllerTFError("the robot's pose is not finite");
  }
  if (stripped(pose.header.frame_id) == stripped(plan_frame_)) {
    return here;
  }
  try {
    const auto found = tf_->lookupTransform(plan_frame_, pose.header.frame_id, tf2::TimePointZero).transform;
    return here.within({found.translation.x, found.translation.y, heading(found.rotation)});
  } catch (const tf2::TransformException & error) {
    throw nav2_core::ControllerTFError("the path is in the frame '" + plan_frame_ + "', the robot in '" +
            pose.header.frame_id + "': " + error.what());
  }
}

std::string PathController::why(const Decision & decision) const
{
  const std::string problem = sentence(*session_, {decision, ""}), doubt = session_->explain(decision.doubt);
  return std::string("the gate is ") + name_of(decision.state) + ": " + (problem.empty() ? doubt : problem);
}

/// To the topic and the log, where it has changed.
void PathController::tell(const Decision & decision)
{
  const std::string key = std::string(name_of(decision.state)) + name_of(decision.mode) +
    std::to_string(decision.source) + "/" + std::to_string(decision.problem.reason);
  const auto node = parent_.lock();
  if (key == told_ || node == nullptr) {
    return;
  }
  told_ = key;
  const std::string text = sentence(*session_, {decision, ""});
  topics_->gate({decision, ""}, text, node->now());
  if (text.empty()) {
    RCLCPP_INFO(node->get_logger(), "%s: %s, mode %s", name_.c_str(), name_of(decision.state), name_of(decision.mode));
  } else {
    RCLCPP_ERROR(node->get_logger(), "%s: %s: %s", name_.c_str(), name_of(decision.state), text.c_str());
  }
}

}  // namespace robo_rl_controller

PLUGINLIB_EXPORT_CLASS(robo_rl_controller::PathController, nav2_core::Controller)
