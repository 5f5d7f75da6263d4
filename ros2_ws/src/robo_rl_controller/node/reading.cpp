// SPDX-License-Identifier: Apache-2.0
#include "reading.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <set>

#include "errors.hpp"
#include "scans.hpp"

namespace robo_rl_controller
{
namespace
{

using geometry_msgs::msg::PoseStamped;
using geometry_msgs::msg::Twist;
using geometry_msgs::msg::TwistStamped;
using nav_msgs::msg::Odometry;
using sensor_msgs::msg::Imu;
using sensor_msgs::msg::JointState;
using sensor_msgs::msg::LaserScan;
using Vector = std::array<double, 3>;

constexpr std::size_t MAX_ELEMENTS = 10000;  // more names or numbers in one message are not read
constexpr double NOT_UNIT = 0.01;            // by which the length of a quaternion may be off 1
constexpr const char * TWIST_ELEMENTS[] = {"vx", "vy", "vz", "wx", "wy", "wz"};

template<class V>
Vector vector_of(const V & v)
{
  return {v.x, v.y, v.z};
}

float narrow(double value)
{
  return static_cast<float>(value);
}

[[noreturn]] void refuse_size(const View & view, std::size_t count)
{
  throw MessageError(
          "'" + view.channel.name + "': " + std::to_string(count) + " numbers in '" + view.wire.field + "'; expected " +
          std::to_string(view.channel.size));
}

/// Of a vector (x, y, z), the elements that the contract names; all, where it names them otherwise.
void along(const Vector & v, const View & view, std::vector<float> & out)
{
  const std::vector<std::string> & names = view.channel.elements;
  const bool named = std::all_of(
    names.begin(), names.end(), [](const std::string & n) {return n == "x" || n == "y" || n == "z";});
  if (!named && names.size() != 3) {
    refuse_size(view, 3);
  }
  for (std::size_t i = 0; i < names.size(); i++) {
    out[i] = narrow(v[named ? static_cast<std::size_t>(names[i][0] - 'x') : i]);
  }
}

template<class Q>
void quaternion(const Q & q, const View & view, std::vector<float> & out)
{
  if (view.channel.size != 4) {
    refuse_size(view, 4);
  }
  const double values[] = {q.x, q.y, q.z, q.w};
  std::transform(values, values + 4, out.begin(), narrow);
}

/// A negative variance says that a sensor does not measure this (sensor_msgs/Imu: -1 as the first element). One that is
/// not finite is that of a filter that knows nothing or has diverged; what is not known is 0 (sensor_msgs/Imu).
template<class Covariance>
void require_measured(
  const Covariance & covariance, std::initializer_list<std::size_t> diagonal, const char * field, const View & view)
{
  for (const std::size_t i : diagonal) {
    if (covariance[i] < 0.0) {
      throw MessageError(
              "'" + view.channel.name + "': " + field + " is -1: the message has no such measurement; take another "
              "source");
    }
    if (!std::isfinite(covariance[i])) {
      throw MessageError(
              "'" + view.channel.name + "': " + field + " has a variance of " + std::to_string(covariance[i]) +
              ": what is not finite was not measured, or its filter has diverged; expected 0 where it is not known");
    }
  }
}

Vector cross(const Vector & a, const Vector & b)
{
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// `v` by an orientation; NaN, which the gate refuses, where that is not of length 1.
template<class Q>
Vector turned(const Q & q, const Vector & v, const View & view)
{
  if (q.x == 0.0 && q.y == 0.0 && q.z == 0.0 && q.w == 0.0) {
    throw MessageError(
            "'" + view.channel.name + "': its orientation is all zeros; expected a quaternion of length 1");
  }
  const double length = std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
  if (!(std::fabs(length - 1.0) <= NOT_UNIT)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan};
  }
  const Vector axis{q.x, q.y, q.z};
  Vector across = cross(axis, v);
  for (double & x : across) {
    x *= 2.0;
  }
  const Vector again = cross(axis, across);
  return {
    v[0] + q.w * across[0] + again[0], v[1] + q.w * across[1] + again[1], v[2] + q.w * across[2] + again[2]};
}

void in_frame(const std_msgs::msg::Header & header, const std::string & wanted, const View & view, Also also = Also::none)
{
  require_frame(view.frames, view.channel.name, header.frame_id, wanted, view.wire.frame, also);
}

/// "body to world": the frame that an orientation is told in, and the one that is turned.
std::string told_in(const std::string & frame)
{
  const std::size_t at = frame.rfind(" to ");
  return at == frame.npos ? frame : frame.substr(at + 4);
}

std::string turned_one(const std::string & frame)
{
  return frame.substr(0, frame.find(" to "));
}

void odometry_position(const Odometry & m, const View & view, std::vector<float> & out)
{
  require_measured(m.pose.covariance, {0, 7, 14}, "covariance", view);
  require_robot(view.channel.name, m.child_frame_id, view.wire.frame);
  in_frame(m.header, view.channel.frame, view);
  along(vector_of(m.pose.pose.position), view, out);
}

void odometry_orientation(const Odometry & m, const View & view, std::vector<float> & out)
{
  require_measured(m.pose.covariance, {21, 28, 35}, "covariance", view);
  require_robot(view.channel.name, m.child_frame_id, view.wire.frame);
  in_frame(m.header, told_in(view.channel.frame), view);
  quaternion(m.pose.pose.orientation, view, out);
}

/// nav_msgs: the twist is in the child frame. It is turned into the world if the contract's frame is the world.
void odometry_twist(
  const Odometry & m, const Vector & told, std::initializer_list<std::size_t> diagonal, const View & view,
  std::vector<float> & out)
{
  require_short(view.channel.name, m.header.frame_id);
  require_measured(m.twist.covariance, diagonal, "covariance", view);
  require_robot(view.channel.name, m.child_frame_id, view.wire.frame);
  Vector v = told;
  if (view.channel.frame == "world") {
    in_frame(m.header, view.channel.frame, view);
    require_measured(m.pose.covariance, {21, 28, 35}, "covariance", view);
    v = turned(m.pose.pose.orientation, v, view);
  }
  along(v, view, out);
}

std::vector<float> & twist_elements(const Twist & m, const View & view, std::vector<float> & out)
{
  const double values[] = {m.linear.x, m.linear.y, m.linear.z, m.angular.x, m.angular.y, m.angular.z};
  for (std::size_t i = 0; i < view.channel.elements.size(); i++) {
    const auto * at = std::find(std::begin(TWIST_ELEMENTS), std::end(TWIST_ELEMENTS), view.channel.elements[i]);
    if (at == std::end(TWIST_ELEMENTS)) {
      throw MessageError(
              "'" + view.channel.name + "': a twist has no element '" + view.channel.elements[i] + "'");
    }
    out[i] = narrow(values[at - TWIST_ELEMENTS]);
  }
  return out;
}

template<class Array>
void array(const Array & m, const View & view, std::vector<float> & out)
{
  const robot_channel & channel = view.channel.data;
  std::size_t start = 0;
  if (channel.rank == 0) {
    if (m.data.size() != view.channel.size) {
      refuse_size(view, std::min(m.data.size(), MAX_ELEMENTS + 1));
    }
  } else {
    start = m.layout.data_offset;
    bool good = m.layout.dim.size() == channel.rank && start <= m.data.size() &&
      m.data.size() - start >= view.channel.size;
    std::size_t stride = view.channel.size;
    for (std::size_t i = 0; good && i < channel.rank; i++) {
      good = m.layout.dim[i].size == channel.shape[i] && m.layout.dim[i].stride == stride;
      stride /= channel.shape[i];
    }
    if (!good) {
      throw MessageError(
              "'" + view.channel.name + "': its layout does not fit for " + std::to_string(m.data.size()) +
              " numbers; expected " + std::to_string(view.channel.size) + " in the contract's shape, row by row");
    }
  }
  for (std::size_t i = 0; i < out.size(); i++) {
    out[i] = narrow(static_cast<double>(m.data[start + i]));
  }
}

RosError unknown(const std::string & kind, const std::string & field, const std::string & signal)
{
  return RosError("the wire of '" + signal + "' has the field '" + field + "', which this node does not read of " + kind);
}

}  // namespace

template<>
Reader<Odometry> reader(const std::string & field, const std::string & signal)
{
  if (field == "position") {
    return odometry_position;
  }
  if (field == "orientation") {
    return odometry_orientation;
  }
  if (field == "linear_velocity") {
    return [](const Odometry & m, const View & view, std::vector<float> & out) {
             odometry_twist(m, vector_of(m.twist.twist.linear), {0, 7, 14}, view, out);
           };
  }
  if (field == "angular_velocity") {
    return [](const Odometry & m, const View & view, std::vector<float> & out) {
             odometry_twist(m, vector_of(m.twist.twist.angular), {21, 28, 35}, view, out);
           };
  }
  throw unknown("nav_msgs/msg/Odometry", field, signal);
}

template<>
Reader<Imu> reader(const std::string & field, const std::string & signal)
{
  if (field == "orientation") {
    return [](const Imu & m, const View & view, std::vector<float> & out) {
             require_measured(m.orientation_covariance, {0, 4, 8}, "orientation_covariance", view);
             in_frame(m.header, turned_one(view.channel.frame), view, Also::imu);
             quaternion(m.orientation, view, out);
           };
  }
  if (field == "angular_velocity") {
    return [](const Imu & m, const View & view, std::vector<float> & out) {
             require_measured(m.angular_velocity_covariance, {0, 4, 8}, "angular_velocity_covariance", view);
             in_frame(m.header, view.channel.frame, view, Also::imu);
             along(vector_of(m.angular_velocity), view, out);
           };
  }
  if (field == "linear_acceleration") {
    return [](const Imu & m, const View & view, std::vector<float> & out) {
             require_measured(m.linear_acceleration_covariance, {0, 4, 8}, "linear_acceleration_covariance", view);
             in_frame(m.header, view.channel.frame, view, Also::imu);
             along(vector_of(m.linear_acceleration), view, out);
           };
  }
  throw unknown("sensor_msgs/msg/Imu", field, signal);
}

template<>
Reader<PoseStamped> reader(const std::string & field, const std::string & signal)
{
  if (field == "position") {
    return [](const PoseStamped & m, const View & view, std::vector<float> & out) {
             in_frame(m.header, view.channel.frame, view);
             along(vector_of(m.pose.position), view, out);
           };
  }
  if (field == "orientation") {
    return [](const PoseStamped & m, const View & view, std::vector<float> & out) {
             in_frame(m.header, told_in(view.channel.frame), view);
             quaternion(m.pose.orientation, view, out);
           };
  }
  throw unknown("geometry_msgs/msg/PoseStamped", field, signal);
}

template<>
Reader<Twist> reader(const std::string & field, const std::string & signal)
{
  if (field == "linear") {
    return [](const Twist & m, const View & view, std::vector<float> & out) {along(vector_of(m.linear), view, out);};
  }
  if (field == "angular") {
    return [](const Twist & m, const View & view, std::vector<float> & out) {along(vector_of(m.angular), view, out);};
  }
  if (field == "by_name") {
    return [](const Twist & m, const View & view, std::vector<float> & out) {twist_elements(m, view, out);};
  }
  throw unknown("geometry_msgs/msg/Twist", field, signal);
}

template<>
Reader<TwistStamped> reader(const std::string & field, const std::string & signal)
{
  const Reader<Twist> inner = reader<Twist>(field, signal);
  return [inner](const TwistStamped & m, const View & view, std::vector<float> & out) {
           in_frame(m.header, view.channel.frame, view, Also::twist);
           inner(m.twist, view, out);
         };
}

template<>
Reader<LaserScan> reader(const std::string & field, const std::string & signal)
{
  if (field != "ranges") {
    throw unknown("sensor_msgs/msg/LaserScan", field, signal);
  }
  return [](const LaserScan & m, const View & view, std::vector<float> & out) {
           require_scanner(view.channel.name, m.header.frame_id, view.wire.frame);
           ranges_of(m, view.channel, view.wire, out);
         };
}

template<>
Reader<std_msgs::msg::Float64MultiArray> reader(const std::string & field, const std::string & signal)
{
  if (field != "data") {
    throw unknown("std_msgs/msg/Float64MultiArray", field, signal);
  }
  return array<std_msgs::msg::Float64MultiArray>;
}

template<>
Reader<std_msgs::msg::Float32MultiArray> reader(const std::string & field, const std::string & signal)
{
  if (field != "data") {
    throw unknown("std_msgs/msg/Float32MultiArray", field, signal);
  }
  return array<std_msgs::msg::Float32MultiArray>;
}

std::optional<std::array<double, 3>> measured(const Odometry & message, const std::string & field)
{
  if (field == "linear_velocity") {
    return vector_of(message.twist.twist.linear);
  }
  if (field == "angular_velocity") {
    return vector_of(message.twist.twist.angular);
  }
  return std::nullopt;
}

std::vector<std::size_t> places(
  const std::vector<std::string> & names, std::size_t count, const std::string & field, const Channel & channel)
{
  const std::string about = "'" + channel.name + "': ";
  if (names.size() > MAX_ELEMENTS) {
    throw MessageError(
            about + std::to_string(names.size()) + " names; expected at most " + std::to_string(MAX_ELEMENTS));
  }
  if (names.size() != count) {
    throw MessageError(
            about + std::to_string(names.size()) + " names but " + std::to_string(count) + " values in '" + field + "'");
  }
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
    throw MessageError(about + "a name occurs twice");
  }
  std::vector<std::size_t> found;
  for (const std::string & element : channel.elements) {
    const auto at = std::find(names.begin(), names.end(), element);
    found.push_back(static_cast<std::size_t>(at - names.begin()));
  }
  return found;
}

const std::vector<double> & joint_values(const JointState & message, const std::string & field)
{
  return field == "position" ? message.position : field == "velocity" ? message.velocity : message.effort;
}

}  // namespace robo_rl_controller
