// SPDX-License-Identifier: Apache-2.0
// A managed node that runs a compiled bundle on a robot: the Python node's topics, services, life cycle and gate, on rcl.
//
//   policy_node --ros-args --params-file policy.yaml -p mode:=live
//
// configure loads the library, which reproduces its golden vectors, and listens. activate arms; ~/engage lets the policy
// take over. deactivate, an error and the end of the process stop the robot as its contract says.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>

#include <lifecycle_msgs/msg/state.hpp>
#include <lifecycle_msgs/msg/transition.hpp>
#include <rcutils/logging_macros.h>
#include <std_msgs/msg/string.hpp>
#include <std_srvs/srv/trigger.hpp>

#include "control.hpp"
#include "lifecycle.hpp"
#include "parameters.hpp"
#include "status.hpp"
#include "status_topics.hpp"

namespace robo_rl_controller
{
namespace
{

using diagnostic_msgs::msg::DiagnosticArray;
using lifecycle_msgs::msg::State;
using lifecycle_msgs::msg::Transition;
using std_msgs::msg::String;
using std_srvs::srv::Trigger;
constexpr std::int64_t LOOK = 50000;      // µs between two looks at what else there is to do
constexpr std::int64_t REPORT = 1000000;  // µs between two diagnostics
constexpr double PART = 0.5;              // of a control period that a step may take
constexpr int TRIALS = 200;

std::atomic<int> signals{0};
void on_signal(int)
{
  ++signals;
}

/// What changes when a file does.
struct Fingerprint
{
  explicit Fingerprint(const std::string & path)
  {
    struct stat found {};
    there = stat(path.c_str(), &found) == 0;
    inode = found.st_ino;
    size = found.st_size;
    ns = found.st_mtim.tv_sec * std::int64_t{1000000000} + found.st_mtim.tv_nsec;
  }
  bool operator==(const Fingerprint & other) const
  {
    return there == other.there && inode == other.inode && size == other.size && ns == other.ns;
  }
  bool there;
  ino_t inode;
  off_t size;
  std::int64_t ns;
};

/// Median s of a step on signals that are nothing special.
double measure(const Bundle & bundle)
{
  Session session(bundle);
  std::vector<float> values = blanks(bundle.data());
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < bundle.data().gate->signal_count; i++) {
    float * value = &values[bundle.data().signals[i].offset];
    if (bundle.data().gate->signals[i].quaternion) {
      value[3] = 1.0f;
    }
    samples.push_back({value, 0});
  }
  std::vector<std::int64_t> times;
  for (int i = 0; i < TRIALS; i++) {
    const std::int64_t begun = monotonic_us();
    Given given;
    given.now = i * bundle.data().gate->period;
    given.samples = samples.data();
    session.update(given);
    times.push_back(monotonic_us() - begun);
  }
  std::nth_element(times.begin(), times.begin() + TRIALS / 2, times.end());
  return 1e-6 * static_cast<double>(times[TRIALS / 2]);
}

/// All that there is between configure and cleanup.
struct Work
{
  Work(Node & node, const Parameters & parameters, Bell & bell)
  : bundle(parameters.bundle, parameters.digest),
    file(parameters.bundle),
    clocks(parameters.use_sim_time),
    session(bundle, mode_of(parameters.mode)),
    buffer(
      node, bundle.data(), clocks, parameters.wires, parameters.setpoints, parameters.cmd_vel_timeout),
    control(
      node, session, buffer, clocks,
      make_outlets(
        node, bundle.data(), parameters.command_wires, 1e-6 * static_cast<double>(bundle.data().gate->timeout)), bell)
  {
    const std::string robot = bundle.data().robot;
    if (!parameters.robot.empty() && parameters.robot != robot) {
      throw RosError(
              parameters.bundle + ": it is for the robot '" + robot + "'; expected '" + parameters.robot + "'");
    }
    const double took = measure(bundle), allowed = PART * bundle.data().control_period;
    if (took > allowed) {
      throw RosError(
              parameters.bundle + ": a step takes " + std::to_string(1e3 * took) + " ms on this computer; expected at "
              "most " + std::to_string(1e3 * allowed) + " ms");
    }
    const std::string base = parameters.bundle.substr(parameters.bundle.rfind('/') + 1);
    name = base.substr(0, base.find('.'));
  }

