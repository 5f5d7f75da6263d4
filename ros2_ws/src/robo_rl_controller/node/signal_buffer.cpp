// SPDX-License-Identifier: Apache-2.0
#include "signal_buffer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace robo_rl_controller
{
namespace
{

constexpr std::int64_t SKEW = 1000;              // µs by which clocks of two computers may differ
constexpr std::int64_t FOREIGN = 1000000000000;  // µs: a stamp that is off by more is of another clock
constexpr double SMOOTHING = 0.05;               // weight of the newest interval in the mean that diagnostics show
const char * const POSITION = "position";

template<class Message, class = void>
struct Header
{
  static constexpr bool there = false;
  static std::int64_t ns(const Message &) {return 0;}
  static std::string frame(const Message &) {return "";}
};
template<class Message>
struct Header<Message, std::void_t<decltype(std::declval<Message>().header)>>
{
  static constexpr bool there = true;
  static std::int64_t ns(const Message & m) {return m.header.stamp.sec * std::int64_t{1000000000} + m.header.stamp.nanosec;}
  static const std::string & frame(const Message & m) {return m.header.frame_id;}
};

std::int64_t floor_us(std::int64_t ns)
{
  return ns / 1000 - (ns % 1000 < 0 ? 1 : 0);
}

std::string about_clock(double age)
{
  std::ostringstream text;
  text.precision(0);
  if (age > 0) {
    text << std::fixed << "its stamps are " << age << " s old: zero, or of another clock. With simulated time (/clock), "
      "such as a twin's, start the node with use_sim_time";
  } else {
    text << std::fixed << "its stamps are " << -age << " s in the future: of another clock. Where this node has simulated "
      "time (/clock), start the one that sends them with use_sim_time as well";
  }
  return text.str();
}

}  // namespace

std::int64_t monotonic_us()
{
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

std::int64_t Clocks::now() const
{
  return simulated ? simulated_ns / 1000 : monotonic_us();
}

std::int64_t Clocks::ros_ns() const
{
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return simulated ? simulated_ns.load() : std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

struct SignalBuffer::Held
{
  explicit Held(const robot_channel & given)
  : channel(given), values(channel.size) {}

  Channel channel;
  std::vector<float> values;
  std::int64_t stamp = GATE_NEVER;
  bool known = false, constant = false, wired = false, sensor = false, in_world = false, noisy = false;
  /// Whether a step waits for it, and whether it is missing since the last one.
  bool awaited = false, missing = false;
  /// Velocities that an operator wants are zero when they are old: who is silent wants nothing.
  bool perishable = false;
  /// µs: from when on a slow one is awaited
  std::int64_t due = 0;
  std::string frame_id;
};

template<class Message>
struct SignalBuffer::Part
{
  Wire wire;
  std::size_t signal;
  Reader<Message> read;
  std::vector<float> staged;
  std::optional<std::array<double, 3>> before;
  /// Of a JointState: elements that have come since the last sample, and when.
  std::vector<std::optional<std::pair<float, std::int64_t>>> found;
  std::string lacking;
};

SignalBuffer::SignalBuffer(
  Node & node, const robot_bundle & bundle, const Clocks & clocks, const std::vector<std::string> & wires,
  const std::vector<std::string> & setpoints, double cmd_vel_timeout)
: bundle_(bundle), clocks_(clocks), lasting_(std::llround(1e6 * cmd_vel_timeout)), half_(bundle.gate->period / 2),
  patience_(bundle.gate->timeout / 2), samples_(bundle.gate->signal_count)
{
  std::vector<bool> told(bundle.gate->signal_count);
  for (std::size_t i = 0; i < bundle.gate->signal_count; i++) {
    const robot_channel & given = bundle.signals[i];
    const gate_watch & watch = bundle.gate->signals[i];
    Held & signal = signals_.emplace_back(given);
    signal.sensor = watch.sensor && !given.computed;
    signal.noisy = watch.noisy;
    signal.awaited = signal.sensor && !given.waits;
    signal.missing = signal.awaited;
    const std::string & frame = signal.channel.frame;
    const std::size_t at = frame.rfind(" to ");
    signal.in_world = (at == frame.npos ? frame : frame.substr(at + 4)) == "world";
    frames_.drives = frames_.drives || (signal.sensor && signal.channel.name == POSITION);
  }
  put_constants(setpoints);
  std::map<std::string, std::string> texts = texts_by_name(wires, "parameter 'wires'");
  std::map<std::pair<std::string, std::string>, std::vector<Wire>> groups;
  for (Held & signal : signals_) {
    const auto text = texts.find(signal.channel.name);
    if (text != texts.end() && !signal.constant && !signal.channel.data.computed) {
      const Wire wire(signal.channel.name, text->second);
      groups[{wire.topic, wire.kind}].push_back(wire);
      signal.wired = true;
      signal.perishable = wire.topic == "cmd_vel";
    } else if (!signal.constant && !signal.channel.data.computed) {
      throw RosError("parameter 'wires' has no entry for the signal '" + signal.channel.name + "'");
    }
    if (text != texts.end()) {
      texts.erase(text);
    }
  }
  if (!texts.empty()) {
    throw RosError("parameter 'wires' names '" + texts.begin()->first + "'; the contract has no such signal");
  }
  for (const auto & [key, group] : groups) {
    const auto & [topic, kind] = key;
    if (kind == "nav_msgs/msg/Odometry") {
      subscribe<nav_msgs::msg::Odometry>(node, topic, group);
    } else if (kind == "sensor_msgs/msg/Imu") {
      subscribe<sensor_msgs::msg::Imu>(node, topic, group);
    } else if (kind == "sensor_msgs/msg/JointState") {
      subscribe<sensor_msgs::msg::JointState>(node, topic, group);
    } else if (kind == "sensor_msgs/msg/LaserScan") {
      subscribe<sensor_msgs::msg::LaserScan>(node, topic, group);
    } else if (kind == "geometry_msgs/msg/PoseStamped") {
      subscribe<geometry_msgs::msg::PoseStamped>(node, topic, group);
    } else if (kind == "geometry_msgs/msg/TwistStamped") {
      subscribe<geometry_msgs::msg::TwistStamped>(node, topic, group);
    } else if (kind == "geometry_msgs/msg/Twist") {
      subscribe<geometry_msgs::msg::Twist>(node, topic, group);
    } else if (kind == "std_msgs/msg/Float64MultiArray") {
      subscribe<std_msgs::msg::Float64MultiArray>(node, topic, group);
    } else if (kind == "std_msgs/msg/Float32MultiArray") {
      subscribe<std_msgs::msg::Float32MultiArray>(node, topic, group);
    } else {
      throw RosError(
              "the wire of '" + group.front().name + "' has the type " + kind + ", which this node does not read; the "
              "Python node may: robo-rl ros policy");
    }
  }
}

SignalBuffer::~SignalBuffer() = default;

SignalBuffer::Held & SignalBuffer::held(const std::string & name)
{
  const auto found = std::find_if(
    signals_.begin(), signals_.end(), [&](const Held & signal) {return signal.channel.name == name;});
  if (found == signals_.end()) {
    throw RosError("the contract has no signal '" + name + "'");
  }
  return *found;
}

void SignalBuffer::put_constants(const std::vector<std::string> & setpoints)
{
  for (const auto & [name, text] : texts_by_name(setpoints, "parameter 'setpoints'")) {
    Held & signal = held(name);
    if (signal.sensor || signal.channel.data.computed) {
      throw RosError("parameter 'setpoints' gives '" + name + "', which is measured; expected an operator's signal");
    }
    std::string spaced = text;
    std::replace(spaced.begin(), spaced.end(), ',', ' ');
    std::istringstream words(spaced);
    std::size_t count = 0;
    for (double number; words >> number; count++) {
      if (count < signal.values.size()) {
        signal.values[count] = static_cast<float>(number);
      }
    }
    if (!words.eof() || count != signal.values.size()) {
      throw RosError(
              "parameter 'setpoints': '" + name + "' is '" + text + "'; expected " +
              std::to_string(signal.values.size()) + " finite numbers");
    }
    signal.constant = signal.known = true;
  }
}

template<class Message>
void SignalBuffer::subscribe(Node & node, const std::string & topic, const std::vector<Wire> & wires)
{
  std::vector<Part<Message>> parts;
  for (const Wire & wire : wires) {
    const Held & signal = held(wire.name);
    Part<Message> part{wire, static_cast<std::size_t>(&signal - signals_.data()), nullptr, {}, {}, {}, ""};
    if constexpr (std::is_same_v<Message, sensor_msgs::msg::JointState>) {
      if (wire.field != "position" && wire.field != "velocity" && wire.field != "effort") {
        throw RosError("the wire of '" + wire.name + "' has the field '" + wire.field + "'; a JointState has no such one");
      }
      part.found.resize(signal.channel.size);
    } else {
      part.read = reader<Message>(wire.field, wire.name);
    }
    if (std::is_same_v<Message, sensor_msgs::msg::LaserScan> && signal.channel.data.scan == nullptr) {
      throw RosError("the wire of '" + wire.name + "' is of a LaserScan, but the contract tells no angles of beams");
    }
    part.staged.resize(signal.channel.size);
    parts.push_back(std::move(part));
  }
  Arrivals & arrivals = *arrivals_.emplace_back(std::make_unique<Arrivals>());
  arrivals.topic = topic;
  auto receive = [this, &arrivals, parts = std::move(parts)](const Message & message) mutable {
      put(arrivals, parts, message);
    };
  inlets_.push_back(
    std::make_unique<Subscription<Message, decltype(receive)>>(node, topic, newest(), std::move(receive)));
}

/// Into `staged`; false while elements are missing. `stamp` becomes that of the oldest element.
template<class Message>
bool SignalBuffer::read(Part<Message> & part, const Message & message, std::int64_t & stamp)
{
  const Channel & channel = signals_[part.signal].channel;
  if constexpr (std::is_same_v<Message, sensor_msgs::msg::JointState>) {
    const std::vector<double> & values = joint_values(message, part.wire.field);
    const bool named = std::any_of(
      channel.elements.begin(), channel.elements.end(), [&](const std::string & element) {
        return std::find(message.name.begin(), message.name.end(), element) != message.name.end();
      });
    if (!named) {
      part.lacking = "'" + channel.name + "': no element '" + channel.elements.front() + "' in the message";
      return false;
    }
    const std::vector<std::size_t> at = places(message.name, values.size(), part.wire.field, channel);
    bool whole = true;
    for (std::size_t i = 0; i < at.size(); i++) {
      if (at[i] < values.size()) {
        part.found[i] = {static_cast<float>(values[at[i]]), stamp};
      } else if (!part.found[i]) {
        part.lacking = "'" + channel.name + "': no element '" + channel.elements[i] + "' in the message";
        whole = false;
      }
    }
    for (std::size_t i = 0; whole && i < at.size(); i++) {
      part.staged[i] = part.found[i]->first;
      stamp = std::min(stamp, part.found[i]->second);
      part.found[i].reset();
    }
    return whole;
  } else {
    part.read(message, View{channel, part.wire, frames_}, part.staged);
    return true;
  }
}

template<class Message>
void SignalBuffer::put(Arrivals & arrivals, std::vector<Part<Message>> & parts, const Message & message)
{
  const std::int64_t now = clocks_.now();
  const std::int64_t age = Header<Message>::there ? floor_us(clocks_.ros_ns() - Header<Message>::ns(message)) : 0;
  const std::int64_t stamp = now - (age < -SKEW ? age : std::max<std::int64_t>(0, age));
  std::string complaint;
  std::vector<std::int64_t> stamps(parts.size(), stamp);
  std::vector<bool> whole(parts.size());
  try {
    for (std::size_t i = 0; i < parts.size(); i++) {
      whole[i] = read(parts[i], message, stamps[i]);
    }
  } catch (const MessageError & error) {  // all of a message is used, or nothing
    whole.assign(parts.size(), false);
    complaint = error.what();
  }
  for (std::size_t i = 0; i < parts.size(); i++) {
    Part<Message> & part = parts[i];
    Held & signal = signals_[part.signal];
    if (!whole[i]) {
      const bool old = !signal.known || now - signal.stamp > patience_;
      complaint += complaint.empty() && old ? part.lacking : "";
      continue;
    }
    const auto numbers = measured(message, part.wire.field);
    const bool repeats = signal.noisy && signal.sensor && numbers && numbers == part.before;
    part.before = numbers;
    if (repeats) {  // it grows old
      complaint += (complaint.empty() ? "'" : "; '") + signal.channel.name + "' repeats bit for bit in the robot's frame";
      continue;
    }
    note_frame(part.signal, Header<Message>::frame(message));
    std::swap(signal.values, part.staged);
    signal.stamp = stamps[i];
    signal.known = true;
    signal.missing = false;
    if (signal.channel.data.period > 0) {
      signal.due = now + signal.channel.data.period - half_;
    }
    if (!signal.sensor) {
      operator_stamp = now;
    }
  }
  if (Header<Message>::there && std::abs(age) > FOREIGN) {
    complaint += (complaint.empty() ? "" : "; ") + about_clock(static_cast<double>(age) * 1e-6);
  }
  last_ = now;
  const std::lock_guard<std::mutex> lock(told_);
  const double seconds = static_cast<double>(now) * 1e-6;
  if (arrivals.last >= 0.0) {
    const double passed = seconds - arrivals.last;
    arrivals.interval = arrivals.count < 2 ? passed : arrivals.interval + SMOOTHING * (passed - arrivals.interval);
  }
  arrivals.count++;
  arrivals.last = seconds;
  arrivals.age = static_cast<double>(age) * 1e-6;
  arrivals.complaint = complaint.substr(0, 300);
}

/// The frame of the robot's own position is that of all others in the world; what came in another one is forgotten.
void SignalBuffer::note_frame(std::size_t index, const std::string & frame_id)
{
  Held & own = signals_[index];
  if (frame_id.empty() || !own.in_world) {
    return;
  }
  if (own.frame_id != frame_id) {
    own.frame_id = frame_id;
  }
  if (frames_.world.empty() && own.sensor && own.channel.name == POSITION) {
    frames_.world = frame_id;
    for (Held & other : signals_) {
      if (!other.frame_id.empty() && stripped(other.frame_id) != stripped(frame_id)) {
        other.known = false;
      }
    }
  }
}

std::vector<Inlet *> SignalBuffer::inlets() const
{
  std::vector<Inlet *> found;
  for (const auto & inlet : inlets_) {
    found.push_back(inlet.get());
  }
  return found;
}

const Sample * SignalBuffer::samples(std::int64_t now)
{
  for (std::size_t i = 0; i < signals_.size(); i++) {
    Held & signal = signals_[i];
    if (signal.perishable && signal.known && std::llabs(now - signal.stamp) > lasting_) {
      std::fill(signal.values.begin(), signal.values.end(), 0.0f);
      signal.stamp = now;
    }
    samples_[i] = {signal.known ? signal.values.data() : nullptr, signal.constant ? now : signal.stamp};
    signal.missing = signal.awaited;
  }
  return samples_.data();
}

bool SignalBuffer::fresh() const
{
  return std::none_of(
    signals_.begin(), signals_.end(), [this](const Held & signal) {
      const bool slow = signal.sensor && signal.channel.data.period > 0;
      return signal.missing || (slow && last_ >= signal.due);
    });
}

bool SignalBuffer::is_past(std::int64_t now) const
{
  return std::all_of(
    signals_.begin(), signals_.end(), [now](const Held & signal) {return !signal.known || signal.stamp <= now;});
}

std::vector<Arrivals> SignalBuffer::arrivals() const
{
  const std::lock_guard<std::mutex> lock(told_);
  std::vector<Arrivals> found;
  for (const auto & one : arrivals_) {
    found.push_back(*one);
  }
  return found;
}

std::string SignalBuffer::complaints() const
{
  std::string text;
  for (const Arrivals & one : arrivals()) {
    if (!one.complaint.empty()) {
      text += (text.empty() ? "" : "; ") + one.topic + ": " + one.complaint;
    }
  }
  return text;
}

std::string SignalBuffer::absent() const
{
  std::string text;
  for (const Arrivals & one : arrivals()) {
    if (one.count == 0 || !one.complaint.empty()) {
      text += (text.empty() ? "no message on " : ", ") + one.topic;
    }
  }
  return text;
}

}  // namespace robo_rl_controller
