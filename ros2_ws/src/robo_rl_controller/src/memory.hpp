// SPDX-License-Identifier: Apache-2.0
// Memory of a policy: zeros, aligned for every type and for vector instructions.
#pragma once

#include <cstddef>
#include <vector>

namespace robo_rl_controller
{

class Memory
{
public:
  explicit Memory(std::size_t bytes)
  : lines_(bytes / sizeof(Line) + 1) {}
  void * data() noexcept {return lines_.data();}

private:
  struct alignas(64) Line
  {
    unsigned char bytes[64] = {};
  };
  std::vector<Line> lines_;
};

}  // namespace robo_rl_controller
