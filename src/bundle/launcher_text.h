// SPDX-License-Identifier: Apache-2.0
// The texts of a bundle around its plans: the header, the launcher and the machine code as arrays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bundle/bundle.h"

namespace nautilus::bundle {

// A value that the caller of a program may give, and a tensor, as members of its arguments.
struct Argument {
  std::string member;
  std::string comment;
};
struct Arguments {
  std::vector<Argument> tensors;  // in the order of arguments_of
  std::vector<Argument> values;   // in the order of the plan's values
};
Arguments arguments_text(const Program& program);

// The names that the header declares: two programs must not share one.
std::vector<std::string> public_names(const std::string& bundle, const std::string& program);
std::vector<std::string> common_names(const std::string& bundle);

// A text in which names of the bundle begin with `N_`.
std::string with_bundle_name(std::string_view text, const std::string& name);

std::string header_text(const Bundle& bundle);
std::string launcher_text(const Bundle& bundle);
std::string images_text(const Bundle& bundle);
std::string cmake_text(const Bundle& bundle);
// prelude/bundle, the same in every bundle.
std::string_view support_text();

}  // namespace nautilus::bundle
