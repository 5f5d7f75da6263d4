// SPDX-License-Identifier: Apache-2.0
// Prints the interfaces of an arm's controller: interfaces STATE_WIRE COMMAND_WIRES GAINS, entries apart by ';'.
#include <cstdio>
#include <sstream>

#include "../../../ros2_ws/src/robo_rl_controller/plugin/interfaces.hpp"

using namespace robo_rl_controller;

static std::map<std::string, std::string> texts(const char * given)
{
  std::vector<std::string> entries;
  std::istringstream parts(given);
  for (std::string entry; std::getline(parts, entry, ';'); ) {
    entries.push_back(entry);
  }
  return texts_by_name(entries, "option");
}

int main(int, char ** words)
{
  const char * const xyz[] = {"x", "y", "z"};
  const char * const jaw[] = {"jaw"};
  robot_channel commands[2] = {};
  commands[0].name = "tool";
  commands[0].elements = xyz;
  commands[0].size = 3;
  commands[1].name = "gripper";
  commands[1].elements = jaw;
  commands[1].offset = 3;
  commands[1].size = 1;
  for (robot_channel & command : commands) {
    command.frame = "";
  }
  gate_config gate{};
  gate.command_count = 2;
  robot_bundle bundle{};
  bundle.gate = &gate;
  bundle.commands = commands;
  try {
    for (const std::string & name : state_names(Channel(commands[0]), Wire("tool", words[1]))) {
      std::printf("%s ", name.c_str());
    }
    const CommandInterfaces found = command_interfaces(bundle, texts(words[2]), texts(words[3]));
    std::printf("|");
    for (const std::string & name : found.names) {
      std::printf(" %s", name.c_str());
    }
    for (const Gains & one : found.gains) {
      std::printf(" | %zu %g %g %g", one.element, one.stiffness, one.damping, one.damping_in_a_stop);
    }
  } catch (const std::exception & error) {
    std::printf("%s", error.what());
  }
  return 0;
}
