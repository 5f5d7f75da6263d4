// SPDX-License-Identifier: Apache-2.0
#include "robo_rl_controller/session.hpp"

#include <algorithm>
#include <stdexcept>

namespace robo_rl_controller
{

Session::Gate::Gate(const robot_bundle & bundle)
: command(bundle.gate->command_size),
  reference(bundle.gate->command_size),
  values(bundle.signal_size),
  stamps(bundle.gate->signal_count),
  changed(bundle.gate->signal_count)
{
  const gate_arrays arrays{command.data(), reference.data(), values.data(), stamps.data(), changed.data()};
  bundle.gate_start(bundle.gate, &memory, &arrays);
}

Session::Gate & Session::Gate::operator=(const Gate & other) noexcept
{
  const gate_arrays own = memory.at;
  std::copy(other.command.begin(), other.command.end(), command.begin());
  std::copy(other.reference.begin(), other.reference.end(), reference.begin());
  std::copy(other.values.begin(), other.values.end(), values.begin());
  std::copy(other.stamps.begin(), other.stamps.end(), stamps.begin());
  std::copy(other.changed.begin(), other.changed.end(), changed.begin());
  memory = other.memory;
  memory.at = own;
  return *this;
}

Session::Session(const Bundle & bundle, Mode mode, bool controller, double blend_time)
: bundle_(bundle.data()),
  policy_(bundle_),
  attitudes_(bundle_),
  controller_(controller),
  blend_time_(blend_time),
  blank_(blanks(bundle_)),
  signals_(bundle_.signal_size),
  blended_(bundle_.gate->command_size),
  last_(bundle_.gate->command_size),
  stamps_(bundle_.gate->signal_count),
  gate_(bundle_),
  trial_(bundle_)
{
  if (!(blend_time > 0.0)) {
    throw std::invalid_argument("blend_time is " + std::to_string(blend_time) + " s; expected more than 0");
  }
  if (mode == Mode::blend && !controller) {
    throw std::invalid_argument("mode is 'blend', but this robot has no classical controller");
  }
  restart(mode);
}

void Session::restart(Mode mode) noexcept
{
  const gate_arrays arrays = gate_.memory.at;
  bundle_.gate_start(bundle_.gate, &gate_.memory, &arrays);
  input_ = gate_input();
  policy_.reset();
  attitudes_.reset();
  decision_ = Decision();
  set_mode(mode);
}

void Session::set_mode(Mode mode) noexcept
{
  mode_ = mode;
  authority_ = mode == Mode::blend ? 0.0 : 1.0;
  rising_ = true;
}

/// All signals of the contract as the policy and the gate see them now.
void Session::flatten(const Given & given) noexcept
{
  bool waits = false;
  for (std::size_t i = 0; i < stamps_.size(); i++) {
    waits = waits || bundle_.signals[i].waits;
  }
  for (std::size_t i = 0; i < stamps_.size(); i++) {
    const robot_channel & signal = bundle_.signals[i];
    const Sample & sample = given.samples[i];
    const bool known = !signal.computed && sample.values != nullptr && (!waits || sample.stamp >= 0);
    const float * from = known ? sample.values : &blank_[signal.offset];
    stamps_[i] = known ? sample.stamp : GATE_NEVER;
    std::copy(from, from + signal.size, &signals_[signal.offset]);
  }
  bundle_.held_complete(bundle_.held, signals_.data(), stamps_.data(), given.now);
}

/// (1 − authority) of the controller and authority of the policy.
const float * Session::blend(const float * own, const float * other) noexcept
{
  if (mode_ != Mode::blend) {
    return own;
  }
  if (state() == GATE_ACTIVE) {
    const double change = bundle_.control_period / blend_time_;
    authority_ = std::min(1.0, std::max(0.0, authority_ + (rising_ ? change : -change)));
  }
  if (own == nullptr || other == nullptr) {
    return nullptr;
  }
  const float authority = static_cast<float>(authority_);
  for (std::size_t i = 0; i < blended_.size(); i++) {
    blended_[i] = other[i] + authority * (own[i] - other[i]);
  }
  return blended_.data();
}

const Decision & Session::update(const Given & given) noexcept
{
  if (state() != GATE_ACTIVE) {
    policy_.reset();  // a take-over begins with the memory of the contract
  }
  const float * command = policy_.step(given.samples, given.now);
  decide(given, command, given.now);
  decision_.refusal = policy_.refusal();
  return decision_;
}

const Decision & Session::decide(const Given & given, const float * command, std::int64_t stamp) noexcept
{
  Doubt doubt = attitudes_.jump(given.samples);
  std::uint8_t requests = given.requests;
  if (doubt.kind != Doubt::Kind::none && (state() == GATE_READY || state() == GATE_ACTIVE)) {
    requests = static_cast<std::uint8_t>(requests | GATE_REQUEST_HALT);
  } else {
    doubt = (requests & GATE_REQUEST_ARM) != 0 ? attitudes_.strange(given.samples) : Doubt();
    if (doubt.kind != Doubt::Kind::none) {
      requests = static_cast<std::uint8_t>(requests & ~GATE_REQUEST_ARM);
    }
  }
  flatten(given);
  const float * blended = blend(command, given.controller);
  input_ = {
    given.now, signals_.data(), stamps_.data(), blended, stamp, given.landing, given.operator_stamp, given.intact,
    requests};
  const gate_output out = bundle_.gate_step(bundle_.gate, &gate_.memory, &input_);
  decision_ = Decision();
  decision_.time = given.now;
  decision_.send = publishes() && out.source != GATE_SOURCE_SILENT ? out.command : nullptr;
  decision_.command = out.command;
  decision_.policy = command;
  decision_.doubt = doubt;
  decision_.problem = out.problem;
  decision_.state = static_cast<gate_state>(out.state);
  decision_.source = static_cast<gate_source>(out.source);
  decision_.events = out.events;
  decision_.mode = mode_;
  decision_.authority = authority_;
  return decision_;
}

gate_problem Session::obstacle() noexcept
{
  if (input_.signals == nullptr) {
    return {GATE_REASON_SIGNAL_MISSING, -1, -1};
  }
  gate_input input = input_;
  input.command = input.fallback = nullptr;  // the caller's, which may be gone; arming does not look at them
  input.requests = GATE_REQUEST_ARM;
  trial_ = gate_;
  return bundle_.gate_step(bundle_.gate, &trial_.memory, &input).problem;
}

bool Session::at_rest() const noexcept
{
  if (gate_.memory.reaction == GATE_SOURCE_SILENT) {
    return true;
  }
  if ((state() != GATE_IDLE && state() != GATE_FAULT) || gate_.memory.reaction != bundle_.gate->stopped) {
    return false;
  }
  for (std::size_t i = 0; i < gate_.command.size(); i++) {
    const std::uint8_t stop = bundle_.gate->stop[i];
    const bool ended = stop == GATE_STOP_RAMP ? gate_.reference[i] == bundle_.gate->safe[i] : stop != GATE_STOP_DAMP;
    if (!ended || gate_.command[i] != gate_.reference[i]) {
      return false;
    }
  }
  return true;
}

const float * Session::last_resort() noexcept
{
  if (!publishes() || gate_.memory.reaction == GATE_SOURCE_SILENT) {
    return nullptr;
  }
  for (std::size_t i = 0; i < last_.size(); i++) {
    last_[i] = bundle_.gate->stop[i] == GATE_STOP_OFF ? bundle_.gate->safe[i] : gate_.command[i];
  }
  return last_.data();
}

Answer Session::promote() noexcept
{
  if (mode_ == Mode::blend) {
    if (rising_ && authority_ == 1.0) {
      mode_ = Mode::live;
      return {true, "mode is now 'live'"};
    }
    rising_ = true;
    return {true, "the policy's authority rises; promote again when it is 1"};
  }
  if (mode_ == Mode::live) {
    return {false, "mode is 'live', the highest"};
  }
  if (mode_ == Mode::dry_run) {
    set_mode(Mode::shadow);
    return {true, "mode is now 'shadow'"};
  }
  if (state() == GATE_FAULT) {
    return {false, "the gate is FAULT; reset it first"};
  }
  if (state() != GATE_IDLE) {
    return {false, state() == GATE_READY ? "the gate is READY; disarm before commands are sent" :
      "the gate is ACTIVE; disarm before commands are sent"};
  }
  set_mode(controller_ ? Mode::blend : Mode::live);
  return {true, controller_ ? "mode is now 'blend'" : "mode is now 'live'"};
}

Answer Session::demote() noexcept
{
  if (publishes() && state() != GATE_IDLE) {
    if (!controller_) {
      return {false, "this robot has no classical controller to take over; stop or disarm instead"};
    }
    mode_ = Mode::blend;
    rising_ = false;
    if (state() == GATE_ACTIVE) {
      return {true, "the policy's authority falls to 0"};
    }
    authority_ = 0.0;  // nothing moves: there is nothing to blend
    return {true, state() == GATE_FAULT ?
      "mode is now 'blend', the policy's authority 0; the gate is FAULT" :
      "mode is now 'blend', the policy's authority 0; the gate is READY"};
  }
  set_mode(Mode::dry_run);
  return {true, "mode is now 'dry_run'"};
}

}  // namespace robo_rl_controller
