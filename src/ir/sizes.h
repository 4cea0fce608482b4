// SPDX-License-Identifier: Apache-2.0
// Sizes that a schedule decides for each call: how many parts an axis has, from the sizes of the
// call and from the machine.
#pragma once

#include "ir/environment.h"
#include "ir/op.h"

namespace nautilus::ir {

struct Machine {
  static constexpr std::string_view kFormat = "machine $name";
  static constexpr std::string_view kDoc =
      "A property of the device as a size: `sms` is the number of multiprocessors. Results do not "
      "depend on it.";
  Name name;
  static void fields(auto& s, auto&& f) { f("name", s.name); }
  static const OpInfo& info();
};

struct Size {
  static constexpr std::string_view kFormat = "size $name = $value";
  static constexpr std::string_view kDoc =
      "A size, 0 or more, computed for each call from sizes, scalars and the machine.";
  Name name;
  Expr value;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("value", s.value);
  }
  static const OpInfo& info();
};

// The multiprocessors of the machine that interpreters stand for: few, so that small problems have
// parts of several steps.
inline constexpr int64_t kInterpretedSms = 6;

// Adds the machine's and computed sizes of a program to the sizes of a call.
void compute_sizes(const Program& program, Environment& env);

}  // namespace nautilus::ir
