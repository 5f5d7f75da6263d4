// SPDX-License-Identifier: Apache-2.0
// The newest sample of every signal, fed by messages and read by the control loop. The twin of ros/signal_buffer.py.
//
// Times become µs of the control loop's clock here: a header's stamp tells how old a sample was on arrival. A message
// without a header counts from its arrival.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rcl_entities.hpp"
#include "reading.hpp"
#include "robo_rl_controller/sample.hpp"
#include "wire.hpp"

namespace robo_rl_controller
{

/// The clocks of the control loop.
class Clocks
{
public:
  explicit Clocks(bool is_simulated)
  : simulated(is_simulated) {}
  /// µs of the control loop's clock: monotonic, or simulated time
  std::int64_t now() const;
  /// ns of ROS time, for stamps
  std::int64_t ros_ns() const;

  const bool simulated;
  /// Of /clock; 0: it has not come.
  std::atomic<std::int64_t> simulated_ns{0};
};

/// µs of the monotonic clock.
std::int64_t monotonic_us();

/// How the messages of one topic come in.
struct Arrivals
{
  std::string topic;
  long count = 0;
  /// s
  double last = -1.0, interval = 0.0, age = 0.0;
  /// Why the last message was not used; "" if it was.
  std::string complaint;
};

/// One thread fills and reads it; `arrivals`, `absent` and `complaints` may be asked by another.
class SignalBuffer
{
public:
  /// RosError for a signal without a wire or a constant, and for wires that do not fit.
  SignalBuffer(
    Node & node, const robot_bundle & bundle, const Clocks & clocks, const std::vector<std::string> & wires,
    const std::vector<std::string> & setpoints, double cmd_vel_timeout);
  ~SignalBuffer();

  /// The subscriptions that feed it.
  std::vector<Inlet *> inlets() const;

  /// The samples for a step at `now`, one per signal; valid until the next message is taken.
  const Sample * samples(std::int64_t now);
  /// Whether every sensor signal was updated since the last step; slow ones count once their period is up.
  bool fresh() const;
  /// Whether all stamps are of times up to `now`.
  bool is_past(std::int64_t now) const;
  void alive(std::int64_t now) {operator_stamp = now;}

  std::int64_t operator_stamp = GATE_NEVER;

  std::vector<Arrivals> arrivals() const;
  /// Topics without a usable message so far, with their signals; "" if there is none.
  std::string absent() const;
  /// Why messages are refused at present, with their topics; "" if none is.
  std::string complaints() const;

private:
  template<class Message>
  struct Part;
  struct Held;

  template<class Message>
  void subscribe(Node & node, const std::string & topic, const std::vector<Wire> & wires);
  template<class Message>
  void put(Arrivals & arrivals, std::vector<Part<Message>> & parts, const Message & message);
  template<class Message>
  bool read(Part<Message> & part, const Message & message, std::int64_t & stamp);
  void note_frame(std::size_t signal, const std::string & frame_id);
  void put_constants(const std::vector<std::string> & setpoints);
  Held & held(const std::string & name);

  const robot_bundle & bundle_;
  const Clocks & clocks_;
  std::int64_t lasting_, half_, patience_;
  std::vector<Held> signals_;
  std::vector<Sample> samples_;
  Frames frames_;
  std::int64_t last_ = 0;
  mutable std::mutex told_;
  std::vector<std::unique_ptr<Arrivals>> arrivals_;
  std::vector<std::unique_ptr<Inlet>> inlets_;
};

}  // namespace robo_rl_controller
