// SPDX-License-Identifier: Apache-2.0
// Hand-edited CUDA files in place of emitted text, for all kernels of a program or for some of
// them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nautilus::plan {

struct EditedSource {
  std::string kernel;  // the kernel it is for; empty: all kernels that the file defines
  std::string path;    // for messages
  std::string text;
};
using EditedSources = std::vector<EditedSource>;

// The source of each kernel; kernels without one are emitted. Nothing, and why, if a source is for
// an unknown kernel, if it does not define its kernel, or defines none, or if two sources are for
// one kernel.
std::optional<std::map<std::string, const EditedSource*>> assign_sources(
    const std::vector<std::string>& kernels, const EditedSources& sources, std::string* error);

}  // namespace nautilus::plan