  Bundle bundle;
  Fingerprint file;
  Clocks clocks;
  Session session;
  SignalBuffer buffer;
  Control control;
  std::string name;
};

class PolicyNode
{
public:
  PolicyNode(int argc, char ** argv)
  : node_(argc, argv, "policy"),
    parameters_(node_),
    bell_(node_),
    lifecycle_(node_, [this](std::uint8_t transition) {return work(transition);}),
    gate_(node_, "~/gate", latched()),
    refusal_(node_, "~/refusal", latched()),
    contract_(node_, "~/contract", latched()),
    diagnostics_(node_, "/diagnostics", rmw_qos_profile_default),
    status_topics_(node_),
    servers_(lifecycle_.servers())
  {
    offer("arm", [this](auto & response) {request(GATE_REQUEST_ARM, GATE_READY, response);});
    offer("engage", [this](auto & response) {request(GATE_REQUEST_ACTIVATE, GATE_ACTIVE, response);});
    offer("disarm", [this](auto & response) {request(GATE_REQUEST_DISARM, GATE_IDLE, response);});
    offer("stop", [this](auto & response) {request(GATE_REQUEST_STOP, GATE_FAULT, response);});
    offer("reset", [this](auto & response) {request(GATE_REQUEST_RESET, GATE_IDLE, response);});
    offer("promote", [this](auto & response) {ladder(true, response);});
    offer("demote", [this](auto & response) {ladder(false, response);});
    if (auto server = status_topics_.server([this](const auto & name, auto & told) {select(name, told);})) {
      servers_.push_back(std::move(server));
    }
  }

  ~PolicyNode() {unplug();}

  void spin()
  {
    std::vector<rcl_service_t *> services;
    for (const auto & server : servers_) {
      services.push_back(&server->handle());
    }
    WaitSet set(node_, 0, services.size());
    std::vector<bool> ready(services.size());
    if (!StatusTopics::on) {
      RCUTILS_LOG_INFO_NAMED(
        node_.logger(), "compiled without the package robo_rl_msgs: JSON alone tells the state; build it ('robo-rl ros "
        "messages', or colcon), and the node again");
    }
    RCUTILS_LOG_INFO_NAMED(node_.logger(), "not configured yet; Ctrl-C stops the robot and ends it");
    while (signals == 0) {
      const bool heard = set.wait({}, services, bell_, 1000 * LOOK, ready);
      for (std::size_t i = 0; heard && i < ready.size(); i++) {
        if (ready[i]) {
          servers_[i]->answer();
        }
      }
      look();
    }
  }

private:
  template<class Act>
  void offer(const std::string & name, Act act)
  {
    auto answer = [act](const Trigger::Request &, Trigger::Response & response) {act(response);};
    servers_.push_back(std::make_unique<OwnServer<Trigger, decltype(answer)>>(node_, "~/" + name, answer));
  }

  // --- the life cycle -------------------------------------------------------------------------------------------

  bool work(std::uint8_t transition)
  {
    switch (transition) {
      case Transition::TRANSITION_CONFIGURE:
        return configure();
      case Transition::TRANSITION_ACTIVATE:
        return activate();
      case Transition::TRANSITION_DEACTIVATE:
        if (work_) {
          work_->control.retire();
        }
        return true;
      default:  // cleanup, the shutdowns
        unplug();
        return true;
    }
  }

  bool configure()
  {
    try {
      if (parameters_.bundle.empty()) {
        throw RosError("parameter 'bundle' is empty; expected the path of a library of 'robo-rl export FILE --native'");
      }
      work_ = std::make_unique<Work>(node_, parameters_, bell_);
    } catch (const std::exception & error) {
      refuse("configure", error.what());
      return false;
    }
    String contract;
    contract.data = work_->bundle.data().contract;
    contract_.publish(contract);
    std::vector<std::string> wires = parameters_.wires;
    wires.insert(wires.end(), parameters_.command_wires.begin(), parameters_.command_wires.end());
    status_topics_.contract(work_->bundle.data(), wires);
    last_ = Decision();
    last_.mode = mode_of(parameters_.mode);
    RCUTILS_LOG_INFO_NAMED(
      node_.logger(), "%s: digest %.12s", parameters_.bundle.c_str(), work_->bundle.data().bundle_digest);
    activating_until_ = parameters_.activate ? monotonic_us() + std::int64_t(1e6 * parameters_.activate_timeout) : 0;
    work_->control.start();
    return true;
  }

  bool activate()
  {
    Trigger::Response armed;
    request(GATE_REQUEST_ARM, GATE_READY, armed);
    if (!armed.success) {
      refuse("activate", armed.message);
      return false;
    }
    work_->control.enable();  // not before: a refusal sends nothing
    return true;
  }

  void unplug()
  {
    if (work_) {
      work_->control.leave(signals);
      work_->control.stop();
      tell();
      work_.reset();
    }
  }

  // --- requests -------------------------------------------------------------------------------------------------

  void request(std::uint8_t what, gate_state wanted, Trigger::Response & response)
  {
    response.success = false;
    if (!work_) {
      response.message = "the node is not configured";
      return;
    }
    if (const std::string broken = work_->control.broken(); !broken.empty()) {
      response.message = "the control loop failed: " + broken;
      return;
    }
    const std::optional<News> news = work_->control.request(what);
    if (!news) {
      response.message = work_->clocks.simulated ? "the control loop did not answer; does /clock come?" :
        "the control loop did not answer in time";
      return;
    }
    const Decision & decision = news->decision;
    const std::string state = name_of(decision.state);
    if ((decision.events & GATE_EVENT_REFUSED) != 0 || decision.state != wanted) {
      const std::string doubt = work_->session.explain(decision.doubt);
      response.message =
        "refused, the gate is " + state + ": " + (doubt.empty() ? sentence(work_->session, *news) : doubt);
      return;
    }
    response.success = true;
    response.message = "the gate is " + state;
  }

