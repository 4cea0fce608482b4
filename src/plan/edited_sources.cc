// SPDX-License-Identifier: Apache-2.0
#include "plan/edited_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/nearest.h"

namespace nautilus::plan {
namespace {

// Whether the text has a function of this name: as a word before its parameters, or in
// the macro that kernels begin with, `KERNEL(name, ...)`.
bool defines(const std::string& text, const std::string& kernel) {
  const auto is_part_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (size_t at = text.find(kernel); at != std::string::npos; at = text.find(kernel, at + 1)) {
    const size_t end = text.find_first_not_of(" \t\r\n", at + kernel.size());
    if (at > 0 && !is_part_of_name(text[at - 1]) && end != std::string::npos &&
        (text[end] == '(' || text[end] == ',' || text[end] == ')'))
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::map<std::string, const EditedSource*>> assign_sources(
    const std::vector<std::string>& kernels, const EditedSources& sources, std::string* error) {
  std::map<std::string, const EditedSource*> out;
  for (const EditedSource& source : sources) {
    const bool is_known = source.kernel.empty() ||
                          std::find(kernels.begin(), kernels.end(), source.kernel) != kernels.end();
    if (!is_known) {
      *error = base::no_such_name("kernel", source.kernel, kernels);
      return std::nullopt;
    }
    bool is_used = false;
    for (const std::string& kernel : kernels) {
      if ((!source.kernel.empty() && source.kernel != kernel) || !defines(source.text, kernel))
        continue;
      is_used = true;
      const auto [other, is_new] = out.emplace(kernel, &source);
      if (is_new) continue;
      *error = fmt::format("kernel `{}` has two sources, {} and {}", kernel, other->second->path,
                           source.path);
      return std::nullopt;
    }
    if (is_used) continue;
    *error = source.kernel.empty()
                 ? fmt::format("{} defines none of the kernels {}", source.path,
                               fmt::join(kernels, ", "))
                 : fmt::format("{} does not define the kernel `{}`", source.path, source.kernel);
    return std::nullopt;
  }
  return out;
}

}  // namespace nautilus::plan
