// SPDX-License-Identifier: Apache-2.0
// Hand-edited CUDA files in place of what would be emitted, for all kernels of a program or for
// some of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nautilus::plan {

struct EditedSource {
  std::string kernel;  // for that one; empty: for all kernels that the file defines
  std::string path;    // for messages
  std::string text;
};
using EditedSources = std::vector<EditedSource>;

// Which source each of the kernels has; those without one are emitted. Nothing, and why, if a
// source is for a kernel that there is not, or does not define its kernel, or any, or if two
// sources are for one kernel.
std::optional<std::map<std::string, const EditedSource*>> assign_sources(
    const std::vector<std::string>& kernels, const EditedSources& sources, std::string* error);

}  // namespace nautilus::plan
