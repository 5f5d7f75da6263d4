// SPDX-License-Identifier: Apache-2.0
// Frames of messages against the frame that a contract names: the same by name, or refused. There is no tf here.
// The names are those of ros/frames.py of the Python node.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace robo_rl_controller
{

/// A message must not be used. The sentence names the signal, the value and what was expected.
class MessageError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/// What is known of frames beside their names, for all signals of a robot.
struct Frames
{
  /// frame_id of the robot's own position; "" as long as it is not known
  std::string world;
  /// Whether the robot's base moves: then the base of its arm is not the world.
  bool drives = false;
  /// Called when `world` becomes known: what came in another frame before is forgotten.
  std::vector<std::function<void ()>> when_known;
};

/// Names that a type of message gives to the robot's own frame, beside the usual ones.
enum class Also { none, imu, twist };

/// MessageError for a frame's name that is too long to be one.
void require_short(const std::string & signal, const std::string & frame);

/// MessageError unless `frame` is the contract's frame `wanted`. `own`: that frame by another name, by the wire.
void require_frame(
  const Frames & frames, const std::string & signal, const std::string & frame, const std::string & wanted,
  const std::string & own, Also also = Also::none);

/// MessageError unless `frame`, which a message is about, is the robot's body.
void require_robot(const std::string & signal, const std::string & frame, const std::string & own);

/// MessageError if `frame` can't be that of a lidar, whose z axis points up.
void require_scanner(const std::string & signal, const std::string & frame, const std::string & own);

/// Without slashes at both ends.
std::string stripped(const std::string & frame);

}  // namespace robo_rl_controller
