// SPDX-License-Identifier: Apache-2.0
#include "writing.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <geometry_msgs/msg/twist.hpp>
#include <geometry_msgs/msg/twist_stamped.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <std_msgs/msg/float64_multi_array.hpp>
#include <trajectory_msgs/msg/joint_trajectory.hpp>

namespace robo_rl_controller
{
namespace
{

using geometry_msgs::msg::Twist;
using geometry_msgs::msg::TwistStamped;
using sensor_msgs::msg::JointState;
using std_msgs::msg::Float64MultiArray;
using trajectory_msgs::msg::JointTrajectory;

struct Wired
{
  Wire wire;
  Channel channel;
};
using Group = std::vector<Wired>;

template<class Stamp>
void set_stamp(Stamp & stamp, std::int64_t ns)
{
  stamp.sec = static_cast<std::int32_t>(ns / 1000000000);
  stamp.nanosec = static_cast<std::uint32_t>(ns % 1000000000);
}

RosError unsuitable(const Wired & wired)
{
  return RosError(
    "the wire of command '" + wired.wire.name + "' is '" + wired.wire.field + "' of " + wired.wire.kind +
    ", which does not hold it");
}

/// The place of a twist's element, as "vx".
double & twist_element(Twist & twist, const std::string & name, const Wired & wired)
{
  const bool turns = name.size() == 2 && name[0] == 'w';
  if (name.size() != 2 || (name[0] != 'v' && !turns) || name[1] < 'x' || name[1] > 'z') {
    throw unsuitable(wired);
  }
  auto & part = turns ? twist.angular : twist.linear;
  return name[1] == 'x' ? part.x : name[1] == 'y' ? part.y : part.z;
}

/// Where the numbers of a command are in a message of its type, made ready for them.
std::vector<double *> numbers(Twist & message, const Wired & wired, double)
{
  std::vector<double *> found;
  for (const std::string & name : wired.channel.elements) {
    found.push_back(&twist_element(message, name, wired));
  }
  return found;
}

std::vector<double *> numbers(TwistStamped & message, const Wired & wired, double period)
{
  message.header.frame_id = "base_link";
  return numbers(message.twist, wired, period);
}

std::vector<double *> addresses(std::vector<double> & values, std::size_t size)
{
  values.assign(size, 0.0);
  std::vector<double *> found;
  for (double & value : values) {
    found.push_back(&value);
  }
  return found;
}

std::vector<double *> numbers(JointState & message, const Wired & wired, double)
{
  const std::string & field = wired.wire.field;
  if (!message.name.empty() || (field != "position" && field != "velocity" && field != "effort")) {
    throw unsuitable(wired);
  }
  message.name = wired.channel.elements;
  return addresses(
    field == "position" ? message.position : field == "velocity" ? message.velocity : message.effort,
    wired.channel.size);
}

std::vector<double *> numbers(Float64MultiArray & message, const Wired & wired, double)
{
  if (!message.data.empty() || wired.wire.field != "data") {
    throw unsuitable(wired);
  }
  return addresses(message.data, wired.channel.size);
}

/// joint_trajectory_controller refuses a stamp other than 0 of one that ends in the past; 0 means at once.
std::vector<double *> numbers(JointTrajectory & message, const Wired & wired, double period)
{
  if (!message.points.empty() || wired.wire.field != "position") {
    throw unsuitable(wired);
  }
  message.joint_names = wired.channel.elements;
  message.points.resize(1);
  message.points[0].time_from_start.sec = static_cast<std::int32_t>(std::floor(period));
  message.points[0].time_from_start.nanosec =
    static_cast<std::uint32_t>(std::lround(1e9 * (period - std::floor(period))));
  return addresses(message.points[0].positions, wired.channel.size);
}

void stamp(TwistStamped & message, std::int64_t ns) {set_stamp(message.header.stamp, ns);}
void stamp(JointState & message, std::int64_t ns) {set_stamp(message.header.stamp, ns);}
template<class Message>
void stamp(Message &, std::int64_t) {}

template<class Message>
class TypedOutlet final : public Outlet
{
public:
  TypedOutlet(Node & node, const Group & group, const rmw_qos_profile_t & quality, double period)
  : publisher_(node, group.front().wire.topic, quality)
  {
    for (const Wired & wired : group) {
      const std::vector<double *> at = numbers(message_, wired, period);
      for (std::size_t i = 0; i < at.size(); i++) {
        places_.push_back({at[i], wired.channel.offset + i});
      }
    }
  }

  bool send(const float * command, std::int64_t ns) noexcept override
  {
    for (const Place & place : places_) {
      *place.number = static_cast<double>(command[place.flat]);
    }
    stamp(message_, ns);
    return publisher_.publish(message_);
  }

private:
  struct Place
  {
    double * number;
    std::size_t flat;
  };
  Message message_;
  std::vector<Place> places_;
  Publisher<Message> publisher_;
};

std::unique_ptr<Outlet> make_outlet(Node & node, const Group & group, const rmw_qos_profile_t & quality, double period)
{
  const std::string & kind = group.front().wire.kind;
  if (kind == "sensor_msgs/msg/JointState") {
    return std::make_unique<TypedOutlet<JointState>>(node, group, quality, period);
  }
  if (kind == "std_msgs/msg/Float64MultiArray") {
    return std::make_unique<TypedOutlet<Float64MultiArray>>(node, group, quality, period);
  }
  if (kind == "geometry_msgs/msg/TwistStamped") {
    return std::make_unique<TypedOutlet<TwistStamped>>(node, group, quality, period);
  }
  if (kind == "geometry_msgs/msg/Twist") {
    return std::make_unique<TypedOutlet<Twist>>(node, group, quality, period);
  }
  if (kind == "trajectory_msgs/msg/JointTrajectory") {
    return std::make_unique<TypedOutlet<JointTrajectory>>(node, group, quality, period);
  }
  throw RosError(
          "the wire of command '" + group.front().wire.name + "' has the type " + kind + ", which this node does not "
          "send; the Python node may: robo-rl ros policy");
}

}  // namespace

std::vector<std::unique_ptr<Outlet>> make_outlets(
  Node & node, const robot_bundle & bundle, const std::vector<std::string> & wires, double timeout)
{
  std::map<std::string, std::string> texts = texts_by_name(wires, "parameter 'command_wires'");
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (std::size_t i = 0; i < bundle.gate->command_count; i++) {
    const Channel channel(bundle.commands[i]);
    const auto text = texts.find(channel.name);
    if (text == texts.end()) {
      throw RosError("parameter 'command_wires' has no entry for the command '" + channel.name + "'");
    }
    const Wire wire(channel.name, text->second);
    groups[{wire.topic, wire.kind}].push_back({wire, channel});
    texts.erase(text);
  }
  if (!texts.empty()) {
    throw RosError("parameter 'command_wires' names '" + texts.begin()->first + "'; the contract has no such command");
  }
  const rmw_qos_profile_t quality = commands(std::max(timeout, 2.0 * bundle.control_period), timeout);
  std::vector<std::unique_ptr<Outlet>> outlets;
  for (const auto & [key, group] : groups) {
    outlets.push_back(make_outlet(node, group, quality, bundle.control_period));
  }
  return outlets;
}

}  // namespace robo_rl_controller
