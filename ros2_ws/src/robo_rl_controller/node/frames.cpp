// SPDX-License-Identifier: Apache-2.0
#include "frames.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace robo_rl_controller
{
namespace
{

using Names = std::initializer_list<std::string_view>;
const Names WORLD = {"world", "map", "odom", "earth"};  // REP 105, and "world" of simulators and motion capture
const Names BODY = {"base_link", "base_footprint", "base", "body", "trunk", "pelvis"};
const Names IMU = {"imu_link", "imu", "imu_frame"};  // REP 145
const Names TWIST = {"teleop_twist_joy"};
const Names ROBOT = {"body", "base", "heading"};  // frames of contracts that are the robot's own
const Names ARM_BASES = {"link0", "link_0", "link_base"};
constexpr std::string_view OPTICAL = "optical_frame";  // REP 103: z points ahead
constexpr std::size_t MAX_NAME = 255;

bool is_in(std::string_view name, const Names & names)
{
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool ends_with(std::string_view text, std::string_view end)
{
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string_view without_slashes(std::string_view frame)
{
  const std::size_t first = frame.find_first_not_of('/');
  return first == frame.npos ? "" : frame.substr(first, frame.find_last_not_of('/') - first + 1);
}

/// A frame's name without namespaces.
std::string_view plain(std::string_view frame)
{
  const std::string_view name = without_slashes(frame);
  const std::size_t slash = name.rfind('/');
  return slash == name.npos ? name : name.substr(slash + 1);
}

/// The base of an arm that stands still: panda_link0, lbr_link_0, link_base, or the world.
bool is_arm_base(std::string_view name)
{
  const auto is_prefix = [](std::string_view text) {
      return text.empty() || (text.size() > 1 && text.back() == '_' &&
             std::all_of(text.begin(), text.end(), [](unsigned char c) {return std::isalnum(c) || c == '_';}));
    };
  return name == "world" || std::any_of(
    ARM_BASES.begin(), ARM_BASES.end(), [&](std::string_view base) {
      return ends_with(name, base) && is_prefix(name.substr(0, name.size() - base.size()));
    });
}

bool is_same(const Frames & frames, std::string_view frame, std::string_view wanted, Also also)
{
  const std::string_view found = plain(frame);
  if (wanted == "world") {
    return frames.world.empty() ? is_in(found, WORLD) : without_slashes(frame) == without_slashes(frames.world);
  }
  if (is_in(wanted, ROBOT)) {
    const bool named = is_in(found, BODY) || (also == Also::imu && is_in(found, IMU)) ||
      (also == Also::twist && is_in(found, TWIST));
    const bool arm = wanted == "base" && also == Also::none && !(is_in(found, WORLD) && frames.drives);
    return named || (arm && is_arm_base(found));
  }
  return found == wanted;
}

std::string listed(const Names & names)
{
  std::string text;
  for (const std::string_view name : names) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

std::string expected(const Frames & frames, const std::string & wanted)
{
  if (wanted == "world" && !frames.world.empty()) {
    return "the robot's position comes in '" + frames.world + "': expected that frame";
  }
  const std::string names = wanted == "world" ? listed(WORLD) : is_in(wanted, ROBOT) ? listed(BODY) : "";
  return "expected the frame '" + wanted + "'" + (names.empty() ? "" : " (" + names + ")");
}

}  // namespace

void require_short(const std::string & signal, const std::string & frame)
{
  if (frame.size() > MAX_NAME) {
    throw MessageError(
            "'" + signal + "': frame_id has " + std::to_string(frame.size()) + " characters; expected at most " +
            std::to_string(MAX_NAME));
  }
}

void require_frame(
  const Frames & frames, const std::string & signal, const std::string & frame, const std::string & wanted,
  const std::string & own, Also also)
{
  require_short(signal, frame);
  if (!frame.empty() && frame != own && !is_same(frames, frame, wanted, also)) {
    throw MessageError(
            "'" + signal + "': frame_id is '" + frame + "'; " + expected(frames, wanted) +
            ". If it is that frame by another name, add frame=NAME to the wire");
  }
}

void require_robot(const std::string & signal, const std::string & frame, const std::string & own)
{
  require_short(signal, frame);
  if (!frame.empty() && frame != own && !is_in(plain(frame), BODY)) {
    throw MessageError(
            "'" + signal + "': child_frame_id is '" + frame + "'; expected the robot's own frame (" + listed(BODY) +
            "). If it is that frame by another name, add frame=NAME to the wire");
  }
}

void require_scanner(const std::string & signal, const std::string & frame, const std::string & own)
{
  require_short(signal, frame);
  if (frame != own && (ends_with(plain(frame), OPTICAL) || is_in(plain(frame), WORLD))) {
    throw MessageError(
            "'" + signal + "': frame_id is '" + frame + "'; expected the frame of a lidar, whose beams turn about its "
            "z axis. If it is one, add frame=NAME to the wire");
  }
}

std::string stripped(const std::string & frame)
{
  return std::string(without_slashes(frame));
}

}  // namespace robo_rl_controller
