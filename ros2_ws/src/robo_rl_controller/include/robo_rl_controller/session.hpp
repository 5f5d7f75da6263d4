// SPDX-License-Identifier: Apache-2.0
// The engine that runs a robot: policy, gate, and the ladder to live, once per control period.
//
//   Bundle bundle("./policy.x86_64.so");
//   Session session(bundle);
//   const Decision & decision = session.update(given);
//   if (decision.send != nullptr) send it to the actuators
//
// The twin of deploy/robot/session.py. Nothing in `update` allocates, locks or throws. One thread calls a session.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "robo_rl_controller/attitude.hpp"
#include "robo_rl_controller/bundle.hpp"
#include "robo_rl_controller/policy.hpp"
#include "robo_rl_controller/sample.hpp"

namespace robo_rl_controller
{

/// The ladder, from the ground up. In the first two nothing is ever to be sent.
enum class Mode : std::uint8_t { dry_run, shadow, blend, live };

/// What one step is given. Times are µs of one monotonic clock.
struct Given
{
  std::int64_t now = 0;
  /// The newest sample of every signal, in the contract's order. Those of signals that are ages are not read.
  const Sample * samples = nullptr;
  /// enum gate_request, several by "or"
  std::uint8_t requests = GATE_REQUEST_NONE;
  /// When the operator was last heard.
  std::int64_t operator_stamp = GATE_NEVER;
  /// Whether the bundle's file is still the one that was verified.
  bool intact = true;
  /// (M,) what a classical controller would do in the policy's place, for "blend"; null: nothing.
  const float * controller = nullptr;
  /// (M,) what brings the robot to rest after a fault, where the contract's reaction is a controller; null: nothing.
  const float * landing = nullptr;
};

/// What one step came to. Arrays are the session's, valid until its next step.
struct Decision
{
  std::int64_t time = 0;
  /// (M,) what must be sent now; null: nothing, the mode does not allow it, or the robot was never armed.
  const float * send = nullptr;
  /// (M,) the gate's command, in every mode.
  const float * command = nullptr;
  /// (M,) what the policy itself proposed; null: it refused.
  const float * policy = nullptr;
  /// Why it refused.
  Refusal refusal;
  /// Why the session itself requested a stop, or why a request to arm did not reach the gate.
  Doubt doubt;
  gate_problem problem{GATE_REASON_NONE, -1, -1};
  gate_state state = GATE_IDLE;
  gate_source source = GATE_SOURCE_SILENT;
  /// enum gate_event, several by "or"
  std::uint8_t events = GATE_EVENT_NONE;
  Mode mode = Mode::dry_run;
  /// Part of the command that is the policy's.
  double authority = 1.0;
};

/// Whether a problem goes by itself, as signals, the clock and the operator arrive: until then arming has to wait.
constexpr bool is_awaited(const gate_problem & problem) noexcept
{
  return problem.reason == GATE_REASON_OPERATOR_LOST || problem.reason == GATE_REASON_CLOCK ||
         problem.reason == GATE_REASON_SIGNAL_MISSING || problem.reason == GATE_REASON_SIGNAL_STALE;
}

/// Whether a change of the mode was made, and a sentence about it.
struct Answer
{
  bool done;
  const char * sentence;
};

class Session
{
public:
  /// `controller`: whether `Given` will bring a classical controller's commands. `blend_time` (s) is how long the
  /// policy's authority takes from 0 to 1. The bundle must outlive the session. std::invalid_argument for a blend_time
  /// that is not above 0, and for the mode "blend" without a controller.
  explicit Session(
    const Bundle & bundle, Mode mode = Mode::dry_run, bool controller = false, double blend_time = 5.0);
  Session(const Session &) = delete;
  Session & operator=(const Session &) = delete;

  /// One control period.
  const Decision & update(const Given & given) noexcept;

  /// The gate's answer to a command (M,) from elsewhere, proposed at `stamp`; null: there is none. `update` without
  /// the policy.
  const Decision & decide(const Given & given, const float * command, std::int64_t stamp) noexcept;

  /// Between two steps, by the thread that makes them: one rung up, if that is safe now.
  Answer promote() noexcept;
  /// Between two steps: as a new session, in this mode. What was sent before is forgotten, so the next arming begins
  /// where the actuators are measured.
  void restart(Mode mode) noexcept;
  /// Away from live. Unless the gate is IDLE, the controller takes over; then, nothing is sent any more.
  Answer demote() noexcept;

  /// Between two steps, in IDLE or FAULT: why the gate would not arm, if it were requested to on what the last step was
  /// given. Before the first step all signals are missing.
  gate_problem obstacle() noexcept;

  /// Whether the robot is stopped and its stop has come to an end; also before the first arming. Damping has no end.
  bool at_rest() const noexcept;
  /// (M,) what to send where not even the gate can be asked: off what can be off, the rest as it was sent last. Null:
  /// before the first arming, and in a mode in which nothing is to be sent. Valid until the next call.
  const float * last_resort() noexcept;

  Mode mode() const noexcept {return mode_;}
  double authority() const noexcept {return authority_;}
  gate_state state() const noexcept {return static_cast<gate_state>(gate_.memory.state);}
  const robot_bundle & bundle() const noexcept {return bundle_;}

  /// A decision's problem, refusal or doubt as a sentence; not for the control thread, they allocate.
  std::string explain(const gate_problem & problem) const;
  std::string explain(const Refusal & refusal) const;
  std::string explain(const Doubt & doubt) const;

private:
  /// The gate's memory with its arrays, sized by the contract. Assigning one to another allocates nothing.
  struct Gate
  {
    explicit Gate(const robot_bundle & bundle);
    Gate & operator=(const Gate & other) noexcept;

    std::vector<float> command, reference, values;
    std::vector<std::int64_t> stamps, changed;
    gate_memory memory;
  };

  bool publishes() const noexcept {return mode_ == Mode::blend || mode_ == Mode::live;}
  void set_mode(Mode mode) noexcept;
  void flatten(const Given & given) noexcept;
  const float * blend(const float * own, const float * other) noexcept;

  const robot_bundle & bundle_;
  Policy policy_;
  AttitudeMonitor attitudes_;
  Mode mode_ = Mode::dry_run;
  bool controller_;
  bool rising_ = true;
  double authority_ = 1.0;
  double blend_time_;
  std::vector<float> blank_, signals_, blended_, last_;
  std::vector<std::int64_t> stamps_;
  Gate gate_, trial_;
  /// Of the last step; without signals before the first one.
  gate_input input_{};
  Decision decision_;
};

}  // namespace robo_rl_controller
