// SPDX-License-Identifier: Apache-2.0
#include "lifecycle.hpp"

#include <lifecycle_msgs/msg/transition_event.h>

#include <lifecycle_msgs/srv/change_state.hpp>
#include <lifecycle_msgs/srv/get_available_states.hpp>
#include <lifecycle_msgs/srv/get_available_transitions.hpp>
#include <lifecycle_msgs/srv/get_state.hpp>

namespace robo_rl_controller
{
namespace
{

using lifecycle_msgs::srv::ChangeState;
using lifecycle_msgs::srv::GetAvailableStates;
using lifecycle_msgs::srv::GetAvailableTransitions;
using lifecycle_msgs::srv::GetState;

template<class Service>
const rosidl_service_type_support_t * support()
{
  return rosidl_typesupport_cpp::get_service_type_support_handle<Service>();
}

/// A service that the state machine owns.
template<class Service, class Answer>
class Lent final : public Server
{
public:
  Lent(rcl_service_t & service, Answer answer)
  : service_(service), answer_(std::move(answer)) {}
  rcl_service_t & handle() override {return service_;}
  void answer() override {answer_one<Service>(service_, answer_);}

private:
  rcl_service_t & service_;
  Answer answer_;
};

template<class Service, class Answer>
std::unique_ptr<Server> lend(rcl_service_t & service, Answer answer)
{
  return std::make_unique<Lent<Service, Answer>>(service, std::move(answer));
}

template<class Response>
void describe(const rcl_lifecycle_transition_t * transitions, unsigned int count, Response & response)
{
  for (unsigned int i = 0; i < count; i++) {
    auto & told = response.available_transitions.emplace_back();
    told.transition.id = static_cast<std::uint8_t>(transitions[i].id);
    told.transition.label = transitions[i].label;
    told.start_state.id = static_cast<std::uint8_t>(transitions[i].start->id);
    told.start_state.label = transitions[i].start->label;
    told.goal_state.id = static_cast<std::uint8_t>(transitions[i].goal->id);
    told.goal_state.label = transitions[i].goal->label;
  }
}

}  // namespace

Lifecycle::Lifecycle(Node & node, std::function<bool (std::uint8_t)> work)
: node_(node), work_(std::move(work))
{
  const rcl_lifecycle_state_machine_options_t options = rcl_lifecycle_get_default_state_machine_options();
  check(
    rcl_lifecycle_state_machine_init(
      &machine_, &node_.node, ROSIDL_GET_MSG_TYPE_SUPPORT(lifecycle_msgs, msg, TransitionEvent),
      support<ChangeState>(), support<GetState>(), support<GetAvailableStates>(), support<GetAvailableTransitions>(),
      support<GetAvailableTransitions>(), &options), "the life cycle does not start");
}

Lifecycle::~Lifecycle()
{
  ignore(rcl_lifecycle_state_machine_fini(&machine_, &node_.node));
}

bool Lifecycle::change(std::uint8_t transition)
{
  if (rcl_lifecycle_trigger_transition_by_id(&machine_, transition, true) != RCL_RET_OK) {
    rcl_reset_error();
    return false;
  }
  const bool done = work_(transition);
  ignore(
    rcl_lifecycle_trigger_transition_by_label(
      &machine_, done ? rcl_lifecycle_transition_success_label : rcl_lifecycle_transition_failure_label, true));
  return done;
}

std::vector<std::unique_ptr<Server>> Lifecycle::servers()
{
  rcl_lifecycle_com_interface_t & com = machine_.com_interface;
  std::vector<std::unique_ptr<Server>> found;
  found.push_back(
    lend<ChangeState>(
      com.srv_change_state, [this](const auto & request, auto & response) {
        std::uint8_t id = request.transition.id;
        if (id == 0 && !request.transition.label.empty()) {  // callers may name the transition instead
          const auto * named = rcl_lifecycle_get_transition_by_label(
            machine_.current_state, request.transition.label.c_str());
          if (named == nullptr) {
            response.success = false;
            return;
          }
          id = static_cast<std::uint8_t>(named->id);
        }
        response.success = change(id);
      }));
  found.push_back(
    lend<GetState>(
      com.srv_get_state, [this](const auto &, auto & response) {
        response.current_state.id = state();
        response.current_state.label = machine_.current_state->label;
      }));
  found.push_back(
    lend<GetAvailableStates>(
      com.srv_get_available_states, [this](const auto &, auto & response) {
        for (unsigned int i = 0; i < machine_.transition_map.states_size; i++) {
          auto & told = response.available_states.emplace_back();
          told.id = static_cast<std::uint8_t>(machine_.transition_map.states[i].id);
          told.label = machine_.transition_map.states[i].label;
        }
      }));
  found.push_back(
    lend<GetAvailableTransitions>(
      com.srv_get_available_transitions, [this](const auto &, auto & response) {
        describe(machine_.current_state->valid_transitions, machine_.current_state->valid_transition_size, response);
      }));
  found.push_back(
    lend<GetAvailableTransitions>(
      com.srv_get_transition_graph, [this](const auto &, auto & response) {
        describe(machine_.transition_map.transitions, machine_.transition_map.transitions_size, response);
      }));
  return found;
}

}  // namespace robo_rl_controller
