// SPDX-License-Identifier: Apache-2.0
#include "interfaces.hpp"

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "../node/errors.hpp"

namespace robo_rl_controller
{
namespace
{

using Strings = std::vector<std::string>;
const char * const JOINTS = "sensor_msgs/msg/JointState";
const char * const IMU = "sensor_msgs/msg/Imu";
const char * const STATES = "state_interfaces";
const char * const COMMANDS = "command_interfaces";

Strings of_joints(const Channel & channel, const Wire & wire)
{
  Strings names;
  for (const std::string & element : channel.elements) {
    names.push_back(element + "/" + wire.field);
  }
  return names;
}

Strings of_component(const Channel & channel, const Wire & wire)
{
  Strings names;
  for (const std::string & element : channel.elements) {
    names.push_back(wire.topic + "/" + wire.field + "." + element);
  }
  return names;
}

Strings command_names(const Channel & channel, const Wire & wire)
{
  if (wire.kind == JOINTS) {
    return of_joints(channel, wire);
  }
  if (wire.kind == COMMANDS) {
    return of_component(channel, wire);
  }
  throw RosError(
          "the wire of command '" + channel.name + "' has the type " + wire.kind + "; expected " + JOINTS +
          ", whose names and field are those of command interfaces, or " + COMMANDS);
}

Gains gains_of(const std::string & name, const std::string & text)
{
  const std::string expected = "its stiffness, its damping, and its damping in a stop, none of them negative";
  const std::string where = "parameter 'gains': '" + name + "'";
  const std::vector<double> told = numbers(text, 3, where, expected);
  if (told[0] < 0.0 || told[1] < 0.0 || told[2] < 0.0) {
    throw RosError(where + " is '" + text + "'; expected " + expected);
  }
  return {0, told[0], told[1], told[2]};
}

}  // namespace

std::vector<double> numbers(
  const std::string & text, std::size_t count, const std::string & where, const std::string & expected)
{
  std::vector<double> values;
  std::istringstream words(text);
  bool numeric = true;
  for (std::string word; words >> word; ) {
    char * end = nullptr;
    values.push_back(std::strtod(word.c_str(), &end));
    numeric = numeric && *end == '\0' && std::isfinite(values.back());
  }
  if (!numeric || values.size() != count) {
    throw RosError(where + " is '" + text + "'; expected " + expected);
  }
  return values;
}

void require_known(
  const std::map<std::string, std::string> & texts, const robot_channel * channels, std::size_t count,
  const std::string & option)
{
  for (const auto & [name, text] : texts) {
    std::string known;
    bool found = false;
    for (std::size_t i = 0; i < count; i++) {
      found = found || name == channels[i].name;
      known += (i == 0 ? "" : ", ") + std::string(channels[i].name);
    }
    if (!found) {
      throw RosError(option + " has an entry for '" + name + "'; the contract has " + known);
    }
  }
}

Strings state_names(const Channel & channel, const Wire & wire)
{
  if (wire.kind == JOINTS) {
    return of_joints(channel, wire);
  }
  return wire.kind == IMU || wire.kind == STATES ? of_component(channel, wire) : Strings();
}

CommandInterfaces command_interfaces(
  const robot_bundle & bundle, const std::map<std::string, std::string> & wires,
  const std::map<std::string, std::string> & gains)
{
  require_known(wires, bundle.commands, bundle.gate->command_count, "parameter 'command_wires'");
  require_known(gains, bundle.commands, bundle.gate->command_count, "parameter 'gains'");
  CommandInterfaces found;
  Strings geared;
  for (std::size_t i = 0; i < bundle.gate->command_count; i++) {
    const Channel channel(bundle.commands[i]);
    const auto text = wires.find(channel.name);
    if (text == wires.end()) {
      throw RosError("parameter 'command_wires' has no entry for the command '" + channel.name + "'");
    }
    const Wire wire(channel.name, text->second);
    const Strings names = command_names(channel, wire);
    found.names.insert(found.names.end(), names.begin(), names.end());
    const auto own = gains.find(channel.name);
    if (own == gains.end()) {
      continue;
    }
    if (wire.kind != JOINTS) {
      throw RosError("parameter 'gains' has an entry for '" + channel.name + "', whose elements are not joints");
    }
    Gains told = gains_of(channel.name, own->second);
    for (std::size_t k = 0; k < channel.elements.size(); k++) {
      told.element = channel.offset + k;
      found.gains.push_back(told);
      geared.insert(geared.end(), {channel.elements[k] + "/stiffness", channel.elements[k] + "/damping"});
    }
  }
  found.names.insert(found.names.end(), geared.begin(), geared.end());
  return found;
}

}  // namespace robo_rl_controller
