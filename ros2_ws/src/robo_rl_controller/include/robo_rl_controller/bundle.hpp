// SPDX-License-Identifier: Apache-2.0
// A compiled bundle: a shared library of "robo-rl export FILE --native".
#pragma once

#include <stdexcept>
#include <string>

#include "robot.h"

namespace robo_rl_controller
{

/// The library can't be used. The message says why, and what to do.
class BundleError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/// A loaded library, which has reproduced its golden vectors on this computer.
class Bundle
{
public:
  /// `digest`: SHA-256 of the bundle in hexadecimal, or its first letters; "": whichever it is. BundleError if the
  /// library is another bundle's, does not fit this computer, or misses the golden vectors.
  explicit Bundle(const std::string & path, const std::string & digest = "");
  ~Bundle();
  Bundle(const Bundle &) = delete;
  Bundle & operator=(const Bundle &) = delete;

  const robot_bundle & data() const noexcept {return *data_;}
  /// Greatest deviation of a command in the golden vectors, in units of its range.
  float golden_error() const noexcept {return golden_error_;}

private:
  void check(const std::string & path, const std::string & digest);

  void * library_;
  const robot_bundle * data_ = nullptr;
  float golden_error_ = 0.0f;
};

}  // namespace robo_rl_controller
