// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "errors.hpp"

namespace robo_rl_controller
{
namespace
{

constexpr double LEVEL = 0.1;  // rad by which a lidar's plane may be inclined

double angle(const std::string & name, const std::string & word)
{
  const std::string text = word.substr(word.find('=') + 1);
  char * end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(std::fabs(value) <= 2.0 * M_PI)) {
    throw RosError("the wire of '" + name + "' has '" + word + "'; expected an angle in rad");
  }
  return value;
}

void read_nothing(Wire & wire, const std::string & word)
{
  wire.zero_is_nothing = false;
  std::istringstream kinds(word.substr(word.find('=') + 1));
  for (std::string kind; std::getline(kinds, kind, ','); ) {
    if (kind == "zero") {
      wire.zero_is_nothing = true;
    } else if (kind == "nan") {
      wire.nan_is_nothing = true;
    } else if (kind == "max") {
      wire.max_is_nothing = true;
    } else if (kind != "inf") {
      throw RosError("the wire of '" + wire.name + "' has '" + word + "'; expected some of zero,nan,max, or inf");
    }
  }
}

}  // namespace

Wire::Wire(const std::string & given_name, const std::string & text)
: name(given_name)
{
  std::istringstream words(text);
  if (!(words >> topic >> kind >> field)) {
    throw RosError("the wire of '" + name + "' is '" + text + "'; expected 'topic type field'");
  }
  for (std::string word; words >> word; ) {
    const std::string key = word.substr(0, word.find('='));
    const bool of_scan = kind == "sensor_msgs/msg/LaserScan";
    if (key == "frame") {
      frame = word.substr(word.find('=') + 1);
    } else if (key == "yaw" && of_scan) {
      yaw = angle(name, word);
    } else if (key == "roll" && of_scan) {
      const double roll = angle(name, word);
      if (!(std::fabs(std::sin(roll)) <= LEVEL)) {
        throw RosError("the wire of '" + name + "' has '" + word + "'; expected 0 or 3.1416: upside down");
      }
      upside_down = std::cos(roll) < 0.0;
    } else if (key == "nothing" && of_scan) {
      read_nothing(*this, word);
    } else {
      throw RosError("the wire of '" + name + "' has '" + word + "', which this node does not know");
    }
  }
}

Channel::Channel(const robot_channel & given)
: name(given.name), frame(given.frame), size(given.size), offset(given.offset), data(given)
{
  for (std::size_t i = 0; given.elements != nullptr && i < size; i++) {
    elements.emplace_back(given.elements[i]);
  }
}

std::map<std::string, std::string> texts_by_name(const std::vector<std::string> & entries, const std::string & option)
{
  std::map<std::string, std::string> found;
  for (const std::string & entry : entries) {
    if (entry.empty()) {
      continue;
    }
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || found.count(entry.substr(0, equals)) != 0) {
      throw RosError(option + " has the entry '" + entry + "'; expected 'name=...', each name once");
    }
    found[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return found;
}

}  // namespace robo_rl_controller
