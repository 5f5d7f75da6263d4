// SPDX-License-Identifier: Apache-2.0
#include "robo_rl_controller/bundle.hpp"

#include <dlfcn.h>

#include <fstream>
#include <set>
#include <sstream>

#include "memory.hpp"

namespace robo_rl_controller
{
namespace
{

/// What this computer's processor can do, as /proc/cpuinfo tells it.
std::set<std::string> processor_flags()
{
  std::set<std::string> flags;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line); ) {
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) {
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word; ) {
        flags.insert(word);
      }
    }
  }
  return flags;
}

void require_instructions(const std::string & path, const char * needs)
{
  const std::set<std::string> known = processor_flags();
  std::istringstream words(needs);
  for (std::string word; words >> word; ) {
    if (known.count(word) == 0) {
      throw BundleError(path + ": this processor lacks " + word + "; compile the library on this computer");
    }
  }
}

}  // namespace

Bundle::Bundle(const std::string & path, const std::string & digest)
: library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
{
  if (library_ == nullptr) {
    throw BundleError(
            path + ": this computer can't load it (" + dlerror() +
            "); expected the path, with a '/' in it, of a library of 'robo-rl export FILE --native'");
  }
  try {
    check(path, digest);
  } catch (...) {
    dlclose(library_);
    throw;
  }
}

Bundle::~Bundle()
{
  dlclose(library_);
}

void Bundle::check(const std::string & path, const std::string & digest)
{
  const auto * found = static_cast<const robot_bundle *>(dlsym(library_, ROBOT_SYMBOL));
  const auto * needs = static_cast<const char *>(dlsym(library_, ROBOT_NEEDS_SYMBOL));
  if (found == nullptr || needs == nullptr) {
    throw BundleError(
            path + ": it has no '" ROBOT_SYMBOL "'; expected a library of 'robo-rl export FILE --native' of this "
            "version. Compile it again");
  }
  if (found->interface != ROBOT_INTERFACE || found->bytes != sizeof(robot_bundle)) {
    throw BundleError(
            path + ": its interface is " + std::to_string(found->interface) + " of " + std::to_string(found->bytes) +
            " bytes; expected " + std::to_string(ROBOT_INTERFACE) + " of " + std::to_string(sizeof(robot_bundle)) +
            ". Compile it again: robo-rl export FILE --native");
  }
  if (std::string(found->bundle_digest).rfind(digest, 0) != 0) {
    throw BundleError(
            path + ": it was compiled from the bundle " + std::string(found->bundle_digest).substr(0, 12) +
            "…; expected " + digest.substr(0, 12) + "…. Compile it again: robo-rl export FILE --native");
  }
  require_instructions(path, needs);
  Memory state(found->state_bytes), arena(found->arena_bytes);
  golden_error_ = found->self_test(state.data(), arena.data());
  if (!(golden_error_ <= found->tolerance)) {
    std::ostringstream text;
    text << path << ": its golden vectors have an error of " << golden_error_ << " on this machine; expected at most "
         << found->tolerance << ". Don't use it on this machine";
    throw BundleError(text.str());
  }
  data_ = found;
}

}  // namespace robo_rl_controller