  void ladder(bool up, Trigger::Response & response)
  {
    if (!work_) {
      response.success = false;
      response.message = "the node is not configured";
      return;
    }
    const Answer answer = work_->control.ladder(up);
    response.success = answer.done;
    response.message = answer.sentence;
  }

  /// There is one policy.
  void select(const std::string & name, Trigger::Response & response) const
  {
    response.success = work_ && name == work_->name;
    response.message = !work_ ? "the node is not configured" : response.success ?
      "'" + name + "' is already active" : "'" + name + "' is not one of the policies ['" + work_->name + "']";
  }

  void refuse(const char * transition, const std::string & text)
  {
    RCUTILS_LOG_ERROR_NAMED(node_.logger(), "%s refused: %s", transition, text.c_str());
    String message;
    message.data = text;
    refusal_.publish(message);
  }

  // --- now and then ---------------------------------------------------------------------------------------------

  void look()
  {
    if (!work_) {
      return;
    }
    tell();
    const std::int64_t now = monotonic_us();
    if (activating_until_ != 0) {
      activate_by_itself(now);
    }
    if (now - reported_ < REPORT) {
      return;
    }
    reported_ = now;
    if (!(Fingerprint(parameters_.bundle) == work_->file) && work_->control.intact) {
      RCUTILS_LOG_ERROR_NAMED(
        node_.logger(), "%s: it is no longer the file that was verified", parameters_.bundle.c_str());
      work_->control.intact = false;
    }
    const Figures figures = work_->control.figures();
    diagnostics_.publish(
      diagnostics(
        node_.name(), work_->session, work_->buffer, figures, wrong(), work_->clocks.now(), work_->clocks.ros_ns()));
    status_topics_.status(last_, figures, work_->name, complaints(), work_->clocks.ros_ns());
  }

  std::vector<std::string> complaints() const
  {
    std::vector<std::string> found;
    for (const std::string & one : {work_->buffer.complaints(), work_->control.broken()}) {
      if (!one.empty()) {
        found.push_back(one);
      }
    }
    return found;
  }

  std::string wrong() const
  {
    const std::string broken = work_->control.broken();
    return broken.empty() ? last_sentence_ : "the control loop failed: " + broken;
  }

  /// What the gate has decided, to whoever wants to know.
  void tell()
  {
    for (const News & news : work_->control.news()) {
      const std::string text = sentence(work_->session, news);
      String message;
      message.data = gate_json(news, text, work_->name);
      gate_.publish(message);
      status_topics_.gate(news, text, work_->name, work_->clocks.ros_ns());
      last_ = news.decision;
      last_sentence_ = text;
      const char * state = name_of(news.decision.state);
      if (text.empty()) {
        RCUTILS_LOG_INFO_NAMED(node_.logger(), "%s, mode %s", state, name_of(news.decision.mode));
      } else {
        RCUTILS_LOG_ERROR_NAMED(node_.logger(), "%s: %s", state, text.c_str());
      }
    }
  }

  /// Activate as soon as signals, set-points, the operator and the clock are there.
  void activate_by_itself(std::int64_t now)
  {
    if (lifecycle_.state() != State::PRIMARY_STATE_INACTIVE) {
      activating_until_ = 0;
      return;
    }
    const std::string lacking = work_->control.lacking();
    if (!lacking.empty() && now <= activating_until_) {
      return;
    }
    activating_until_ = 0;
    if (lacking.empty()) {
      lifecycle_.change(Transition::TRANSITION_ACTIVATE);
    } else {
      std::ostringstream text;
      text << lacking << ", " << parameters_.activate_timeout << " s after configure (parameter activate_timeout)";
      refuse("activate", text.str());
    }
  }

  Node node_;
  Parameters parameters_;
  Bell bell_;
  Lifecycle lifecycle_;
  Publisher<String> gate_, refusal_, contract_;
  Publisher<DiagnosticArray> diagnostics_;
  StatusTopics status_topics_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::unique_ptr<Work> work_;
  std::int64_t activating_until_ = 0, reported_ = 0;
  /// What was told last; its arrays must not be read.
  Decision last_;
  std::string last_sentence_;
};

}  // namespace
}  // namespace robo_rl_controller

int main(int argc, char ** argv)
{
  std::signal(SIGINT, robo_rl_controller::on_signal);
  std::signal(SIGTERM, robo_rl_controller::on_signal);
  // Shared memory of a process that was killed may keep later ones from hearing each other: see ros/transport.py.
  setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4", 0);
  try {
    robo_rl_controller::PolicyNode(argc, argv).spin();
  } catch (const std::exception & error) {
    std::fprintf(stderr, "policy_node: %s\n", error.what());
    return 1;
  }
  return 0;
}
