// SPDX-License-Identifier: Apache-2.0
#include "parameters.hpp"

#include <rcl/arguments.h>
#include <rcl_yaml_param_parser/parser.h>

#include <memory>

namespace robo_rl_controller
{
namespace
{

/// Whether parameters under `pattern` are for the node: "/**", its name, with or without its namespace.
bool is_for(const std::string & pattern, const Node & node)
{
  const std::string full = rcl_node_get_fully_qualified_name(&node.node);
  return pattern == "/**" || pattern == full || pattern == node.name() || pattern == std::string("/") + node.name() ||
         pattern == std::string("/**/") + node.name() || pattern == std::string("/*/") + node.name();
}

RosError wrong(const std::string & name, const std::string & expected)
{
  return RosError("parameter '" + name + "' has another type; expected " + expected);
}

class Setter
{
public:
  Setter(const std::string & name, const rcl_variant_t & given)
  : name_(name), given_(given) {}

  void into(std::string & value) const
  {
    if (given_.string_value == nullptr) {
      throw wrong(name_, "a text");
    }
    value = given_.string_value;
  }
  void into(bool & value) const
  {
    if (given_.bool_value == nullptr) {
      throw wrong(name_, "true or false");
    }
    value = *given_.bool_value;
  }
  void into(double & value) const
  {
    if (given_.double_value == nullptr && given_.integer_value == nullptr) {
      throw wrong(name_, "a number");
    }
    value = given_.double_value != nullptr ? *given_.double_value : static_cast<double>(*given_.integer_value);
  }
  void into(std::vector<std::string> & value) const
  {
    const rcutils_string_array_t * texts = given_.string_array_value;
    if (texts == nullptr) {
      throw wrong(name_, "a list of texts");
    }
    value.assign(texts->data, texts->data + texts->size);
  }

private:
  const std::string & name_;
  const rcl_variant_t & given_;
};

}  // namespace

Parameters::Parameters(Node & node)
{
  rcl_params_t * overrides = nullptr;
  check(rcl_arguments_get_param_overrides(&node.context.global_arguments, &overrides), "parameters");
  const std::unique_ptr<rcl_params_t, void (*)(rcl_params_t *)> owner(overrides, rcl_yaml_node_struct_fini);
  for (std::size_t i = 0; overrides != nullptr && i < overrides->num_nodes; i++) {
    if (!is_for(overrides->node_names[i], node)) {
      continue;
    }
    const rcl_node_params_t & group = overrides->params[i];
    for (std::size_t k = 0; k < group.num_params; k++) {
      const std::string name = group.parameter_names[k];
      const Setter given(name, group.parameter_values[k]);
      if (name == "bundle") {
        given.into(bundle);
      } else if (name == "digest") {
        given.into(digest);
      } else if (name == "robot") {
        given.into(robot);
      } else if (name == "mode") {
        given.into(mode);
      } else if (name == "wires") {
        given.into(wires);
      } else if (name == "command_wires") {
        given.into(command_wires);
      } else if (name == "setpoints") {
        given.into(setpoints);
      } else if (name == "cmd_vel_timeout") {
        given.into(cmd_vel_timeout);
        checked_seconds(name, cmd_vel_timeout);
      } else if (name == "use_sim_time") {
        given.into(use_sim_time);
      } else if (name == "activate") {
        given.into(activate);
      } else if (name == "activate_timeout") {
        given.into(activate_timeout);
        checked_seconds(name, activate_timeout);
      } else {
        throw RosError(
                "parameter '" + name + "' is unknown to this node; expected bundle, digest, robot, mode, wires, "
                "command_wires, setpoints, cmd_vel_timeout, use_sim_time, activate or activate_timeout. The Python "
                "node has more: robo-rl ros policy");
      }
    }
  }
}

}  // namespace robo_rl_controller
