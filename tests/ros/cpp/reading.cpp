// SPDX-License-Identifier: Apache-2.0
// Reads messages as the node in C++ does. A line for each on standard input, "-" for nothing, ";" for a space in a text:
//   KIND WIRE CHANNEL_FRAME ELEMENTS WORLD FRAME_ID CHILD_FRAME_ID, then the numbers of the message;
// The answer is a line: the numbers of the channel, or "refused: " and the sentence. Of a LaserScan, ELEMENTS is the
// number of beams, and the first four numbers are the contract's scan.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "errors.hpp"
#include "reading.hpp"

using namespace robo_rl_controller;

struct Case
{
  std::string wire, frame, elements, world, frame_id, child;
  std::vector<double> numbers;
};

template<class Vector>
void put(Vector & v, const double * x)
{
  v.x = x[0];
  v.y = x[1];
  v.z = x[2];
}

template<class Quaternion>
void put_rotation(Quaternion & q, const double * x)
{
  put(q, x);
  q.w = x[3];
}

template<class Covariance>
void put_variances(Covariance & c, const double * x, std::size_t n)
{
  for (std::size_t i = 0; i < n; i++) {
    c[i * (n + 1)] = x[i];
  }
}

nav_msgs::msg::Odometry odometry(const Case & given)
{
  nav_msgs::msg::Odometry m;
  const double * x = given.numbers.data();
  m.header.frame_id = given.frame_id;
  m.child_frame_id = given.child;
  put(m.pose.pose.position, x);
  put_rotation(m.pose.pose.orientation, x + 3);
  put(m.twist.twist.linear, x + 7);
  put(m.twist.twist.angular, x + 10);
  put_variances(m.pose.covariance, x + 13, 6);
  put_variances(m.twist.covariance, x + 19, 6);
  return m;
}

sensor_msgs::msg::Imu imu(const Case & given)
{
  sensor_msgs::msg::Imu m;
  const double * x = given.numbers.data();
  m.header.frame_id = given.frame_id;
  put_rotation(m.orientation, x);
  put(m.angular_velocity, x + 4);
  put(m.linear_acceleration, x + 7);
  put_variances(m.orientation_covariance, x + 10, 3);
  put_variances(m.angular_velocity_covariance, x + 13, 3);
  put_variances(m.linear_acceleration_covariance, x + 16, 3);
  return m;
}

geometry_msgs::msg::PoseStamped pose(const Case & given)
{
  geometry_msgs::msg::PoseStamped m;
  m.header.frame_id = given.frame_id;
  put(m.pose.position, given.numbers.data());
  put_rotation(m.pose.orientation, given.numbers.data() + 3);
  return m;
}

geometry_msgs::msg::TwistStamped twist(const Case & given)
{
  geometry_msgs::msg::TwistStamped m;
  m.header.frame_id = given.frame_id;
  put(m.twist.linear, given.numbers.data());
  put(m.twist.angular, given.numbers.data() + 3);
  return m;
}

sensor_msgs::msg::LaserScan scan(const Case & given)
{
  sensor_msgs::msg::LaserScan m;
  const auto narrow = [&](std::size_t i) {return static_cast<float>(given.numbers[i]);};
  m.header.frame_id = given.frame_id;
  m.angle_min = narrow(4);
  m.angle_max = narrow(5);
  m.angle_increment = narrow(6);
  m.range_min = narrow(7);
  m.range_max = narrow(8);
  for (std::size_t i = 9; i < given.numbers.size(); i++) {
    m.ranges.push_back(narrow(i));
  }
  return m;
}

template<class Message>
std::vector<float> answer(const Message & message, const Channel & channel, const Case & given)
{
  const Wire wire("it", given.wire);
  Frames frames;
  frames.world = given.world;
  std::vector<float> out(channel.size);
  reader<Message>(wire.field, wire.name)(message, View{channel, wire, frames}, out);
  return out;
}

std::vector<float> read(const std::string & kind, const Case & given)
{
  std::vector<std::string> names;
  std::istringstream listed(given.elements);
  for (std::string name; std::getline(listed, name, ','); ) {
    names.push_back(name);
  }
  std::vector<const char *> elements;
  for (const std::string & name : names) {
    elements.push_back(name.c_str());
  }
  const bool of_scan = kind == "LaserScan";
  robot_scan beams{};
  robot_channel told{};
  told.name = "it";
  told.frame = given.frame.c_str();
  told.elements = of_scan ? nullptr : elements.data();
  told.size = static_cast<std::uint16_t>(of_scan ? std::stoul(given.elements) : elements.size());
  if (of_scan) {
    beams = {given.numbers[0], given.numbers[1], given.numbers[2], given.numbers[3]};
    told.scan = &beams;
  }
  const Channel channel(told);
  return kind == "Odometry" ? answer(odometry(given), channel, given) :
         kind == "Imu" ? answer(imu(given), channel, given) :
         kind == "PoseStamped" ? answer(pose(given), channel, given) :
         kind == "TwistStamped" ? answer(twist(given), channel, given) : answer(scan(given), channel, given);
}

int main()
{
  for (std::string line; std::getline(std::cin, line); ) {
    std::istringstream words(line);
    std::string kind, number;
    Case given;
    words >> kind >> given.wire >> given.frame >> given.elements >> given.world >> given.frame_id >> given.child;
    for (std::string * text : {&given.wire, &given.frame, &given.world, &given.frame_id, &given.child}) {
      *text = *text == "-" ? "" : *text;
      for (char & c : *text) {
        c = c == ';' ? ' ' : c;
      }
    }
    while (words >> number) {
      given.numbers.push_back(std::strtod(number.c_str(), nullptr));
    }
    try {
      for (const float value : read(kind, given)) {
        std::printf("%a ", static_cast<double>(value));
      }
      std::printf("\n");
    } catch (const MessageError & error) {
      std::printf("refused: %s\n", error.what());
    }
  }
  return 0;
}
