// SPDX-License-Identifier: Apache-2.0
#include "policy_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>

#include <pluginlib/class_list_macros.hpp>

#include "../node/errors.hpp"
#include "interface_values.hpp"
#include "topic_input.hpp"

namespace robo_rl_controller
{
namespace
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;
using Strings = std::vector<std::string>;
constexpr auto LOOK = std::chrono::milliseconds(20);
constexpr double RATE_TOLERANCE = 0.01;
constexpr std::int64_t SLOW_TIME = 5000000;  // µs that the slowest of the gate's own moves takes

}  // namespace

/// Where one signal comes from.
struct PolicyController::Input
{
  std::vector<float> values;
  /// The first of its state interfaces, and their number; 0: a topic or a constant.
  std::size_t first = 0, count = 0;
  std::shared_ptr<TopicInput> topic;
  bool constant = false, perishable = false;
};

PolicyController::PolicyController() = default;
PolicyController::~PolicyController() = default;

CallbackReturn PolicyController::on_init()
{
  try {
    auto_declare<std::string>("bundle", "");
    auto_declare<std::string>("digest", "");
    auto_declare<std::string>("mode", "dry_run");
    auto_declare<Strings>("wires", {""});
    auto_declare<Strings>("command_wires", {""});
    auto_declare<Strings>("setpoints", {""});
    auto_declare<Strings>("gains", {""});
    auto_declare<double>("cmd_vel_timeout", 0.5);
    auto_declare<double>("activate_timeout", 10.0);
    auto_declare<bool>("fault_is_error", false);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn PolicyController::on_configure(const rclcpp_lifecycle::State &)
{
  try {
    configure();
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "configure refused: %s", error.what());
    return CallbackReturn::FAILURE;
  }
  return CallbackReturn::SUCCESS;
}

void PolicyController::configure()
{
  auto & node = *get_node();
  const std::string path = node.get_parameter("bundle").as_string();
  const auto seconds = [&node](const char * name) {
      return checked_seconds(name, node.get_parameter(name).as_double());
    };
  cmd_vel_timeout_ = seconds("cmd_vel_timeout");
  activate_timeout_ = seconds("activate_timeout");
  fault_is_error_ = node.get_parameter("fault_is_error").as_bool();
  simulated_ = node.get_parameter("use_sim_time").as_bool();
  bundle_ = std::make_unique<Bundle>(path, node.get_parameter("digest").as_string());
  session_ = std::make_unique<Session>(*bundle_, mode_of(node.get_parameter("mode").as_string()));
  const double wanted = 1.0 / bundle_->data().control_period;
  if (std::fabs(get_update_rate() - wanted) > RATE_TOLERANCE * wanted) {
    std::ostringstream text;
    text << "update_rate is " << get_update_rate() << " Hz; the contract's rate is " << wanted << " Hz";
    throw RosError(text.str());
  }
  wire_signals();
  wire_commands();
  topics_ = std::make_unique<GateTopics>(node, "~/", path);
  Strings wires = node.get_parameter("wires").as_string_array();
  const Strings commands = node.get_parameter("command_wires").as_string_array();
  wires.insert(wires.end(), commands.begin(), commands.end());
  topics_->contract(bundle_->data(), wires);
  is_shown_ = false;
  heartbeat_ = node.create_subscription<std_msgs::msg::Empty>(
    "~/heartbeat", rclcpp::QoS(1).best_effort(),
    [this](const std_msgs::msg::Empty &) {operator_stamp_ = now_us();});
  offer_services();
  timer_ = node.create_wall_timer(LOOK, [this] {tell();});
}

// --- wires ----------------------------------------------------------------------------------------------------------

void PolicyController::wire_signals()
{
  auto & node = *get_node();
  const robot_bundle & data = bundle_->data();
  const auto texts = texts_by_name(node.get_parameter("wires").as_string_array(), "parameter 'wires'");
  const auto constants = texts_by_name(node.get_parameter("setpoints").as_string_array(), "parameter 'setpoints'");
  require_known(texts, data.signals, data.gate->signal_count, "parameter 'wires'");
  require_known(constants, data.signals, data.gate->signal_count, "parameter 'setpoints'");
  inputs_.clear();
  frames_ = std::make_shared<Frames>();
  state_names_.clear();
  inputs_.resize(data.gate->signal_count);
  samples_.resize(data.gate->signal_count);
  for (std::size_t i = 0; i < inputs_.size(); i++) {
    Input & input = inputs_[i];
    const Channel channel(data.signals[i]);
    input.values.resize(channel.size);
    if (data.signals[i].computed) {
      continue;
    }
    if (const auto constant = constants.find(channel.name); constant != constants.end()) {
      const std::vector<double> given = numbers(
        constant->second, channel.size, "parameter 'setpoints': '" + channel.name + "'",
        std::to_string(channel.size) + " numbers");
      std::copy(given.begin(), given.end(), input.values.begin());
      input.constant = true;
      continue;
    }
    const auto text = texts.find(channel.name);
    if (text == texts.end()) {
      throw RosError("parameter 'wires' has no entry for the signal '" + channel.name + "'");
    }
    const Wire wire(channel.name, text->second);
    const Strings names = state_names(channel, wire);
    input.first = state_names_.size();
    input.count = names.size();
    state_names_.insert(state_names_.end(), names.begin(), names.end());
    if (names.empty()) {
      const bool sensor = data.gate->signals[i].sensor;
      input.perishable = !sensor && wire.topic == "cmd_vel";
      input.topic = std::make_shared<TopicInput>(
        channel, data.gate->signals[i], wire, frames_, [this] {return now_us();});
      input.topic->subscribe(
        node, [this, sensor](std::int64_t now) {
          if (!sensor) {
            operator_stamp_ = now;
          }
        });
    }
  }
}

void PolicyController::wire_commands()
{
  const auto texts = [this](const char * name) {
      return texts_by_name(get_node()->get_parameter(name).as_string_array(), std::string("parameter '") + name + "'");
    };
  commands_ = command_interfaces(bundle_->data(), texts("command_wires"), texts("gains"));
}

InterfaceConfiguration PolicyController::state_interface_configuration() const
{
  return {controller_interface::interface_configuration_type::INDIVIDUAL, state_names_};
}

InterfaceConfiguration PolicyController::command_interface_configuration() const
{
  return {controller_interface::interface_configuration_type::INDIVIDUAL, commands_.names};
}

// --- the control loop -----------------------------------------------------------------------------------------------

std::int64_t PolicyController::now_us() const
{
  if (simulated_) {
    return get_node()->now().nanoseconds() / 1000;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

CallbackReturn PolicyController::on_activate(const rclcpp_lifecycle::State &)
{
  if (state_interfaces_.size() != state_names_.size() || command_interfaces_.size() != commands_.names.size()) {
    RCLCPP_ERROR(get_node()->get_logger(), "the hardware lacks interfaces of the contract");
    return CallbackReturn::FAILURE;
  }
  session_->restart(session_->mode());  // others may have moved the robot meanwhile
  requests_ = GATE_REQUEST_NONE;
  arms_until_ = now_us() + static_cast<std::int64_t>(1e6 * activate_timeout_);
  faulted_ = GATE_NEVER;
  return CallbackReturn::SUCCESS;
}

/// No more updates come: the last command is what a stop can be in one step.
CallbackReturn PolicyController::on_deactivate(const rclcpp_lifecycle::State &)
{
  requests_ = GATE_REQUEST_NONE;
  arms_until_ = GATE_NEVER;
  const std::int64_t now = now_us();
  read(now);
  Given given;
  given.now = now;
  given.samples = samples_.data();
  given.requests = GATE_REQUEST_DISARM;
  given.operator_stamp = operator_stamp_;
  const Decision & decision = session_->decide(given, nullptr, now);
  if (decision.send != nullptr) {
    write(session_->last_resort(), GATE_SOURCE_STOP);
  }
  settle(decision, GATE_REQUEST_DISARM);
  return CallbackReturn::SUCCESS;
}

CallbackReturn PolicyController::on_cleanup(const rclcpp_lifecycle::State &)
{
  const std::lock_guard<std::mutex> lock(configured_);
  timer_.reset();
  services_.clear();
  heartbeat_.reset();
  topics_.reset();
  inputs_.clear();
  session_.reset();
  bundle_.reset();
  return CallbackReturn::SUCCESS;
}

void PolicyController::read(std::int64_t now)
{
  for (std::size_t i = 0; i < inputs_.size(); i++) {
    Input & input = inputs_[i];
    if (input.topic != nullptr) {
      const TopicInput::Reading & newest = input.topic->newest();
      const bool known = !newest.values.empty();
      const bool over = known && input.perishable &&
        static_cast<double>(now - newest.stamp) > 1e6 * cmd_vel_timeout_;  // who is silent wants nothing
      samples_[i] = {!known ? nullptr : over ? input.values.data() : newest.values.data(), over ? now : newest.stamp};
      continue;
    }
    for (std::size_t k = 0; k < input.count; k++) {
      input.values[k] = static_cast<float>(value_of(state_interfaces_[input.first + k]));
    }
    samples_[i] = {input.count > 0 || input.constant ? input.values.data() : nullptr, now};
  }
}

/// All that is commanded, or, for null, nothing.
void PolicyController::write(const float * command, gate_source source)
{
  if (command == nullptr) {
    return;
  }
  const gate_config & gate = *bundle_->data().gate;
  const auto set = [this](std::size_t at, double value) {
      static_cast<void>(command_interfaces_[at].set_value(value));  // a release without a result has none to look at
    };
  for (std::size_t i = 0; i < gate.command_size; i++) {
    set(i, static_cast<double>(command[i]));
  }
  const bool stops = source == GATE_SOURCE_STOP || source == GATE_SOURCE_SAFE;
  for (std::size_t i = 0; i < commands_.gains.size(); i++) {
    const bool damped =
      source == GATE_SOURCE_DAMP || (stops && gate.stop[commands_.gains[i].element] == GATE_STOP_DAMP);
    set(gate.command_size + 2 * i, damped ? 0.0 : commands_.gains[i].stiffness);
    set(gate.command_size + 2 * i + 1, damped ? commands_.gains[i].damping_in_a_stop : commands_.gains[i].damping);
  }
}

return_type PolicyController::update(const rclcpp::Time &, const rclcpp::Duration &)
{
  const std::int64_t now = now_us();
  read(now);
  std::uint8_t heard = requests_.exchange(GATE_REQUEST_NONE);
  arms_until_ = heard != GATE_REQUEST_NONE ? GATE_NEVER : arms_until_;  // an operator has decided
  heard = static_cast<std::uint8_t>(heard | arming(now));
  Given given;
  given.now = now;
  given.samples = samples_.data();
  given.requests = heard;
  given.operator_stamp = operator_stamp_;
  const Decision & decision = session_->update(given);
  write(decision.send, decision.source);
  settle(decision, heard);
  return fault_is_error_ && is_over(decision) ? return_type::ERROR : return_type::OK;
}

/// What an activation requests: to arm, as soon as all topics have been heard and nothing is awaited any more, or when
/// its time is over.
std::uint8_t PolicyController::arming(std::int64_t now)
{
  if (arms_until_ == GATE_NEVER) {
    return GATE_REQUEST_NONE;
  }
  bool complete = !is_awaited(session_->obstacle());
  for (std::size_t i = 0; i < inputs_.size(); i++) {
    complete = complete && (inputs_[i].topic == nullptr || samples_[i].values != nullptr);
  }
  if (!complete && now < arms_until_) {
    return GATE_REQUEST_NONE;
  }
  arms_until_ = GATE_NEVER;
  return GATE_REQUEST_ARM;
}

/// Whether a fault's stop has come to its end, or, as damping has none, has had its time.
bool PolicyController::is_over(const Decision & decision)
{
  if (decision.state != GATE_FAULT) {
    faulted_ = GATE_NEVER;
    return false;
  }
  faulted_ = faulted_ == GATE_NEVER ? decision.time : faulted_;
  return session_->at_rest() || decision.time - faulted_ > SLOW_TIME;
}

/// Tell the other threads, unless one of them is just reading: then at the next step.
void PolicyController::settle(const Decision & decision, std::uint8_t heard)
{
  heard_ = static_cast<std::uint8_t>(heard_ | heard);
  const bool changed = !is_shown_ || decision.state != shown_.state || decision.source != shown_.source ||
    decision.mode != shown_.mode || decision.problem.reason != shown_.problem.reason;
  const std::unique_lock<std::mutex> lock(told_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return;
  }
  if (const int wanted = rung_wanted_.exchange(0); wanted != 0) {
    rung_ = wanted > 0 ? session_->promote() : session_->demote();
  }
  if (heard_ != 0) {
    answer_ = decision;
    heard_ = 0;
  }
  if (changed) {
    change_ = shown_ = decision;
    is_shown_ = true;
  }
}

}  // namespace robo_rl_controller

PLUGINLIB_EXPORT_CLASS(robo_rl_controller::PolicyController, controller_interface::ControllerInterface)
